"""Contents of the page of a comparison."""

from collections.abc import Sequence
from typing import Any

from django.utils.http import urlencode

from apps.benchmarks.models import Run
from apps.results.charts import Figure
from apps.results.comparison import describing, figures
from apps.results.comparison.axes import Effect, compute_effects
from apps.results.comparison.comparing import RunComparison, is_lower_better, list_pinned_baselines
from apps.results.comparison.sentences import build_verdict, describe_choice, describe_reversal
from apps.results.leaderboard.coverage import describe_uneven, is_coverage, name_judged
from benchbench.ir.slices import MINIMUM

MOST_PAIRS = 120  # of 16 runs; a page with more loads the table of all pairs when it is opened
MOST_COLUMNS = 8  # runs side by side in a table: the reference and the best of the others


def build_context(comparison: RunComparison, bounds: describing.Bounds) -> dict[str, Any]:
    """Return the context of the comparison page."""
    costs = describing.compute_costs(comparison, bounds)
    effects = compute_effects(comparison) if len(comparison.runs) > 2 else []
    rivals = [run for run in comparison.order if run != comparison.reference]
    columns = [comparison.reference, *rivals][:MOST_COLUMNS]
    slices = describing.compare_slices(comparison, only=columns)
    measures = describing.summarise_measures(comparison, only=columns)
    queries = describing.compute_query_differences(comparison, rivals[0]) if len(rivals) == 1 else None
    return {
        "comparison": comparison,
        "statistics": comparison.comparison,
        "benchmarks": list(dict.fromkeys(run.benchmark for run in comparison.runs)),
        "labels": comparison.labels,
        "reference": comparison.runs[comparison.reference],
        "reference_label": comparison.labels[comparison.reference],
        **vars(build_verdict(comparison)),
        "uneven": _describe_uneven(comparison, measures),
        "picked": count_omitted_runs(comparison.runs),
        "rows": [_build_row(comparison, run) for run in comparison.order],
        "other_pairs": len(comparison.comparison.pairs) - len(rivals),
        "pairs": list_other_pairs(comparison) if len(comparison.comparison.pairs) <= MOST_PAIRS else [],
        "queries": queries,
        "query_labels": [comparison.labels[rivals[0]], comparison.labels[comparison.reference]],
        **_build_tables(comparison, columns, measures, slices),
        "minimum": MINIMUM,
        "reversals": [describe_reversal(comparison, *row) for row in describing.find_reversed_runs(comparison)],
        "effects": effects,
        "counted_again": any(effect.sets != effect.pairs for effect in effects),
        "costs": [
            (comparison.runs[run], comparison.labels[run], costs.points[run], run in costs.frontier)
            for run in comparison.order
        ],
        "chosen": costs.choice and comparison.runs[costs.choice.run],
        "choice": describe_choice(comparison, costs),
        "bounds": bounds,
        "figures": _plot_figures(comparison, costs, effects, slices, queries),
    }


def _build_tables(
    comparison: RunComparison,
    columns: Sequence[int],
    measures: Sequence[describing.MeasureSummary],
    slices: Sequence[describing.SliceDifferences],
) -> dict[str, Any]:
    """Return the tables with a column for each of some runs."""
    return {
        "columns": [comparison.labels[run] for run in columns],
        "hidden_columns": len(comparison.runs) - len(columns),
        "measures": [(row.measure, [(row.means[run], row.differences[run]) for run in columns]) for row in measures],
        "slices": [(row.slice, [(row.means[run], row.differences[run]) for run in columns]) for row in slices],
    }


def _plot_figures(
    comparison: RunComparison,
    costs: describing.Costs,
    effects: Sequence[Effect],
    slices: Sequence[describing.SliceDifferences],
    queries: describing.QueryDifferences | None,
) -> dict[str, Figure]:
    """Return the figures that have data."""
    drawn: dict[str, Figure | None] = {
        "differences": figures.plot_differences(comparison),
        "pairs": figures.plot_pairs(comparison),
        "effects": figures.plot_effects(effects, comparison.measure) if effects else None,
        "frontier": figures.plot_frontier(comparison, costs),
        "slices": figures.plot_slice_differences(comparison, slices) if slices else None,
        "queries": figures.plot_query_differences(queries.differences, comparison.measure) if queries else None,
    }
    return {name: figure for name, figure in drawn.items() if figure}


def _describe_uneven(comparison: RunComparison, measures: Sequence[describing.MeasureSummary]) -> str:
    """Return the warning that the runs are judged unevenly; "" if unmeasured."""
    name = name_judged(comparison.primary)
    judged = next((row.means for row in measures if row.measure == name), [])
    return describe_uneven(dict(zip(comparison.labels, judged, strict=True))) if judged else ""


def count_omitted_runs(runs: Sequence[Run]) -> int:
    """Return how many completed runs of the only benchmark of `runs` are left out; 0 for several benchmarks."""
    benchmarks = {run.benchmark_id: run.benchmark for run in runs}
    if len(benchmarks) > 1:
        return 0
    (benchmark,) = benchmarks.values()
    return benchmark.runs.filter(status=Run.Status.COMPLETED).count() - len(runs)


def list_choices(comparison: RunComparison) -> dict[str, Any]:
    """Return the choices of the form: measures, baselines with the pinned ones marked, slices."""
    pinned = list_pinned_baselines(comparison.runs)
    by_primary = sorted(comparison.values, key=lambda name: name != comparison.primary)
    return {
        "measures": [name for name in by_primary if not is_coverage(name) and not is_lower_better(name)],
        "baselines": [
            (run, label, run in pinned) for run, label in zip(comparison.runs, comparison.labels, strict=True)
        ],
        "slices": [(slice_.name, slice_.n, slice_.is_small) for slice_ in comparison.slices],
    }


def _build_row(comparison: RunComparison, run: int) -> dict[str, Any]:
    """Return the table row of a run against the reference."""
    is_reference = run == comparison.reference
    return {
        "run": comparison.runs[run],
        "label": comparison.labels[run],
        "mean": comparison.comparison.means[run],
        "standing": comparison.find_standing(run),
        "pair": None if is_reference else comparison.comparison.get_pair(run, comparison.reference),
        "link": _link_pair(comparison, run, comparison.reference),
    }


def list_other_pairs(comparison: RunComparison) -> list[dict[str, Any]]:
    """Return every pair without the reference, the better run first."""
    if comparison.comparison.baseline is not None:
        return []
    order = [run for run in comparison.order if run != comparison.reference]
    return [
        {
            "first": comparison.labels[first],
            "second": comparison.labels[second],
            "pair": comparison.comparison.get_pair(first, second),
            "link": _link_pair(comparison, first, second),
        }
        for index, first in enumerate(order)
        for second in order[index + 1 :]
    ]


def _link_pair(comparison: RunComparison, first: int, second: int) -> str:
    runs = [("run", str(comparison.runs[run].pk)) for run in (first, second)]
    return f"?{urlencode([*runs, ('version', comparison.version.number)])}"
