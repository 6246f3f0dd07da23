"""The runs of a benchmark, best first."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np

from apps.datasets.models import DatasetVersion
from apps.execution.progress import build_event
from apps.operations.models import Status
from apps.records.measuring.alternatives import keep_greatest_share
from apps.records.measuring.approximations import render_ann
from apps.records.measuring.measures import FAMILIES
from apps.records.measuring.slicing import compute_means, try_slicing
from apps.records.models import Benchmark, Evaluation, Run
from benchbench.ir.demand import name_mean
from benchbench.ir.measures import Measure
from benchbench.ir.measures.means import has_lost_too_many, unranked_reason
from benchbench.ir.slices import Slice

Values = Mapping[str, float | None]
NARROWER = "Its filter admits fewer documents than that of other runs: it answers another question."
UNFINISHED = "Not ranked: the means of other runs are over other queries."
WEIGHTING = "demand: means are weighted by the demand of the queries; equal: they count every query alike."


@dataclass(frozen=True, slots=True)
class Row:
    """One run on the leaderboard.

    `rank` counts from 1 and is shared by equal values (`tied`); None without a value, and for unranked runs, whose
    reason is `unranked`. `behind`: the difference to the best, at most 0. `so_far`: the number of queries of
    provisional values; None for final ones. `truth`: the hash of the truth of the values over all queries.
    """

    run: Run
    values: Values
    rank: int | None = None
    tied: bool = False
    behind: float | None = None
    so_far: int | None = None
    unranked: str = ""
    truth: str = ""

    @property
    def provisional(self) -> bool:
        return self.so_far is not None

    @property
    def final(self) -> Values:
        """The final values; {} before."""
        return {} if self.provisional else self.values

    @property
    def ms(self) -> float | None:
        """Milliseconds per query."""
        return self.run.times.total_ms

    @property
    def ann(self) -> str:
        """A sentence on the losses of the run's approximate search; "" if it is exact."""
        return render_ann(self.run, self.truth)


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The rows in order, and the evaluation of a completed run for facts that all share.

    `slice`: the queries that the means cover, None for all.
    """

    primary: str
    version: DatasetVersion
    rows: list[Row]
    evaluation: Evaluation | None
    slice: Slice | None = None
    means_name: str = ""  # "weighted by demand", or "" for plain means

    @property
    def title(self) -> str:
        """Return the name of the means of the primary measure: "nDCG@10, weighted by demand"."""
        return name_mean(self.primary, self.means_name)

    @property
    def runs(self) -> list[Run]:
        return [row.run for row in self.rows]

    @property
    def in_run_order(self) -> list[Row]:
        return sorted(self.rows, key=lambda row: row.run.run_order)

    @property
    def best(self) -> Row | None:
        return self.rows[0] if self.rows and self.rows[0].rank else None


def load_leaderboard(benchmark: Benchmark, *, version: DatasetVersion | None = None, within: str = "") -> Leaderboard:
    """Return the current leaderboard of `benchmark`. Three queries, plus those for progress while it runs.

    Its values are those on `version`, by default the benchmark's own. With `within`, the name of a slice, the means
    cover its queries, if the version has that slice. Runs with a mean of the primary measure come first, best first.
    Equal means share a rank and keep the run order. Means of a running run are provisional; they are ranked only among
    those over as many queries, and only while no run has final ones. Unranked runs follow, which lost too many queries
    or search under a smaller filter than others; then those without means: pending, failed and cancelled runs.
    """
    primary = name_primary(benchmark)
    version = version or benchmark.dataset_version
    evaluations = load_evaluations(benchmark, version=version, with_values=bool(within))
    final = next(iter(evaluations.values()), None)
    chosen = _narrow(benchmark, evaluations, within) if within else None
    so_far: dict[str, dict[str, object]] = {}
    is_at_work = benchmark.status == Status.RUNNING and version == benchmark.dataset_version and not chosen
    if is_at_work and benchmark.operation:
        so_far = {run["run_id"]: run for run in build_event(benchmark.operation)["runs"]}
    rows = []
    for run in benchmark.runs.select_related("index").order_by("run_order"):
        if evaluation := evaluations.get(run.pk):
            truth, unranked = "" if chosen else evaluation.truth_hash, _explain_unranked(evaluation, primary, chosen)
            rows.append(Row(run, evaluation.means, unranked=unranked, truth=truth))
        else:
            rows.append(_build_provisional(run, so_far.get(str(run.pk))))
    rows = rank_rows(_set_provisional_apart(_set_apart(rows, primary), primary, so_far), primary)
    return Leaderboard(primary, version, rows, final, chosen, benchmark.means_name)


def _set_apart(rows: list[Row], primary: str) -> list[Row]:
    """Return the rows, unranked if under a smaller filter share than a run that has not failed."""
    runs = [row.run for row in rows if row.run.status not in (Run.Status.FAILED, Run.Status.CANCELLED)]
    narrower = {run.pk for run in runs} - {run.pk for run in keep_greatest_share(runs)}
    return [
        replace(row, unranked=row.unranked or NARROWER)
        if row.run.pk in narrower and row.values.get(primary) is not None
        else row
        for row in rows
    ]


def _set_provisional_apart(rows: list[Row], primary: str, so_far: Mapping[str, Mapping[str, object]]) -> list[Row]:
    """Return the rows, unranked if their means so far are over other queries than the means of another run."""
    valued = [row for row in rows if row.values.get(primary) is not None]
    searched = {so_far[str(row.run.pk)]["completed_queries"] if row.provisional else None for row in valued}
    if len(searched) < 2:
        return rows
    return [replace(row, unranked=row.unranked or UNFINISHED) if row.provisional else row for row in rows]


def _narrow(benchmark: Benchmark, evaluations: dict[UUID, Evaluation], name: str) -> Slice | None:
    """Replace the means of the evaluations, unsaved, by those over the queries of a slice; return that slice."""
    slicing = chosen = None
    for evaluation in evaluations.values():
        if slicing is None or list(slicing.query_ids) != evaluation.query_ids:
            slicing, _ = try_slicing(benchmark, evaluation)
            chosen = slicing.find(name) if slicing else None
        if slicing is None or chosen is None:
            return None
        evaluation.means = compute_means(evaluation, slicing, chosen, evaluation.measures)
    return chosen


def _explain_unranked(evaluation: Evaluation, primary: str, within: Slice | None) -> str:
    """Return why a run is unranked, having lost too many of all queries or of a slice's; "" for a ranked run."""
    if evaluation.unranked or within is None:
        return evaluation.unranked
    lost = within.members & np.isnan(evaluation.get_column(primary))
    n, counted = int(lost.sum()), int((within.members & ~lost).sum())
    if not has_lost_too_many(counted=counted, lost=n):
        return ""
    lost_ids = np.array(evaluation.query_ids)[lost].tolist()
    failed = evaluation.run.query_results.filter(query__in=lost_ids).values("query").distinct().count()
    return f"In this slice: {unranked_reason(counted=counted, failed=failed, unsearched=n - failed)}"


