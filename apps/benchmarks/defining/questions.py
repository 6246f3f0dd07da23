"""Questions that a benchmark answers: the matrix of each over a mapping's indexes, or why they cannot answer it."""

from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingType
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.models import User

from apps.benchmarks.defining.choosing import can_search, find_ann_problem, load_newest_indexes
from apps.benchmarks.defining.foreseeing import Foresight, find_prior, foresee
from apps.benchmarks.planning import estimate_costs, estimate_work, list_llm_indexes
from apps.collections.models import Collection
from apps.engines.declarations import list_engines
from apps.mappings.models import Mapping
from apps.retrieval.availability import describe_missing, list_index_requirements
from apps.retrieval.llms.servers import find_first_llm
from apps.retrieval.models import Index
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.labels import describe_value
from benchbench.ir.planning.matrix import BY_KEY, Matrix
from benchbench.ir.planning.plan import Plan, plan

MODES = ("hybrid", "dense", "sparse")  # the first that all indexes can search compares them
Indexes = Sequence[Index]  # the newest of each name, newest first
Strategies = tuple[tuple[str, dict[str, Any]], ...]
DOCUMENTS: Strategies = (("flat", {}),)
CHUNKS = {"size": 500, "overlap": 50}


class Unanswerable(NamedTuple):
    """The reason why the indexes cannot answer a question, and what to make first: "index", "grid", "server" …"""

    problem: str
    remedy: str = "index"


@dataclass(frozen=True, slots=True)
class Question:
    """A question in a user's words.

    A new evaluation builds indexes of these `strategies` for it; `contrast` says what it compares then. Some need no
    index. Times of single searches and rates need isolated `execution`.
    """

    key: str
    title: str
    sentence: str
    build: Callable[[Indexes], dict[str, Any] | Unanswerable]
    strategies: Strategies = DOCUMENTS
    contrast: str = ""
    needs_index: bool = True
    execution: str = "shared"


def _compare_modes(indexes: Indexes) -> dict[str, Any] | Unanswerable:
    index = next((index for index in indexes if can_search(index, "hybrid")), None)
    if index is None:
        return Unanswerable("No ready index has both vectors and words. Build one with an encoder and BM25.")
    return {"indexes": [index.name], "search_modes": ["dense", "sparse", "hybrid"]}


def _compare_reranking(indexes: Indexes) -> dict[str, Any] | Unanswerable:
    index, problem = _find_encoding(indexes)
    if index is None:
        return Unanswerable(f"The reranker late-interaction needs an index with an encoder. {problem}")
    modes = [mode for mode in ("dense", "sparse", "hybrid") if can_search(index, mode)]
    return {"indexes": [index.name], "search_modes": modes, "use_reranker": [False, True]}


def _find_encoding(indexes: Indexes) -> tuple[Index | None, str]:
    """Return the newest index whose encoder is available here; otherwise None and the reason."""
    problem = "Build one."
    for index in (index for index in indexes if index.encoder):
        missing = describe_missing(list_index_requirements(index, to_build=True))
        if not missing:
            return index, ""
        problem = f"{missing[0].upper()}{missing[1:]}."
    return None, problem


def _compare_indexes(indexes: Indexes) -> dict[str, Any] | Unanswerable:
    if len(indexes) < 2:
        return Unanswerable("The collection has only one ready index. Build others to compare.", "grid")
    return _compare_in_one_mode(indexes)


def _compare_in_one_mode(indexes: Indexes) -> dict[str, Any] | Unanswerable:
    chosen = indexes[: settings.BENCHMARK_MAX_VALUES_PER_AXIS]
    mode = next((mode for mode in MODES if all(can_search(index, mode) for index in chosen)), None)
    if mode is None:
        return Unanswerable("The ready indexes have no mode of search in common. Build one with an encoder and BM25.")
    return {"indexes": [index.name for index in chosen], "search_modes": [mode]}


