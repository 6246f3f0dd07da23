"""Final lists of queries: made, cut for each run that shares them, and stored by COPY, as lists of other stages are."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from apps.records.models import StageList
from apps.records.models.timing import TIMINGS
from apps.retrieval.search.open_indexes import OpenIndex
from benchbench.database import binary
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.planning.stages import RerankStage
from benchbench.ir.ranking import UnitKind, collapse, cut, mark_tied, scale_scores
from benchbench.ir.records import Calls, ScoredList

NO_IDS = np.empty(0, np.int64)
NO_SCORES = np.empty(0, np.float64)
CALLS = ("embed_calls", "llm_calls", "llm_cached", "fallback_used")
LIST = ("source_id", "query_id", "repetition", "chunk_ids", "scores", "threshold_scores", "duration_ms", "error")
FINAL = ("document_ids", "chunk_ranks", "lengths", *TIMINGS, *CALLS)


@dataclass(frozen=True, slots=True)
class Cuts:
    """The cuts of the runs that share a list: each run keeps at most `max_chunks` chunks above its threshold.

    `limits` are the greatest numbers of chunks that the configurations allow; for a reranked list at most its depth.
    `max_k` is the greatest cutoff of a measure.
    """

    kind: UnitKind
    max_chunks: tuple[int, ...]
    thresholds: tuple[float | None, ...]
    limits: tuple[int, ...]
    max_k: int

    @classmethod
    def from_plans(cls, plans: Sequence[RunPlan], max_k: int) -> "Cuts":
        return cls(
            plans[0].unit_kind,
            tuple(min(plan.candidates, plan.top_k) for plan in plans),
            tuple(plan.threshold if plan.list_key == plan.final else None for plan in plans),
            tuple(_limit(plan) for plan in plans),
            max_k,
        )

    def count_kept(self, scored: ScoredList) -> NDArray[np.int64]:
        """Return the number of chunks that each run keeps: a prefix, because the scores of a list fall."""
        counts = np.minimum(self.max_chunks, len(scored))
        thresholds = {threshold for threshold in self.thresholds if threshold is not None}
        if thresholds:
            units = scale_scores(self.kind, scored.compared_scores)
            passing: dict[float | None, int] = {
                threshold: int(np.count_nonzero(units >= threshold)) for threshold in thresholds
            }
            counts = np.minimum(counts, [passing.get(threshold, len(scored)) for threshold in self.thresholds])
        return counts


def _limit(run: RunPlan) -> int:
    """Return the greatest number of chunks that the run keeps."""
    reranked = [stage.depth for stage in run.stages if isinstance(stage, RerankStage)]
    return min(run.top_k, run.candidates, *reranked)


def cut_for_run(plan: RunPlan, ranked: ScoredList, *, top_k: int) -> ScoredList:
    """Return the part of a list that a run keeps: at most `top_k` of its candidates, above its threshold."""
    head = ranked.head(plan.candidates)
    compared = scale_scores(plan.unit_kind, head.compared_scores)
    return cut(head, unit_scores=compared, threshold=plan.threshold, top_k=top_k)


class ListKey(NamedTuple):
    source: int
    query_id: int
    repetition: int = 1


@dataclass(frozen=True, slots=True)
class SearchFacts:
    """The time of a list's stage; the times and calls of one run alone, None for imported rankings; and its error."""

    duration_ms: float | None = None
    timings: Mapping[str, float | None] = field(default_factory=dict)
    calls: Calls | None = None
    error: str = ""


NO_FACTS = SearchFacts()


@dataclass(frozen=True, slots=True)
class ChunkList:
    """One query's list of a stage: chunks best first (c,). `chunk_ids` are None if the list could not be made."""

    key: ListKey
    facts: SearchFacts
    chunk_ids: NDArray[np.int64] | None
    scores: NDArray[np.float64]
    threshold_scores: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True)
class FinalList(ChunkList):
    """One query's final list: chunks best first (c,), their documents (d,), and the number that each run returns.

    `chunk_ranks` (d,) is the rank, from 1, of the first chunk of each document; None if each chunk is a document of its
    own. `lengths` and `short` follow the places of the runs. A run is `short` if it kept its maximum of chunks and they
    have fewer documents than the greatest cutoff. With an error no run returns documents. Without chunks, the scores
    are those of documents.
    """

    document_ids: NDArray[np.int64] = field(default_factory=lambda: NO_IDS)
    chunk_ranks: NDArray[np.int64] | None = None
    lengths: tuple[int, ...] = (0,)
    short: tuple[bool, ...] = (False,)

    @classmethod
    def failed(cls, key: ListKey, facts: SearchFacts, *, runs: int = 1) -> "FinalList":
        """Return a list that could not be made."""
        return cls(key, facts, None, NO_SCORES, lengths=(0,) * runs, short=(False,) * runs)

    @classmethod
    def of_documents(
        cls, key: ListKey, documents: ScoredList, max_lengths: Sequence[int], facts: SearchFacts = NO_FACTS
    ) -> "FinalList":
        """Return the list of a search engine or of an imported run, which rank documents, each once."""
        lengths = tuple(0 if facts.error else min(length, len(documents)) for length in max_lengths)
        never = (False,) * len(lengths)
        return cls(key, facts, NO_IDS, documents.scores, None, documents.ids, None, lengths, never)

    @classmethod
    def of_chunks(
        cls, key: ListKey, scored: ScoredList, index: OpenIndex, cuts: Cuts, facts: SearchFacts
    ) -> "FinalList":
        """Return a list of chunks of `index`, collapsed to documents."""
        documents = index.document_ids[scored.ids]
        first = collapse(documents)
        counts = np.zeros(len(cuts.limits), np.int64) if facts.error else cuts.count_kept(scored)
        lengths = np.searchsorted(first, counts)
        short = (lengths < cuts.max_k) & (counts >= cuts.limits) & (counts < len(index.chunk_ids)) & (not facts.error)
        return cls(
            *(key, facts, index.chunk_ids[scored.ids], scored.scores, scored.threshold_scores),
            document_ids=documents[first],
            chunk_ranks=first + 1 if len(first) < len(documents) else None,
            lengths=tuple(lengths.tolist()),
            short=tuple(short.tolist()),
        )