def name_primary(benchmark: Benchmark) -> str:
    return str(Measure("nDCG", benchmark.primary_k))


def select_measures(benchmark: Benchmark, k: int) -> list[str]:
    """Return the measures that a table at cutoff `k` shows after the primary one."""
    names = [f"nDCG@{k}", f"P@{k}", f"R@{k}", "RR", "AP"]
    usual = [name for name in names if name in benchmark.measures and name != name_primary(benchmark)]
    return [*usual, *(name for name in benchmark.measures if _is_further(benchmark, name, k))]


def _is_further(benchmark: Benchmark, name: str, k: int) -> bool:
    """Return whether a measure is an additional one of the benchmark and belongs to the table at cutoff `k`."""
    measure = Measure.parse(name)
    if measure.name == "Judged" or name in ("RR", "AP"):
        return False
    at_k = measure.cutoff in benchmark.k_values
    return not (at_k and measure.name in FAMILIES) and (measure.cutoff == k or not at_k)


def load_evaluations(
    benchmark: Benchmark, *, version: DatasetVersion | None = None, with_values: bool = False, **annotated: object
) -> dict[UUID, Evaluation]:
    """Return the evaluation of each completed run, by run id; without `with_values`, values are deferred.

    On the benchmark's own version, or on another that it was re-scored on. `annotated` is passed to `annotate()`.
    """
    evaluations = Evaluation.objects.filter(
        run__benchmark=benchmark,
        run__status=Run.Status.COMPLETED,
        dataset_version=version or benchmark.dataset_version,
    )
    evaluations = evaluations if with_values else evaluations.defer("values", "query_ids")
    return {evaluation.run_id: evaluation for evaluation in evaluations.annotate(**annotated)}


def rank_rows(rows: list[Row], primary: str) -> list[Row]:
    """Return the rows ordered and ranked by `primary`; unranked rows, then those without a value, keep their order."""
    with_value = [(row, value) for row in rows if (value := row.values.get(primary)) is not None]
    unranked = [row for row, _ in with_value if row.unranked]
    without_value = [row for row in rows if row.values.get(primary) is None]
    valued = sorted(((row, value) for row, value in with_value if not row.unranked), key=lambda pair: -pair[1])
    numbers = [value for _, value in valued]
    ranked_rows = [
        replace(row, rank=numbers.index(number) + 1, tied=numbers.count(number) > 1, behind=number - numbers[0])
        for row, number in valued
    ]
    return ranked_rows + unranked + without_value


def _build_provisional(run: Run, progress: dict[str, Any] | None) -> Row:
    """Return the row of a run without an evaluation, with its means so far if it is running."""
    if progress is None or run.status in (Run.Status.FAILED, Run.Status.CANCELLED):
        return Row(run, {})
    values = {str(Measure.parse(name)): value for name, value in progress["metrics_flat"].items()}
    return Row(run, values, so_far=progress["n"] if values else progress["completed_queries"])
