"""Matrices that answer a question over the ready indexes of a mapping, or the reason why none can."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from django.conf import settings

from apps.engines.declarations import list_engines
from apps.execution.defining.choosing import can_search, find_ann_problem
from apps.retrieval.availability import describe_missing, list_index_requirements
from apps.retrieval.llms.servers import find_first_llm
from apps.retrieval.models import Index
from benchbench.ir.planning.configuration import Configuration
from benchbench.reading.strict_json import dump_canonical

MODES = ("hybrid", "dense", "sparse")  # the first that all indexes can search compares them
Indexes = Sequence[Index]  # the newest of each name, newest first


class Unanswerable(NamedTuple):
    """The reason why the indexes cannot answer a question, and what to make first: "index", "grid", "server" …"""

    problem: str
    remedy: str = "index"


def compare_modes(indexes: Indexes) -> dict[str, object] | Unanswerable:
    index = next((index for index in indexes if can_search(index, "hybrid")), None)
    if index is None:
        return Unanswerable("No ready index has both vectors and words. Build one with an encoder and BM25.")
    return {"indexes": [index.name], "search_modes": ["dense", "sparse", "hybrid"]}


def compare_reranking(indexes: Indexes) -> dict[str, object] | Unanswerable:
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


def compare_indexes(indexes: Indexes) -> dict[str, object] | Unanswerable:
    if len(indexes) < 2:
        return Unanswerable("The collection has only one ready index. Build others to compare.", "grid")
    return compare_in_one_mode(indexes)


def compare_in_one_mode(indexes: Indexes) -> dict[str, Any] | Unanswerable:
    chosen = indexes[: settings.BENCHMARK_MAX_VALUES_PER_AXIS]
    mode = next((mode for mode in MODES if all(can_search(index, mode) for index in chosen)), None)
    if mode is None:
        return Unanswerable("The ready indexes have no mode of search in common. Build one with an encoder and BM25.")
    return {"indexes": [index.name for index in chosen], "search_modes": [mode]}


HNSW = [f"hnsw(ef_search={effort})" for effort in (100, 200, 400)]
CODES = ["int8", "binary", "binary, rescore=0"]


def compare_settings(rivals: Sequence[str], **axes: object) -> Callable[[Indexes], dict[str, object] | Unanswerable]:
    """Return what compares exact search with `rivals` over `axes`, on the newest index that can have them."""

    def build(indexes: Indexes) -> dict[str, Any] | Unanswerable:
        problem = "No ready index has vectors. Build one with an encoder."
        for index in (index for index in indexes if index.has_vectors):
            problem = find_ann_problem(index, Configuration(ann=rivals[-1]))
            if not problem:
                return {"indexes": [index.name], "search_modes": ["dense"], "ann": ["exact", *rivals], **axes}
        return Unanswerable(problem)

    return build


TUNING = "bm25(k1=0.6|0.9|1.2|1.5|2|3, b=0.2|0.4|0.6|0.75|0.9)"  # with those of Lucene, Anserini and bm25s


def compare_tuning(indexes: Indexes) -> dict[str, object] | Unanswerable:
    index = next((index for index in indexes if index.lexical_index_id), None)
    if index is None:
        return Unanswerable("No ready index has BM25. Build one with it.")
    return {"indexes": [index.name], "search_modes": ["sparse"], "lexical": [TUNING]}


def compare_precisions(indexes: Indexes) -> dict[str, object] | Unanswerable:
    """Return what compares indexes that differ in nothing but the precision of their encoder: the newest of each."""
    alike: dict[tuple[object, ...], dict[str, Index]] = {}
    for index in (index for index in indexes if index.encoder):
        key = index.encoder, index.strategy, dump_canonical(index.chunk_parameters), dump_canonical(index.prompts)
        alike.setdefault(key, {}).setdefault(index.precision, index)
    pair = next((by_precision for by_precision in alike.values() if len(by_precision) > 1), None)
    if pair is None:
        return Unanswerable(
            "No two ready indexes differ in precision alone. Build one like another in mixed, bfloat16 or float16.",
        )
    return {"indexes": [index.name for index in pair.values()], "search_modes": ["dense"]}


def compare_strategies(indexes: Indexes) -> dict[str, Any] | Unanswerable:
    same_encoder = [index for index in indexes if index.encoder == indexes[0].encoder]
    by_strategy: dict[str, Index] = {}
    for index in [*same_encoder, *indexes]:
        by_strategy.setdefault(index.strategy, index)
    if len(by_strategy) < 2:
        return Unanswerable(
            f"All ready indexes have the strategy {indexes[0].strategy}. Build one with another.", "grid"
        )
    return compare_in_one_mode(list(by_strategy.values()))


def compare_rewriting(indexes: Indexes) -> dict[str, Any] | Unanswerable:
    llm, problem = find_first_llm()
    if not llm:
        return Unanswerable(problem, "server")
    index, problem = _find_encoding(indexes)
    if index is None:
        return Unanswerable(f"Rewritten queries need an index with an encoder. {problem}")
    matrix = compare_in_one_mode([index])
    if isinstance(matrix, Unanswerable):
        return matrix
    return matrix | {"query": ["as_asked", "rewrite", "hyde", "multi(3)"], "llms": [llm]}


def compare_engines(indexes: Indexes) -> dict[str, Any] | Unanswerable:
    engines = [engine.alias for engine in list_engines()]
    if not engines:
        return Unanswerable(
            "The site has no search engine to ask: the page Engines, under System, shows why.", "engine"
        )
    if len(engines) > 1:
        return {"engines": engines[: settings.BENCHMARK_MAX_VALUES_PER_AXIS], "search_modes": ["engine"]}
    matrix = compare_in_one_mode(indexes[:1]) if indexes else Unanswerable("Build an index to compare it with.")
    if isinstance(matrix, Unanswerable):
        return matrix
    return matrix | {"engines": engines, "search_modes": [*matrix["search_modes"], "engine"]}