def count_tied(final: FinalList, depth: int) -> NDArray[np.int64]:
    """Return how many of the first n documents, n from 0 to `depth`, have the score of the one before or after.

    Equal scores leave the order to the external ids. A document after `depth` may tie with the last.
    """
    scores = final.scores if final.chunk_ranks is None else final.scores[final.chunk_ranks - 1]
    tied = mark_tied(scores[: len(final.document_ids)], depth)
    return np.concatenate([[0], np.cumsum(tied)]).astype(np.int64)


def store_final_lists(lists: Sequence[FinalList]) -> None:
    """Store final lists, with the number of documents that each run returns."""
    keys, facts = [final.key for final in lists], [final.facts for final in lists]
    timings = [each.timings for each in facts]
    _select_lists({key.source for key in keys}, {key.query_id for key in keys}).delete()
    rows = zip(
        *_encode_lists(lists),
        binary.encode_int8_arrays(final.document_ids for final in lists),
        _encode_optional(binary.encode_int4_arrays, [final.chunk_ranks for final in lists]),
        binary.encode_int4_arrays(final.lengths for final in lists),
        *([binary.float8(times.get(name)) for times in timings] for name in TIMINGS),
        *zip(*(_encode_calls(each.calls) for each in facts), strict=True) if lists else [[]] * len(CALLS),
        strict=True,
    )
    binary.copy_rows(StageList._meta.db_table, (*LIST, *FINAL), rows)


def store_stage_lists(lists_by_source: Mapping[int, Iterable[ChunkList]], query_ids: Collection[int]) -> None:
    """Store the lists of stages, and delete others of the same sources and queries.

    A stored final list of ended runs stays, because their figures depend on it.
    """
    existing = _select_lists(lists_by_source.keys(), query_ids)
    existing.filter(lengths__isnull=True).delete()
    final = set(existing.values_list("source_id", "query_id"))
    lists = [each for group in lists_by_source.values() for each in group if each.key[:2] not in final]
    binary.copy_rows(StageList._meta.db_table, LIST, zip(*_encode_lists(lists), strict=True))


def _encode_lists(lists: Sequence[ChunkList]) -> Iterator[Iterable[bytes]]:
    """Yield the columns of `LIST`. Threshold scores are null if they equal the scores."""
    keys, facts = [each.key for each in lists], [each.facts for each in lists]
    yield (binary.int8(key.source) for key in keys)
    yield (binary.int8(key.query_id) for key in keys)
    yield (binary.int2(key.repetition) for key in keys)
    yield _encode_optional(binary.encode_int8_arrays, [each.chunk_ids for each in lists])
    yield binary.encode_float8_arrays(each.scores for each in lists)
    pairs = [(each.scores, each.threshold_scores) for each in lists]
    thresholds = [None if values is None or np.array_equal(values, scores) else values for scores, values in pairs]
    yield _encode_optional(binary.encode_float8_arrays, thresholds)
    yield (binary.float8(each.duration_ms) for each in facts)
    yield (binary.text(each.error.replace("\0", "")) for each in facts)


def _encode_calls(calls: Calls | None) -> tuple[bytes, ...]:
    if calls is None:
        return (binary.NULL,) * len(CALLS)
    counts = (binary.int4(count) for count in (calls.embed, calls.llm, calls.llm_cached))
    return (*counts, binary.boolean(calls.fallback_used))


def _select_lists(sources: Collection[int], query_ids: Collection[int]) -> QuerySet[StageList]:
    return StageList.objects.filter(source__in=sources, query__in=query_ids)


def _encode_optional(encode: Callable[[Iterable[Any]], Iterator[bytes]], column: Sequence[object]) -> Iterator[bytes]:
    """Encode arrays, with None as null."""
    encoded = encode(NO_IDS if values is None else values for values in column)
    return (binary.NULL if values is None else packed for values, packed in zip(column, encoded, strict=True))
