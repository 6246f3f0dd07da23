"""Contents of the page of a comparison."""

from collections.abc import Sequence
from typing import Any

from django.utils.http import urlencode

from apps.benchmarks.models import Run
from apps.results.charts import Figure
from apps.results.comparison import describing, figures
from apps.results.comparison.axes import Effect, effects_of
from apps.results.comparison.comparing import RunComparison, falls, pinned_baselines
from apps.results.comparison.sentences import choice_sentence, reversal_sentence, verdict_text
from apps.results.leaderboard.coverage import is_coverage, judged_name, uneven_warning
from benchbench.ir.slices import MINIMUM

MOST_PAIRS = 120  # of 16 runs; a page with more loads the table of all pairs when it is opened
MOST_COLUMNS = 8  # runs side by side in a table: the reference and the best of the others


def comparison_context(comparison: RunComparison, bounds: describing.Bounds) -> dict[str, Any]:
    """Return the context of the comparison page."""
    costs = describing.costs_of(comparison, bounds)
    effects = effects_of(comparison) if len(comparison.runs) > 2 else []
    rivals = [run for run in comparison.order if run != comparison.reference]
    columns = [comparison.reference, *rivals][:MOST_COLUMNS]
    slices = describing.by_slice(comparison, only=columns)
    measures = describing.summarise_measures(comparison, only=columns)
    queries = describing.query_differences(comparison, rivals[0]) if len(rivals) == 1 else None
    return {
        "comparison": comparison,
        "statistics": comparison.comparison,
        "benchmarks": list(dict.fromkeys(run.benchmark for run in comparison.runs)),
        "labels": comparison.labels,
        "reference": comparison.runs[comparison.reference],
        "reference_label": comparison.labels[comparison.reference],
        **vars(verdict_text(comparison)),
        "uneven": _uneven(comparison, measures),
        "picked": count_omitted_runs(comparison.runs),
        "rows": [_row(comparison, run) for run in comparison.order],
        "other_pairs": len(comparison.comparison.pairs) - len(rivals),
        "pairs": other_pairs(comparison) if len(comparison.comparison.pairs) <= MOST_PAIRS else [],
        "queries": queries,
        "query_labels": [comparison.labels[rivals[0]], comparison.labels[comparison.reference]],
        **_comparison_tables(comparison, columns, measures, slices),
        "minimum": MINIMUM,
        "reversals": [reversal_sentence(comparison, *row) for row in describing.reversed_runs(comparison)],
        "effects": effects,
        "counted_again": any(effect.sets != effect.pairs for effect in effects),
        "costs": [
            (comparison.runs[run], comparison.labels[run], costs.points[run], run in costs.frontier)
            for run in comparison.order
        ],
        "chosen": costs.choice and comparison.runs[costs.choice.run],
        "choice": choice_sentence(comparison, costs),
        "bounds": bounds,
        "figures": _figures(comparison, costs, effects, slices, queries),
    }


def _comparison_tables(
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


def _figures(
    comparison: RunComparison,
    costs: describing.Costs,
    effects: Sequence[Effect],
    slices: Sequence[describing.SliceDifferences],
    queries: describing.QueryDifferences | None,
) -> dict[str, Figure]:
    """Return the figures that have data."""
    drawn: dict[str, Figure | None] = {
        "differences": figures.difference_figure(comparison),
        "pairs": figures.pair_figure(comparison),
        "effects": figures.effect_figure(effects, comparison.measure) if effects else None,
        "frontier": figures.frontier_figure(comparison, costs),
        "slices": figures.slice_figure(comparison, slices) if slices else None,
        "queries": figures.query_figure(queries.differences, comparison.measure) if queries else None,
    }
    return {name: figure for name, figure in drawn.items() if figure}


def _uneven(comparison: RunComparison, measures: Sequence[describing.MeasureSummary]) -> str:
    """Return the warning that the runs are judged unevenly; "" if unmeasured."""
    name = judged_name(comparison.primary)
    judged = next((row.means for row in measures if row.measure == name), [])
    return uneven_warning(dict(zip(comparison.labels, judged, strict=True))) if judged else ""


def count_omitted_runs(runs: Sequence[Run]) -> int:
    """Return how many completed runs of the only benchmark of `runs` are left out; 0 for several benchmarks."""
    benchmarks = {run.benchmark_id: run.benchmark for run in runs}
    if len(benchmarks) > 1:
        return 0
    (benchmark,) = benchmarks.values()
    return benchmark.runs.filter(status=Run.Status.COMPLETED).count() - len(runs)


def choices(comparison: RunComparison) -> dict[str, Any]:
    """Return the choices of the form: measures, baselines with the pinned ones marked, slices."""
    pinned = pinned_baselines(comparison.runs)
    by_primary = sorted(comparison.values, key=lambda name: name != comparison.primary)
    return {
        "measures": [name for name in by_primary if not is_coverage(name) and not falls(name)],
        "baselines": [
            (run, label, run in pinned) for run, label in zip(comparison.runs, comparison.labels, strict=True)
        ],
        "slices": [(slice_.name, slice_.n, slice_.is_small) for slice_ in comparison.slices],
    }


def _row(comparison: RunComparison, run: int) -> dict[str, Any]:
    """Return the table row of a run against the reference."""
    is_reference = run == comparison.reference
    return {
        "run": comparison.runs[run],
        "label": comparison.labels[run],
        "mean": comparison.comparison.means[run],
        "standing": comparison.standing(run),
        "pair": None if is_reference else comparison.comparison.pair(run, comparison.reference),
        "link": _pair_link(comparison, run, comparison.reference),
    }


def other_pairs(comparison: RunComparison) -> list[dict[str, Any]]:
    """Return every pair without the reference, the better run first."""
    if comparison.comparison.baseline is not None:
        return []
    order = [run for run in comparison.order if run != comparison.reference]
    return [
        {
            "first": comparison.labels[first],
            "second": comparison.labels[second],
            "pair": comparison.comparison.pair(first, second),
            "link": _pair_link(comparison, first, second),
        }
        for index, first in enumerate(order)
        for second in order[index + 1 :]
    ]


def _pair_link(comparison: RunComparison, first: int, second: int) -> str:
    runs = [("run", str(comparison.runs[run].pk)) for run in (first, second)]
    return f"?{urlencode([*runs, ('version', comparison.version.number)])}"
