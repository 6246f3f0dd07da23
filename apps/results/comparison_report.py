"""Comparisons of runs, or of two summaries, for terminals and programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from apps.execution.running.timing import find_execution
from apps.verdicts.comparing import RunComparison
from apps.verdicts.describing import MeasureSummary, summarise_measures
from apps.verdicts.expected import Ends, RoundVerdictReport, describe_expected
from apps.verdicts.migrating import Migration, build_migration
from apps.verdicts.ranked_runs import WEIGHTING
from apps.verdicts.sentences import build_verdict
from benchbench.decimals import signed
from benchbench.files.flowbaby_results import change
from benchbench.ir.measures import Measure
from benchbench.ir.statistics.resampling import Interval
from benchbench.ir.statistics.significance import Pair
from benchbench.ir.statistics.verdict import Standing
from benchbench.reading.strict_json import attributes


@dataclass(frozen=True)
class ComparedRun:
    """A run among those that are compared, with its mean."""

    id: UUID
    label: Annotated[str, "Unique among the compared runs."]
    benchmark: Annotated[str, "Name of the benchmark."]
    config: dict[str, Any]
    git_sha: str | None
    failed_queries: int
    execution: Annotated[str | None, "How its times were measured: shared or isolated."]
    benchmark_id: UUID
    duration_ms: Annotated[int | None, "Time of its own searches."]
    mean: Annotated[float, "Over the compared queries."]
    standing: Annotated[Standing | None, "null if nothing was tested."]


@dataclass(frozen=True)
class DifferenceReport:
    """A run against another: `run` − `compared_with`.

    `p` is null for an untested difference, so that readers do not take it for a test.
    """

    run: UUID
    compared_with: UUID
    difference: float
    interval: Annotated[Ends, "95 % interval of this difference alone."]
    simultaneous: Annotated[Ends | None, "Simultaneous interval of all differences; null below 20 queries."]
    p: Annotated[float | None, "Adjusted for all comparisons; null if not tested."]
    significant: bool | None
    held_back: Annotated[bool | None, "Whether p is small, but the skew of the differences decides against it."]
    effect: Annotated[float | None, "Cohen's d."]
    wins: Annotated[int, "Queries on which `run` is better."]
    ties: int
    losses: int
    improved: Annotated[float, "Share of the demand on which `run` is better; of the queries if they count alike."]
    worsened: float


@dataclass(frozen=True)
class RunSummary:
    """One measure of one run, and how far it is from the reference. It describes: nothing is tested.

    Mean and difference are over the queries on which every run has a value.
    """

    run: UUID
    mean: float | None
    difference: float | None
    interval: Ends | None


@dataclass(frozen=True)
class ComparisonReport:
    """Runs compared query by query."""

    verdict: Annotated[str | None, "A sentence; null if nothing was tested."]
    is_tested: Annotated[bool, "Only the primary measure is tested; small slices are not."]
    shares: Annotated[str, "A sentence on what improved and what got worse."]
    notes: Annotated[list[str], "These shares, what was tested, and the queries left out."]
    dataset_version: str
    measure: str
    weighting: Annotated[str, WEIGHTING]
    effective_queries: Annotated[float, "Queries of equal weight that would be as certain."]
    slice: str | None
    queries: Annotated[int, "Queries that every run answered."]
    seed: int
    alpha: float
    baseline: UUID | None
    reference: Annotated[UUID, "The baseline, or the best run."]
    runs: Annotated[list[ComparedRun], "Best first."]
    differences: list[DifferenceReport]
    measures: Annotated[dict[str, list[RunSummary]], "Every measure that all runs have."]
    warnings: Annotated[list[str], "Other differences between the runs."]
    run_warnings: Annotated[list[str], "What the runs did not read, and other warnings, each after the runs' labels."]
    round_verdict: Annotated[
        RoundVerdictReport | None,
        "The verdict of the judging round that made the version, if it compared these runs by this measure. Then "
        "`verdict`, `reference` and `standing` are its own, and all other figures are those of plain means.",
    ] = None
    migration: Annotated[Migration | None, "Null without a `margin`."] = None


def build_report(comparison: RunComparison, *, margin: float | None = None) -> ComparisonReport:
    """Return the report on a comparison; measures have wire names. With a `margin`, it says what a migration changes.

    A difference is `run` − `compared_with`, which is the reference of the comparison if that is one of the two.
    """
    statistics, reference, sentences = comparison.comparison, comparison.reference, build_verdict(comparison)
    ids = [run.pk for run in comparison.runs]
    pairs = [pair.reversed if pair.first == reference else pair for pair in statistics.pairs]
    return ComparisonReport(
        verdict=sentences.verdict or None,
        is_tested=comparison.is_tested,
        shares=sentences.shares,
        notes=sentences.notes,
        dataset_version=str(comparison.version),
        measure=Measure.parse(comparison.measure).wire,
        weighting=comparison.runs[0].benchmark.weighting,
        effective_queries=statistics.effective,
        slice=comparison.slice.name if comparison.slice else None,
        queries=statistics.n,
        seed=statistics.seed,
        alpha=statistics.alpha,
        baseline=None if statistics.baseline is None else ids[statistics.baseline],
        reference=ids[reference],
        runs=[_report_run(comparison, index) for index in comparison.order],
        differences=[_report_pair(pair, ids, is_tested=comparison.is_tested) for pair in pairs],
        measures={Measure.parse(row.measure).wire: _describe_runs(row, ids) for row in summarise_measures(comparison)},
        warnings=sentences.warnings,
        run_warnings=sentences.run_warnings,
        round_verdict=describe_expected(comparison),
        migration=None if margin is None else build_migration(comparison, margin),
    )


def _report_run(comparison: RunComparison, index: int) -> ComparedRun:
    run, duration = comparison.runs[index], comparison.runs[index].times.cost_ms
    return ComparedRun(
        id=run.pk,
        label=comparison.labels[index],
        benchmark=run.benchmark.name,
        git_sha=run.lineage.git_revision,
        execution=find_execution(run.benchmark, duration),
        **attributes(run, "config", "failed_queries", "benchmark_id"),
        duration_ms=duration,
        mean=comparison.comparison.means[index],
        standing=comparison.verdict.find_standing(index) if comparison.is_tested else None,
    )


def _report_pair(pair: Pair, ids: Sequence[UUID], *, is_tested: bool) -> DifferenceReport:
    return DifferenceReport(
        run=ids[pair.first],
        compared_with=ids[pair.second],
        **attributes(pair, "difference", "effect", "wins", "ties", "losses", "improved", "worsened"),
        interval=[pair.interval.low, pair.interval.high],
        simultaneous=_list_ends(pair.simultaneous) if is_tested else None,
        p=pair.p_adjusted if is_tested else None,
        significant=pair.significant if is_tested else None,
        held_back=pair.held_back if is_tested else None,
    )


def _describe_runs(summary: MeasureSummary, ids: Sequence[UUID]) -> list[RunSummary]:
    return [
        RunSummary(run, mean, change.mean, _list_ends(change.interval))
        for run, mean, change in zip(ids, summary.means, summary.differences, strict=True)
    ]


def _list_ends(interval: Interval | None) -> Ends | None:
    return None if interval is None else [interval.low, interval.high]


def render_pair(report: ComparisonReport) -> str:
    """Return the report on two runs, of which A is the reference, as lines of text: verdict, notes, table."""
    before, after = sorted(report.runs, key=lambda run: run.id != report.reference)
    measures = {}
    for name, summaries in report.measures.items():
        of_before, of_after = sorted(summaries, key=lambda summary: summary.run != report.reference)
        measures[str(Measure.parse(name))] = {"before": of_before.mean, "after": of_after.mean} | vars(of_after)
    facts = {
        "dataset_version": report.dataset_version,
        "warnings": [*report.warnings, *report.run_warnings],
        "runs": [vars(before), vars(after)],
        "duration_ms": change(before.duration_ms, after.duration_ms),
        "measures": measures,
    }
    sentences = [report.verdict or "", report.migration.sentence if report.migration else ""]
    return "\n".join([*filter(None, sentences), *report.notes, render_changes(facts)])


def render_changes(facts: dict[str, Any]) -> str:
    """Return the changes between two summaries, from `compare_summaries`, as lines of text with a table."""
    lines = [f"Dataset {facts['dataset_version']}."]
    for name, run in zip(("A", "B"), facts["runs"], strict=True):
        execution = run["execution"] and f"times {run['execution']}"
        details = [run.get("label"), str(run["id"]), f"git {run['git_sha'] or 'unknown'}", execution]
        lines.append(f"{name}: {', '.join(detail for detail in details if detail)}")
    lines += ["", _render_row("", "A", "B", "B − A")]
    for name, row in facts["measures"].items():
        lines.append(_render_row(name, *(_format_value(row[key]) for key in ("before", "after")), _format_change(row)))
    durations = facts["duration_ms"]
    seconds = ["–" if durations[key] is None else f"{durations[key] / 1000:,.1f} s" for key in ("before", "after")]
    change = "–" if durations["difference"] is None else f"{signed(durations['difference'] / 1000, 1)} s"
    lines.append(_render_row("duration", *seconds, change))
    return "\n".join([*lines, *(f"Note: {warning}" for warning in facts["warnings"])])


def _render_row(*cells: str) -> str:
    name, before, after, change = cells
    return f"{name:16}{before:>12}{after:>12}  {change}".rstrip()


def _format_value(number: float | None) -> str:
    return "–" if number is None else f"{number:z.4f}"


def _format_change(change: dict[str, Any]) -> str:
    if change["difference"] is None:
        return "–"
    interval = change.get("interval")
    between = f" [{signed(interval[0])}, {signed(interval[1])}]" if interval else ""
    return f"{signed(change['difference'])}{between}"