HNSW = [f"hnsw(ef_search={effort})" for effort in (100, 200, 400)]
CODES = ["int8", "binary", "binary, rescore=0"]


def _compare_settings(rivals: Sequence[str], **axes: Any) -> Callable[[Indexes], dict[str, Any] | Unanswerable]:
    """Return what compares exact search with `rivals` over `axes`, on the newest index that can have them."""

    def build(indexes: Indexes) -> dict[str, Any] | Unanswerable:
        problem = "No ready index has vectors. Build one with an encoder."
        for index in (index for index in indexes if index.has_vectors):
            problem = find_ann_problem(index, Configuration(ann=rivals[-1]))
            if not problem:
                return {"indexes": [index.name], "search_modes": ["dense"], "ann": ["exact", *rivals], **axes}
        return Unanswerable(problem)

    return build


def _compare_strategies(indexes: Indexes) -> dict[str, Any] | Unanswerable:
    same_encoder = [index for index in indexes if index.encoder == indexes[0].encoder]
    by_strategy: dict[str, Index] = {}
    for index in [*same_encoder, *indexes]:
        by_strategy.setdefault(index.strategy, index)
    if len(by_strategy) < 2:
        return Unanswerable(
            f"All ready indexes have the strategy {indexes[0].strategy}. Build one with another.", "grid"
        )
    return _compare_in_one_mode(list(by_strategy.values()))


def _compare_rewriting(indexes: Indexes) -> dict[str, Any] | Unanswerable:
    llm, problem = find_first_llm()
    if not llm:
        return Unanswerable(problem, "server")
    index, problem = _find_encoding(indexes)
    if index is None:
        return Unanswerable(f"Rewritten queries need an index with an encoder. {problem}")
    matrix = _compare_in_one_mode([index])
    if isinstance(matrix, Unanswerable):
        return matrix
    return matrix | {"query": ["as_asked", "rewrite", "hyde", "multi(3)"], "llms": [llm]}


def _compare_engines(indexes: Indexes) -> dict[str, Any] | Unanswerable:
    engines = [engine.alias for engine in list_engines()]
    if not engines:
        return Unanswerable("The site declares no search engine: set BENCHBENCH_ENGINES.", "engine")
    if len(engines) > 1:
        return {"engines": engines[: settings.BENCHMARK_MAX_VALUES_PER_AXIS], "search_modes": ["engine"]}
    matrix = _compare_in_one_mode(indexes[:1]) if indexes else Unanswerable("Build an index to compare it with.")
    if isinstance(matrix, Unanswerable):
        return matrix
    return matrix | {"engines": engines, "search_modes": [*matrix["search_modes"], "engine"]}


