"""Questions that a benchmark answers: the matrix of each over a mapping's indexes, or why they cannot answer it."""

from collections.abc import Callable
from collections.abc import Mapping as MappingType
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from apps.collections.models import Collection
from apps.execution.defining.choosing import load_newest_indexes
from apps.execution.defining.contrasts import (
    CODES,
    HNSW,
    Indexes,
    Unanswerable,
    compare_engines,
    compare_indexes,
    compare_modes,
    compare_precisions,
    compare_reranking,
    compare_rewriting,
    compare_settings,
    compare_strategies,
    compare_tuning,
)
from apps.execution.defining.foreseeing import Foresight, find_prior, foresee
from apps.mappings.models import Mapping
from apps.records.planning import estimate_costs, estimate_work, list_llm_indexes
from apps.retrieval.models import Index
from benchbench.ir.planning.axes import BY_KEY
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.matrix import Matrix
from benchbench.ir.planning.plan import Plan, plan

Strategies = tuple[tuple[str, dict[str, Any]], ...]
DOCUMENTS: Strategies = (("flat", {}),)
CHUNKS = {"size": 500, "overlap": 50}


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


QUESTIONS = {
    question.key: question
    for question in (
        Question(
            "modes", "Dense, lexical or both?", "Vectors, words, or the two fused: on the same index.", compare_modes
        ),
        Question(
            "reranking",
            "Does reranking pay?",
            "Each mode with and without the reranker late-interaction.",
            compare_reranking,
        ),
        Question(
            "index",
            "Which index?",
            "The newest version of each index, searched in the same way.",
            compare_indexes,
            (*DOCUMENTS, ("flat", CHUNKS)),
            "Whole documents against chunks of 500 characters: builds two indexes.",
        ),
        Question(
            "approximation",
            "How approximate may it be?",
            "Exact search against HNSW with rising effort.",
            compare_settings(HNSW),
        ),
        Question(
            "compression",
            "How compressed may it be?",
            "Exact search against 8 bits and 1 bit per dimension, with and without rescoring.",
            compare_settings([f"compressed(precision={code})" for code in CODES]),
        ),
        Question(
            "filters",
            "How does it search under filters?",
            "Exact search against HNSW, under filters that admit ever fewer documents; isolated, for times.",
            compare_settings([HNSW[0], "hnsw(ef_search=100, iterative=relaxed)"], filter_shares=[1.0, 0.1, 0.01]),
            execution="isolated",
        ),
        Question(
            "load",
            "What load does it sustain?",
            "Exact search against HNSW at rising rates; isolated.",
            compare_settings(HNSW[:1], rates=[20.0, 50.0, 100.0]),
            execution="isolated",
        ),
        Question(
            "tuning",
            "Is BM25 tuned?",
            "30 settings of k1 and b on one index. The best of so many seems too good: the leaderboard has a number.",
            compare_tuning,
        ),
        Question(
            "precision",
            "Does half precision lose quality?",
            "The same vectors in float32 and as a faster precision of the encoder makes them.",
            compare_precisions,
        ),
        Question(
            "strategy",
            "Which strategy?",
            "One index of each strategy, searched in the same way.",
            compare_strategies,
            (("flat", CHUNKS), ("lod_embed", CHUNKS)),
            "All chunks against the chunks of the best sections: builds two indexes.",
        ),
        Question(
            "rewriting",
            "Does rewriting the query pay?",
            "Queries as asked, and as a language model rewrites them.",
            compare_rewriting,
        ),
        Question(
            "migration",
            "Is the new engine as good as the old?",
            "The declared search engines, or one against an index. The comparison of two runs tests a stated margin.",
            compare_engines,
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
    matrices: MappingType[str, MappingType[str, object]], by_name: MappingType[str | None, Index], queries: int
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
    several = (BY_KEY[key] for key, values in matrix.items() if len(values) > 1 or key in ("indexes", "lexical"))
    return " · ".join(", ".join(map(axis.describe, matrix[axis.key])) for axis in several)
