"""The values of a batch's rankings: measured once in memory, summed for the progress, and stored by query."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.benchmarks.measuring.reading import NO_IDS, FinalList, group_by_source, read_rows
from apps.benchmarks.measuring.weighting import load_weights
from apps.benchmarks.models import BatchValues, Benchmark, Run
from apps.mappings.truth import Truth, hash_truth
from apps.operations.models import Batch
from benchbench.database import binary
from benchbench.ir.measures import Measure, Truths, Values, evaluate

COLUMNS = (
    *("run_id", "batch_id", "measures", "query_ids", "failed_query_ids"),
    *("values", "truth_hash", "was_searched"),
)
Ranked = tuple[NDArray[np.int64], Sequence[int]]  # documents, best first, and the number that each run returns


class MeasuredValues(NamedTuple):
    """The values of a run, (m, q), NaN without a value; `missing` marks queries that failed or were not searched."""

    values: Values
    missing: NDArray[np.bool_]


def measure_runs(
    measures: Sequence[Measure],
    query_ids: Sequence[int],
    truths: Truths,
    lists: Mapping[int, Ranked],
    runs: Iterable[Run],
) -> dict[UUID, MeasuredValues]:
    """Measure runs that return the first documents of the same lists; each list is graded once."""
    ranked = [lists.get(query_id, (NO_IDS, ())) for query_id in query_ids]
    missing = np.array([query_id not in lists for query_id in query_ids], dtype=bool)
    graded = truths.grade_arrays([documents for documents, _ in ranked])
    values_by_run = {}
    for run in runs:
        lengths = np.array([lengths[run.place - 1] if lengths else 0 for _, lengths in ranked], np.int64)
        values = evaluate(measures, graded.heads(lengths))
        values[:, missing] = np.nan
        values_by_run[run.pk] = MeasuredValues(values, missing)
    return values_by_run


@dataclass(frozen=True, slots=True)
class SearchedValues:
    """The values of a batch's rankings; of several repetitions of a query, of the first that did not fail.

    `short` has the queries of each run whose lists were cut short. `in_means` marks the queries that count in a mean if
    they are answered.
    """

    query_ids: Sequence[int]
    values_by_run: Mapping[UUID, MeasuredValues]
    short: Mapping[UUID, list[int]]
    in_means: NDArray[np.bool_]
    weights: Values | None = None

    def compute_sums(self) -> dict[str, dict[str, Any]]:
        """Return the share of the batch in the provisional means, by run id.

        It has the numbers of queries completed, failed and counted, and the queries cut short. For each measure it has
        the sum and the number of values: a query that counts may have no value (`FirstRelevant`). With weights these
        are the sum of weight × value, and of the weights.
        """
        return {str(run_id): self._sum_run(run_id, *valued) for run_id, valued in self.values_by_run.items()}

    def _sum_run(self, run_id: UUID, values: Values, missing: NDArray[np.bool_]) -> dict[str, Any]:
        counted = self.in_means & ~missing
        of_counted = values[:, counted]
        valued = ~np.isnan(of_counted)
        if self.weights is None:
            sums, divisors = np.nansum(of_counted, axis=1), np.count_nonzero(valued, axis=1)
        else:
            weights = self.weights[counted]
            sums, divisors = np.nansum(of_counted * weights, axis=1), valued @ weights
        return {
            "completed": len(missing),
            "failed": int(missing.sum()),
            "counted": int(counted.sum()),
            "short": self.short[run_id],
            "sums": sums.tolist(),
            "valued": divisors.tolist(),
        }


def measure_lists(
    benchmark: Benchmark, runs: Iterable[Run], truth: Truth, lists: Iterable[FinalList]
) -> SearchedValues:
    """Measure final lists for the runs that return their first documents, against the `truth` of their queries."""
    by_source_and_query: dict[int | None, dict[int, FinalList]] = {}
    for final in lists:
        by_query = by_source_and_query.setdefault(final.source, {})
        if final.query_id not in by_query or by_query[final.query_id].error:
            by_query[final.query_id] = final
    searched_ids = set().union(*by_source_and_query.values())
    query_ids = [query_id for query_id in truth.grades if query_id in searched_ids]
    truths = Truths.from_grades([truth.grades[query_id] for query_id in query_ids])
    measures = [Measure.parse(name) for name in benchmark.measures]
    values_by_run: dict[UUID, MeasuredValues] = {}
    short = {}
    for source, sharing in group_by_source(runs).items():
        answered = {key: final for key, final in by_source_and_query.get(source, {}).items() if not final.error}
        ranked = {query_id: (final.document_ids, final.lengths) for query_id, final in answered.items()}
        values_by_run |= measure_runs(measures, query_ids, truths, ranked, sharing)
        for run in sharing:
            short[run.pk] = [query_id for query_id, final in answered.items() if final.short[run.place - 1]]
    skips = benchmark.empty_queries == "skip"
    in_means = truths.n_relevant > 0 if skips else np.ones(len(query_ids), bool)
    weights = load_weights(benchmark.weighting, benchmark.dataset_version, query_ids)
    return SearchedValues(query_ids, values_by_run, short, in_means, weights)


def store_values(
    batch: Batch,
    measures: Sequence[str],
    query_ids: Sequence[int],
    values_by_run: Mapping[UUID, MeasuredValues],
    truth_hash: str,
    *,
    was_searched: bool,
) -> None:
    """Store the values of a batch until its runs end: (m, q) in the order of `query_ids`."""
    ids = np.array(query_ids, np.int64)
    rows = (
        (
            *(binary.uuid(run_id), binary.int8(batch.pk), binary.text_array(measures)),
            *binary.encode_int8_arrays([ids[~missing], ids[missing]]),
            *(binary.field(values[:, ~missing].astype("<f8").tobytes()), binary.text(truth_hash)),
            binary.boolean(was_searched),
        )
        for run_id, (values, missing) in values_by_run.items()
    )
    binary.copy_rows(BatchValues._meta.db_table, COLUMNS, rows)


def delete_values(runs: Iterable[Run]) -> None:
    """Delete the batch values of ended runs."""
    BatchValues.objects.filter(run__in=list(runs)).delete()


def load_values(run_ids: Collection[UUID], measures: Sequence[str], truth: Truth) -> dict[UUID, MeasuredValues]:
    """Load the values of each run whose batches stored all queries, by `measures` and against the grades of `truth`.

    Queries are in the order of `truth`. Values of a later search replace earlier ones. A run is left out if a query has
    no values here, or was measured by other measures or against other grades.
    """
    columns = {query_id: column for column, query_id in enumerate(truth.grades)}
    hash_of = cache(lambda queries: hash_truth(truth, queries))
    by_run: dict[UUID, tuple[MeasuredValues, NDArray[np.bool_]]] = {}
    rows = (
        BatchValues.objects.filter(run__in=run_ids)
        .order_by("pk")
        .values_list("run_id", "measures", "query_ids", "failed_query_ids", "truth_hash", "values", "was_searched")
    )
    for run_id, names, answered, failed, digest, values, was_searched in read_rows(rows):
        if run_id not in by_run:
            empty = np.full((len(measures), len(columns)), np.nan)
            by_run[run_id] = MeasuredValues(empty, np.ones(len(columns), bool)), np.zeros(len(columns), bool)
        valued, covered = by_run[run_id]
        ids = [*answered, *failed]
        indices = [columns[query_id] for query_id in ids if query_id in columns]
        is_same = len(indices) == len(ids) and names == list(measures) and hash_of(frozenset(ids)) == digest
        if not was_searched and not is_same:
            continue  # the same rankings, but other measures or grades
        covered[indices] = is_same
        if is_same:
            answered_indices = indices[: len(answered)]
            valued.values[:, indices] = np.nan
            valued.values[:, answered_indices] = np.frombuffer(values, "<f8").reshape(len(measures), len(answered))
            valued.missing[indices] = True
            valued.missing[answered_indices] = False
    return {run_id: valued for run_id, (valued, covered) in by_run.items() if covered.all()}
