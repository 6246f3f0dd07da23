"""Contents of the page of a comparison."""

from collections.abc import Sequence

from apps.records.measuring.alternatives import choose_alternatives
from apps.records.models import Run
from apps.results.charts import Figure
from apps.results.comparison import figures
from apps.results.comparison.axes import Effect, compute_effects
from apps.results.comparison.bars import Bar, Line, draw_bars
from apps.results.comparison.highlights import describe_measures, describe_pairs, describe_slices, describe_standings
from apps.results.comparison.panels import build_rows, choose_columns, list_rows
from apps.verdicts import describing
from apps.verdicts.comparing import RunComparison, is_lower_better, list_pinned_baselines
from apps.verdicts.coverage import is_coverage, name_judged
from apps.verdicts.expected import list_expected
from apps.verdicts.sentences import build_verdict, describe_choice
from benchbench.decimals import counted
from benchbench.ir.coverage import describe_uneven


def build_context(comparison: RunComparison, bounds: describing.Bounds) -> dict[str, object]:
    """Return the context of the comparison page, without its folded panels."""
    costs = describing.compute_costs(comparison, bounds)
    effects = compute_effects(comparison) if len(comparison.runs) > 2 else []
    rivals = [run for run in comparison.order if run != comparison.reference]
    queries = describing.compute_query_differences(comparison, rivals[0]) if len(rivals) == 1 else None
    picked, omitted = find_omitted_runs(comparison.runs)
    return {
        "comparison": comparison,
        "statistics": comparison.comparison,
        "benchmarks": list(dict.fromkeys(run.benchmark for run in comparison.runs)),
        "reference": comparison.runs[comparison.reference],
        "reference_label": comparison.labels[comparison.reference],
        **vars(build_verdict(comparison)),
        "expected_rows": list_expected(comparison),
        "uneven": _describe_uneven(comparison),
        "picked": picked,
        "omitted": omitted,
        "rows": build_rows(comparison, list_rows(comparison)),
        "queries": queries,
        "query_labels": [comparison.labels[rivals[0]], comparison.labels[comparison.reference]],
        "effects": list(zip(effects, _draw_effects(effects), strict=True)),
        "counted_again": any(effect.sets != effect.pairs for effect in effects),
        "costs": [
            (comparison.runs[run], comparison.labels[run], costs.points[run], run in costs.frontier)
            for run in comparison.order
        ],
        "chosen": costs.choice and comparison.runs[costs.choice.run],
        "choice": describe_choice(comparison, costs),
        "bounds": bounds,
        "folds": _list_folds(comparison),
        "figures": _plot_figures(comparison, costs, queries),
    }


def _draw_effects(effects: Sequence[Effect]) -> list[Bar | None]:
    return draw_bars(Line(effect.difference, effect.interval) for effect in effects)


def _list_folds(comparison: RunComparison) -> dict[str, str]:
    """Return a sentence on each folded panel that the comparison has, by the panel's name."""
    visible = list_rows(comparison)
    hidden = [run for run in comparison.order if run not in visible]
    words = filter(None, [counted(len(hidden), "more run"), describe_standings(comparison, hidden)])
    folds = {"runs": ": ".join(words)} if hidden else {}
    if len(comparison.runs) == 2 and comparison.is_tested and comparison.comparison.effective >= 2:
        folds["migration"] = "may the new run replace the old one, and how much do their results overlap?"
    if comparison.slices:
        folds["slices"] = describe_slices(comparison, choose_columns(comparison))
    if comparison.comparison.baseline is None and len(comparison.runs) > 2:
        folds["pairs"] = describe_pairs(comparison)
    return folds | {"measures": describe_measures(comparison)}


def _plot_figures(
    comparison: RunComparison, costs: describing.Costs, queries: describing.QueryDifferences | None
) -> dict[str, Figure]:
    """Return the figures that have data."""
    drawn: dict[str, Figure | None] = {
        "frontier": figures.plot_frontier(comparison, costs),
        "calls": figures.plot_calls(comparison, costs),
        "queries": figures.plot_query_differences(queries.differences, comparison.measure) if queries else None,
    }
    return {name: figure for name, figure in drawn.items() if figure}


def _describe_uneven(comparison: RunComparison) -> str:
    """Return the warning that the runs are judged unevenly; "" if unmeasured."""
    judged = comparison.values.get(name_judged(comparison.primary))
    if judged is None:
        return ""
    means = describing.compute_means(judged[:, comparison.members], comparison.compared_weights)
    return describe_uneven(dict(zip(comparison.labels, means, strict=True)), comparison.means_name)


def find_omitted_runs(runs: Sequence[Run]) -> tuple[int, list[str]]:
    """Return how many alternatives of the only benchmark of `runs` are left out, and why other runs are, in sentences.

    Nothing is left out of several benchmarks.
    """
    benchmarks = {run.benchmark_id: run.benchmark for run in runs}
    if len(benchmarks) > 1:
        return 0, []
    (benchmark,) = benchmarks.values()
    alternatives, omitted = choose_alternatives(benchmark.runs.filter(status=Run.Status.COMPLETED))
    are_all = set(runs) <= set(alternatives)
    return len(set(alternatives) - set(runs)), [*omitted.values()] if are_all else []


def list_choices(comparison: RunComparison) -> dict[str, object]:
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