QUESTIONS = {
    question.key: question
    for question in (
        Question(
            "modes", "Dense, lexical or both?", "Vectors, words, or the two fused: on the same index.", _compare_modes
        ),
        Question(
            "reranking",
            "Does reranking pay?",
            "Each mode with and without the reranker late-interaction.",
            _compare_reranking,
        ),
        Question(
            "index",
            "Which index?",
            "The newest version of each index, searched in the same way.",
            _compare_indexes,
            (*DOCUMENTS, ("flat", CHUNKS)),
            "Whole documents against chunks of 500 characters: builds two indexes.",
        ),
        Question(
            "approximation",
            "How approximate may it be?",
            "Exact search against HNSW with rising effort.",
            _compare_settings(HNSW),
        ),
        Question(
            "compression",
            "How compressed may it be?",
            "Exact search against 8 bits and 1 bit per dimension, with and without rescoring.",
            _compare_settings([f"compressed(precision={code})" for code in CODES]),
        ),
        Question(
            "filters",
            "How does it search under filters?",
            "Exact search against HNSW, under filters that admit ever fewer documents; isolated, for times.",
            _compare_settings([HNSW[0], "hnsw(ef_search=100, iterative=relaxed)"], filter_shares=[1.0, 0.1, 0.01]),
            execution="isolated",
        ),
        Question(
            "load",
            "What load does it sustain?",
            "Exact search against HNSW at rising rates; isolated.",
            _compare_settings(HNSW[:1], rates=[20.0, 50.0, 100.0]),
            execution="isolated",
        ),
        Question(
            "strategy",
            "Which strategy?",
            "One index of each strategy, searched in the same way.",
            _compare_strategies,
            (("flat", CHUNKS), ("lod_embed", CHUNKS)),
            "All chunks against the chunks of the best sections: builds two indexes.",
        ),
        Question(
            "rewriting",
            "Does rewriting the query pay?",
            "Queries as asked, and as a language model rewrites them.",
            _compare_rewriting,
        ),
        Question(
            "migration",
            "Is the new engine as good as the old?",
            "The declared search engines, or one against an index. The comparison of two runs tests a stated margin.",
            _compare_engines,
            needs_index=False,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Offer:
    """A question over a mapping: a valid matrix with its words and costs, or the reason why it cannot be answered."""

    question: Question
    foresight: Foresight
    matrix: dict[str, Any] | None = None
    compared: str = ""
    runs: int = 0
    seconds: float = 0.0
    refusal: Unanswerable | None = None


def list_offers(mapping: Mapping, user: User) -> list[Offer]:
    """Return every question for the newest indexes of a mapping that `user` sees, with the costs on one worker."""
    by_name = load_newest_indexes(mapping, user)
    indexes = [index for name, index in by_name.items() if name is not None]
    nothing = Unanswerable("The collection has no ready index of its current documents. Build one.")
    if mapping.collection.kind == Collection.Kind.EXTERNAL:
        nothing = Unanswerable("The documents are not here, so no index can be built of them.", "documents")
    answers = {
        key: question.build(indexes) if indexes or not question.needs_index else nothing
        for key, question in QUESTIONS.items()
    }
    matrices = {key: answer for key, answer in answers.items() if not isinstance(answer, Unanswerable)}
    queries = mapping.dataset_version.query_count if mapping.dataset_version else 0
    seconds = _estimate_each(matrices, by_name, queries)
    prior = find_prior(mapping, user)
    offers = []
    for key, question in QUESTIONS.items():
        answer = answers[key]
        if isinstance(answer, Unanswerable):
            offers.append(Offer(question, foresee(mapping, 0, prior), refusal=answer))
            continue
        runs = seconds[key][0]
        offers.append(Offer(question, foresee(mapping, runs, prior), answer, _describe(answer), *seconds[key]))
    return offers


def _estimate_each(
    matrices: MappingType[str, MappingType[str, Any]], by_name: MappingType[str | None, Index], queries: int
) -> dict[str, tuple[int, float]]:
    """Return the runs of each matrix, and their seconds. Stages that several share are looked up once."""
    plans: dict[str, Plan] = {}
    asking = list_llm_indexes(by_name)
    runs: dict[str, Configuration] = {}
    for key, matrix in matrices.items():
        numbered = [(f"{key} {number}", run) for number, run in enumerate(Matrix.parse(matrix).list_configurations())]
        runs |= dict(numbered)
        plans[key] = plan(numbered, asking=asking)
    stages = {stage.key: stage for planned in plans.values() for stage in planned.stages}
    costs = estimate_costs(Plan(stages=tuple(stages.values()), runs=()), by_name)
    return {
        key: (len(one.runs), estimate_work(one, runs, costs, queries, QUESTIONS[key].execution)[1])
        for key, one in plans.items()
    }


def _describe(matrix: MappingType[str, Any]) -> str:
    """Return the values that a matrix compares, in words."""
    several = (key for key, values in matrix.items() if len(values) > 1 or key == "indexes")
    fields = {key: BY_KEY[key].field for key in several}
    return " · ".join(", ".join(describe_value(field, value) for value in matrix[key]) for key, field in fields.items())
