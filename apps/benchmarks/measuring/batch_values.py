"""The values of a batch's rankings: measured once in memory, summed for the progress, and stored by query."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.benchmarks.measuring.reading import NO_IDS, FinalList, by_source, rows_of
from apps.benchmarks.models import BatchValues, Benchmark, Run
from apps.mappings.truth import Truth, truth_hash
from apps.operations.models import Batch
from benchbench.database import binary
from benchbench.ir.measures import Measure, Truths, Values, evaluate

COLUMNS = (
    *("run_id", "batch_id", "measures", "query_ids", "failed_query_ids"),
    *("values", "truth_hash", "was_searched"),
)
Ranked = tuple[NDArray[np.int64], Sequence[int]]  # documents, best first, and the number that each run returns


class Valued(NamedTuple):
    """The values of a run, (m, q), NaN without a value; `missing` marks queries that failed or were not searched."""

    values: Values
    missing: NDArray[np.bool_]


def measured(
    measures: Sequence[Measure],
    query_ids: Sequence[int],
    truths: Truths,
    lists: Mapping[int, Ranked],
    runs: Iterable[Run],
) -> dict[UUID, Valued]:
    """Measure runs that return the first documents of the same lists; each list is graded once."""
    ranked = [lists.get(query_id, (NO_IDS, ())) for query_id in query_ids]
    missing = np.array([query_id not in lists for query_id in query_ids], dtype=bool)
    graded = truths.grade_arrays([documents for documents, _ in ranked])
    valued = {}
    for run in runs:
        lengths = np.array([lengths[run.place - 1] if lengths else 0 for _, lengths in ranked], np.int64)
        values = evaluate(measures, graded.heads(lengths))
        values[:, missing] = np.nan
        valued[run.pk] = Valued(values, missing)
    return valued


@dataclass(frozen=True, slots=True)
class SearchedValues:
    """The values of a batch's rankings; of several repetitions of a query, of the first that did not fail.

    `short` has the queries of each run whose lists were cut short. `in_means` marks the queries that count in a mean if
    they are answered.
    """

    query_ids: Sequence[int]
    valued: Mapping[UUID, Valued]
    short: Mapping[UUID, list[int]]
    in_means: NDArray[np.bool_]

    def sums(self) -> dict[str, dict[str, Any]]:
        """Return the share of the batch in the provisional means, by run id.

        It has the numbers of queries completed, failed and counted, and the queries cut short. For each measure it has
        the sum and the number of values: a query that counts may have no value (`FirstRelevant`).
        """
        return {str(run_id): self._sums(run_id, *valued) for run_id, valued in self.valued.items()}

    def _sums(self, run_id: UUID, values: Values, missing: NDArray[np.bool_]) -> dict[str, Any]:
        counted = self.in_means & ~missing
        return {
            "completed": len(missing),
            "failed": int(missing.sum()),
            "counted": int(counted.sum()),
            "short": self.short[run_id],
            "sums": np.nansum(values[:, counted], axis=1).tolist(),
            "valued": np.count_nonzero(~np.isnan(values[:, counted]), axis=1).tolist(),
        }


def measure_lists(
    benchmark: Benchmark, runs: Iterable[Run], truth: Truth, lists: Iterable[FinalList]
) -> SearchedValues:
    """Measure final lists for the runs that return their first documents, against the `truth` of their queries."""
    by_source_and_query: dict[int | None, dict[int, FinalList]] = {}
    for final in lists:
        of_source = by_source_and_query.setdefault(final.source, {})
        if final.query_id not in of_source or of_source[final.query_id].error:
            of_source[final.query_id] = final
    asked = set().union(*by_source_and_query.values())
    query_ids = [query_id for query_id in truth.grades if query_id in asked]
    truths = Truths.of([truth.grades[query_id] for query_id in query_ids])
    measures = [Measure.parse(name) for name in benchmark.measures]
    valued: dict[UUID, Valued] = {}
    short = {}
    for source, sharing in by_source(runs).items():
        found = {key: final for key, final in by_source_and_query.get(source, {}).items() if not final.error}
        ranked = {query_id: (final.document_ids, final.lengths) for query_id, final in found.items()}
        valued |= measured(measures, query_ids, truths, ranked, sharing)
        for run in sharing:
            short[run.pk] = [query_id for query_id, final in found.items() if final.short[run.place - 1]]
    skips = benchmark.empty_queries == "skip"
    in_means = truths.n_relevant > 0 if skips else np.ones(len(query_ids), bool)
    return SearchedValues(query_ids, valued, short, in_means)


def keep_values(
    batch: Batch,
    measures: Sequence[str],
    query_ids: Sequence[int],
    valued: Mapping[UUID, Valued],
    truth_hash: str,
    *,
    was_searched: bool,
) -> None:
    """Store the values of a batch until its runs end: (m, q) in the order of `query_ids`."""
    ids = np.array(query_ids, np.int64)
    rows = (
        (
            *(binary.uuid(run_id), binary.int8(batch.pk), binary.text_array(measures)),
            *binary.int8_arrays([ids[~missing], ids[missing]]),
            *(binary.field(values[:, ~missing].astype("<f8").tobytes()), binary.text(truth_hash)),
            binary.boolean(was_searched),
        )
        for run_id, (values, missing) in valued.items()
    )
    binary.copy_rows(BatchValues._meta.db_table, COLUMNS, rows)


def forget_values(runs: Iterable[Run]) -> None:
    """Delete the batch values of ended runs."""
    BatchValues.objects.filter(run__in=list(runs)).delete()


def kept_values(run_ids: Collection[UUID], measures: Sequence[str], truth: Truth) -> dict[UUID, Valued]:
    """Load the values of each run whose batches stored all queries, by `measures` and against the grades of `truth`.

    Queries are in the order of `truth`. Values of a later search replace earlier ones. A run is left out if a query has
    no values here, or was measured by other measures or against other grades.
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
            continue  # the same rankings, but other measures or grades
        known[here] = is_same
        if is_same:
            there = here[: len(answered)]
            valued.values[:, here] = np.nan
            valued.values[:, there] = np.frombuffer(values, "<f8").reshape(len(measures), len(answered))
            valued.missing[here] = True
            valued.missing[there] = False
    return {run_id: valued for run_id, (valued, known) in by_run.items() if known.all()}
