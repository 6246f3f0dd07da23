"""The values of a batch's rankings: measured once, while they are in memory, told as sums so far, and kept by query."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.benchmarks.measuring.reading import FinalList, rows_of
from apps.benchmarks.models import BatchValues, Benchmark, Run
from apps.mappings.truth import Truth, truth_hash
from apps.operations.models import Batch
from benchbench.database import binary
from benchbench.ir.measures import GradedRankings, Measure, Truths, Values, evaluate

COLUMNS = (
    *("run_id", "batch_id", "measures", "query_ids", "failed_query_ids"),
    *("values", "truth_hash", "was_searched"),
)
Ids = Sequence[int] | NDArray[np.int64]
Row = tuple[UUID, Ids, Ids, Values]  # a run, its queries that have values, those that failed, and the values (m, q)


class Valued(NamedTuple):
    """The values of a run, (m, q), NaN where a query has none; and which queries are `missing`, failed or not asked."""

    values: Values
    missing: NDArray[np.bool_]


@dataclass(slots=True)
class _Part:
    """What is known of one run: queries in the order they were measured in, their values and whether each counts."""

    answered: dict[int, None] = field(default_factory=dict)
    failed: dict[int, None] = field(default_factory=dict)
    short: list[int] = field(default_factory=list)
    values: list[Values] = field(default_factory=list)
    counted: list[NDArray[np.bool_]] = field(default_factory=list)


class Measuring:
    """Measures the rankings of one batch's queries for its runs: of several repetitions the first that did not fail."""

    def __init__(self, benchmark: Benchmark, runs: Iterable[Run], truth: Truth) -> None:
        """`truth` is that of the batch's queries."""
        self._runs = {run.pk for run in runs}
        self.measures = list(benchmark.measures)
        self.truth_hash = truth_hash(truth)
        self._parsed = [Measure.parse(name) for name in benchmark.measures]
        self._skips_empty = benchmark.empty_queries == "skip"
        self._parts: dict[UUID, _Part] = {}
        # Most runs have all queries.
        self._truths = lru_cache(lambda query_ids: Truths.of([truth.grades[query_id] for query_id in query_ids]))

    def add(self, lists: Iterable[FinalList]) -> None:
        """Measure what is new among `lists`, for each run of its own first documents; repetitions come in order."""
        by_source: dict[int, list[FinalList]] = {}
        for final_list in lists:
            by_source.setdefault(final_list.source, []).append(final_list)
        for some in by_source.values():
            self._add(some)

    def _add(self, lists: Sequence[FinalList]) -> None:
        """Measure lists of one source, which all of its runs answered alike, or failed."""
        measured = [(place, run) for place, run in enumerate(lists[0].run_ids) if run in self._runs]
        parts = {place: self._parts.setdefault(run, _Part()) for place, run in measured}
        if not parts:
            return
        first = next(iter(parts.values()))
        new: dict[int, FinalList] = {}
        lost: dict[int, None] = {}
        for final_list in lists:
            if final_list.query_id in first.answered or final_list.query_id in new:
                continue
            if final_list.error:
                lost[final_list.query_id] = None
            else:
                new[final_list.query_id] = final_list
        is_new = not first.values
        for part in parts.values():
            part.failed |= lost
            part.failed = {query_id: None for query_id in part.failed if query_id not in new}
        if new or is_new:
            graded = self._truths(tuple(new)).grade_arrays([final_list.document_ids for final_list in new.values()])
            for place, part in parts.items():
                self._measure(part, place, new, graded)

    def _measure(self, part: _Part, place: int, new: Mapping[int, FinalList], graded: GradedRankings) -> None:
        heads = graded.heads(np.array([final_list.lengths[place] for final_list in new.values()], np.int64))
        part.answered |= dict.fromkeys(new)
        part.short += [query_id for query_id, final_list in new.items() if final_list.short[place]]
        part.values.append(evaluate(self._parsed, heads))
        part.counted.append(graded.has_relevant if self._skips_empty else np.ones(len(new), bool))

    def told(self) -> dict[str, dict[str, Any]]:
        """Return by run id what the values add to the provisional means: queries completed, failed and counted, those
        cut short; per measure the sum of the values and how many there are, since a query that counts may have none
        (`FirstRelevant`)."""
        return {str(run_id): _sums(part) for run_id, part in self._parts.items()}

    def rows(self) -> Iterator[Row]:
        for run_id, part in self._parts.items():
            yield run_id, list(part.answered), list(part.failed), np.hstack(part.values)


