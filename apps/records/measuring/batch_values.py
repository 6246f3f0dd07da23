"""The values of a batch's rankings: measured once in memory, summed for the progress, and stored by query."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.datasets.versions import load_weights
from apps.mappings.truth import Truth, hash_truth
from apps.operations.models import Batch
from apps.records.lists.final import NO_IDS, FinalList, count_tied
from apps.records.lists.reading import group_by_source
from apps.records.models import BatchValues, Benchmark, Run
from apps.records.models.progress import RunShare
from benchbench.database import binary
from benchbench.database.binary import read_rows
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
class Ties:
    """The positions of rankings within a depth, those with the score of a neighbour, and a query that has such."""

    ranked: int = 0
    tied: int = 0
    tied_query: int | None = None

    def __add__(self, addend: "Ties") -> "Ties":
        first = addend.tied_query if self.tied_query is None else self.tied_query
        return Ties(self.ranked + addend.ranked, self.tied + addend.tied, first)


@dataclass(frozen=True, slots=True)
class SearchedValues:
    """The values of a batch's rankings; of several repetitions of a query, of the first that did not fail.

    `short` has the queries of each run whose lists were cut short, `ties` those up to the greatest cutoff. `in_means`
    marks the queries that count in a mean if they are answered.
    """

    query_ids: Sequence[int]
    values_by_run: Mapping[UUID, MeasuredValues]
    short: Mapping[UUID, list[int]]
    ties: Mapping[UUID, Ties]
    in_means: NDArray[np.bool_]
    weights: Values | None = None

    def compute_shares(self) -> dict[str, RunShare]:
        """Return the share of the batch in the provisional means, by run id."""
        return {str(run_id): self._sum_run(run_id, *valued) for run_id, valued in self.values_by_run.items()}

    def _sum_run(self, run_id: UUID, values: Values, missing: NDArray[np.bool_]) -> RunShare:
        counted = self.in_means & ~missing
        of_counted = values[:, counted]
        valued = ~np.isnan(of_counted)
        if self.weights is None:
            sums, divisors = np.nansum(of_counted, axis=1), np.count_nonzero(valued, axis=1)
        else:
            weights = self.weights[counted]
            sums, divisors = np.nansum(of_counted * weights, axis=1), valued @ weights
        return RunShare(
            completed=len(missing),
            failed=int(missing.sum()),
            counted=int(counted.sum()),
            short=self.short[run_id],
            sums=sums.tolist(),
            valued=divisors.tolist(),
            **asdict(self.ties[run_id]),
        )


def measure_lists(
    benchmark: Benchmark, runs: Iterable[Run], truth: Truth, lists: Iterable[FinalList]
) -> SearchedValues:
    """Measure final lists for the runs that return their first documents, against the `truth` of their queries."""
    by_source_and_query: dict[int | None, dict[int, FinalList]] = {}
    for final in lists:
        by_query = by_source_and_query.setdefault(final.key.source, {})
        if (query_id := final.key.query_id) not in by_query or by_query[query_id].facts.error:
            by_query[query_id] = final
    searched_ids = set().union(*by_source_and_query.values())
    query_ids = [query_id for query_id in truth.grades if query_id in searched_ids]
    truths = Truths.from_grades([truth.grades[query_id] for query_id in query_ids])
    measures = [Measure.parse(name) for name in benchmark.measures]
    values_by_run: dict[UUID, MeasuredValues] = {}
    short, ties, depth = {}, {}, max(benchmark.k_values)
    for source, sharing in group_by_source(runs).items():
        answered = {key: final for key, final in by_source_and_query.get(source, {}).items() if not final.facts.error}
        ranked = {query_id: (final.document_ids, final.lengths) for query_id, final in answered.items()}
        values_by_run |= measure_runs(measures, query_ids, truths, ranked, sharing)
        tied = {query_id: count_tied(final, depth) for query_id, final in answered.items()}
        for run in sharing:
            ties[run.pk] = _sum_ties(tied, {key: final.lengths[run.place - 1] for key, final in answered.items()})
            short[run.pk] = [query_id for query_id, final in answered.items() if final.short[run.place - 1]]
    skips = benchmark.empty_queries == "skip"
    in_means = truths.n_relevant > 0 if skips else np.ones(len(query_ids), bool)
    weights = load_weights(benchmark.weighting, benchmark.dataset_version, query_ids)
    return SearchedValues(query_ids, values_by_run, short, ties, in_means, weights)


def _sum_ties(tied: Mapping[int, NDArray[np.int64]], lengths: Mapping[int, int]) -> Ties:
    """Return the ties of a run that returns `lengths` documents by query; `tied` are the results of `count_tied`."""
    ends = {query_id: min(length, len(tied[query_id]) - 1) for query_id, length in lengths.items()}
    counts = {query_id: int(tied[query_id][end]) for query_id, end in ends.items()}
    query_id = max(counts, key=counts.__getitem__, default=None)
    is_tied = query_id is not None and counts[query_id] > 0
    return Ties(sum(ends.values()), sum(counts.values()), query_id if is_tied else None)


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