def keep_values(batch: Batch, measuring: Measuring) -> None:
    """Store the values of a batch for the end of its runs."""
    _store(batch, measuring.measures, measuring.truth_hash, measuring.rows(), was_searched=True)


def _store(batch: Batch, measures: Sequence[str], truth_hash: str, rows: Iterable[Row], *, was_searched: bool) -> None:
    def encoded() -> Iterator[tuple[bytes, ...]]:
        for run_id, answered, failed, values in rows:
            yield (
                *(binary.uuid(run_id), binary.int8(batch.pk), binary.text_array(measures)),
                *binary.int8_arrays([answered, failed]),
                *(binary.field(values.astype("<f8").tobytes()), binary.text(truth_hash), binary.boolean(was_searched)),
            )

    binary.copy_rows(BatchValues._meta.db_table, COLUMNS, encoded())


def _sums(part: _Part) -> dict[str, Any]:
    counted = np.concatenate(part.counted)
    values = np.hstack(part.values)[:, counted]
    return {
        "completed": len(part.answered) + len(part.failed),
        "failed": len(part.failed),
        "counted": int(counted.sum()),
        "short": part.short,
        "sums": np.nansum(values, axis=1).tolist(),
        "valued": np.count_nonzero(~np.isnan(values), axis=1).tolist(),
    }


def keep_measured(
    batch: Batch, measures: Sequence[str], query_ids: Sequence[int], valued: Mapping[UUID, Valued], truth_hash: str
) -> None:
    """Store the values of whole runs, (m, q) in the order of `query_ids`, that a batch measured from stored lists."""
    whole = np.array(query_ids, np.int64)
    rows = (
        (run_id, whole[~missing], whole[missing], values[:, ~missing]) for run_id, (values, missing) in valued.items()
    )
    _store(batch, measures, truth_hash, rows, was_searched=False)


def forget_values(runs: Iterable[Run]) -> None:
    """Delete what batches kept of runs that have ended."""
    BatchValues.objects.filter(run__in=list(runs)).delete()


def kept_values(run_ids: Collection[UUID], measures: Sequence[str], truth: Truth) -> dict[UUID, Valued]:
    """Return the values of each run of which batches kept every query's, by `measures` and against these grades.

    Queries are in the order of `truth`. What a later search kept of a query replaces what was kept before. A run is
    left out where one of its queries has no values here, or was measured by other measures or against other grades.
    """
    places = {query_id: place for place, query_id in enumerate(truth.grades)}
    hash_of = cache(lambda queries: truth_hash(truth, queries))
    by_run: dict[UUID, tuple[Valued, NDArray[np.bool_]]] = {}
    rows = (
        BatchValues.objects.filter(run__in=run_ids)
        .order_by("pk")
        .values_list("run_id", "measures", "query_ids", "failed_query_ids", "truth_hash", "values", "was_searched")
    )
    for run_id, names, answered, failed, hashed, values, was_searched in rows_of(rows):
        if run_id not in by_run:
            empty = np.full((len(measures), len(places)), np.nan)
            by_run[run_id] = Valued(empty, np.ones(len(places), bool)), np.zeros(len(places), bool)
        valued, known = by_run[run_id]
        both = [*answered, *failed]
        here = [places[query_id] for query_id in both if query_id in places]
        is_same = len(here) == len(both) and names == list(measures) and hash_of(frozenset(both)) == hashed
        if not was_searched and not is_same:
            continue  # the same rankings, measured otherwise
        known[here] = is_same
        if is_same:
            there = here[: len(answered)]
            valued.values[:, here] = np.nan
            valued.values[:, there] = np.frombuffer(values, "<f8").reshape(len(measures), len(answered))
            valued.missing[here] = True
            valued.missing[there] = False
    return {run_id: valued for run_id, (valued, known) in by_run.items() if known.all()}
