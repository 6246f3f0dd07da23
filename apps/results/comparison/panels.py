"""The folded panels of a comparison's page, each loaded when a reader opens it."""

from collections.abc import Callable, Sequence
from typing import Any

from django.utils.http import urlencode

from apps.results.comparison import figures
from apps.results.comparison.bars import Colour, Line, draw_bars
from apps.verdicts import describing
from apps.verdicts.comparing import RunComparison
from apps.verdicts.migrating import MARGIN, Migration, build_migration
from apps.verdicts.sentences import describe_reversal
from benchbench.ir.slices import MINIMUM
from benchbench.ir.statistics.significance import Pair
from benchbench.ir.statistics.wording import describe_few_changes

MOST_ROWS = 12  # runs in the table of the page; more are in a panel of their own
MOST_PAIRS = 120  # in one answer; more follow on request
MOST_COLUMNS = 8  # runs side by side in a table: the reference and the best of the others


def list_rows(comparison: RunComparison) -> list[int]:
    """Return the runs in the table of the page, by falling mean: the best, and the reference."""
    order = comparison.order
    return [run for run in order if run in order[:MOST_ROWS] or run == comparison.reference]


def choose_columns(comparison: RunComparison) -> list[int]:
    """Return the runs side by side in tables: the reference, the best of each strategy, then the best others.

    Runs with the same values as a better one come last.
    """
    order = [comparison.reference, *(run for run in comparison.order if run != comparison.reference)]
    best: dict[str | None, int] = {}
    for run in order:
        index = comparison.runs[run].index
        best.setdefault(index.strategy if index else None, run)
    distinct = {comparison.compared[run].tobytes(): run for run in reversed(order)}
    by_interest = [comparison.reference, *best.values(), *(run for run in order if run in distinct.values()), *order]
    picked = list(dict.fromkeys(by_interest))[:MOST_COLUMNS]
    return [run for run in order if run in picked]


def build_rows(comparison: RunComparison, runs: Sequence[int]) -> list[dict[str, object]]:
    """Return the table rows of `runs` against the reference, with bars on the scale of all runs."""
    reference, statistics = comparison.reference, comparison.comparison
    pairs = {run: statistics.get_pair(run, reference) for run in comparison.order if run != reference}
    against = str(comparison.runs[reference].pk)
    bars = dict(zip(pairs, draw_bars(_draw_pair(comparison, pair) for pair in pairs.values()), strict=True))
    return [
        {
            "run": comparison.runs[run],
            "label": comparison.labels[run],
            "mean": statistics.means[run],
            "standing": comparison.verdict.find_standing(run),
            "pair": pairs.get(run),
            "bar": bars.get(run),
            "link": _link_pair(comparison, run, reference),
            "against": f"?{urlencode([('against', against), *_list_kept(comparison, 'by')])}",
        }
        for run in runs
    ]


def _draw_pair(comparison: RunComparison, pair: Pair) -> Line:
    """Return the line of a pair: its simultaneous interval if the pair was tested; none if too few queries changed."""
    few = describe_few_changes(pair)
    if not comparison.is_tested:
        return Line(pair.difference, None if few else pair.interval)
    colour: Colour = "open" if not pair.significant else "better" if pair.difference > 0 else "worse"
    return Line(pair.difference, None if few else pair.simultaneous, colour)


def _build_runs(comparison: RunComparison, start: int) -> dict[str, object]:
    return {"rows": build_rows(comparison, [run for run in comparison.order if run not in list_rows(comparison)])}


def _build_pairs(comparison: RunComparison, start: int) -> dict[str, Any]:
    pairs = list_other_pairs(comparison)
    listed = pairs[start : start + MOST_PAIRS]
    figure = None if start else figures.plot_pairs(comparison)
    bars = draw_bars(_draw_pair(comparison, one["pair"]) for one in listed)
    return {
        "pairs": [{**one, "bar": bar} for one, bar in zip(listed, bars, strict=True)],
        "start": start,
        "next": start + MOST_PAIRS,
        "following": max(0, len(pairs) - start - MOST_PAIRS),
        "figures": {"pairs": figure} if figure else {},
    }


def _build_slices(comparison: RunComparison, start: int) -> dict[str, object]:
    columns = choose_columns(comparison)
    slices = describing.compare_slices(comparison, only=columns)
    figure = figures.plot_slice_differences(comparison, slices, columns) if len(columns) > 2 else None
    bars = draw_bars(_draw_slice(one, columns[-1]) for one in slices) if len(columns) == 2 else [None] * len(slices)
    return {
        **_describe_columns(comparison, columns),
        "slices": [(row.slice, _list_cells(row, columns), bar) for row, bar in zip(slices, bars, strict=True)],
        "reversals": [describe_reversal(comparison, *row) for row in describing.find_reversed_runs(comparison)],
        "minimum": MINIMUM,
        "figures": {"slices": figure} if figure else {},
    }


def _draw_slice(in_slice: describing.SliceDifferences, run: int) -> Line | None:
    difference = in_slice.differences[run]
    return None if difference.mean is None else Line(difference.mean, difference.interval)


def _build_measures(comparison: RunComparison, start: int) -> dict[str, object]:
    columns = choose_columns(comparison)
    measures = describing.summarise_measures(comparison, only=columns)
    return {
        **_describe_columns(comparison, columns),
        "measures": [(row.measure, _list_cells(row, columns)) for row in measures],
    }


def _describe_columns(comparison: RunComparison, columns: Sequence[int]) -> dict[str, object]:
    return {
        "columns": [comparison.labels[run] for run in columns],
        "hidden_columns": len(comparison.runs) - len(columns),
        "reference_label": comparison.labels[comparison.reference],
    }


def _list_cells(
    row: describing.MeasureSummary | describing.SliceDifferences, columns: Sequence[int]
) -> list[tuple[object, object]]:
    return [(row.means[run], row.differences[run]) for run in columns]


def _build_migration(comparison: RunComparison, start: int, margin: float = MARGIN) -> dict[str, Migration]:
    return {"migration": build_migration(comparison, margin)}


PANELS: dict[str, Callable[..., dict[str, Any]]] = {
    "migration": _build_migration,
    "runs": _build_runs,
    "pairs": _build_pairs,
    "slices": _build_slices,
    "measures": _build_measures,
}


def build_panel(name: str, comparison: RunComparison, *, start: int = 0, **options: Any) -> dict[str, Any]:
    """Return the context of a folded panel.

    `start`: the number of pairs that the page has already. `options`: the `margin` of a migration.
    """
    return {"comparison": comparison, "statistics": comparison.comparison, **PANELS[name](comparison, start, **options)}


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
    within = [("slice", comparison.slice.name)] if comparison.slice else []
    return f"?{urlencode([*runs, *_list_kept(comparison, 'measure'), *within])}"


def _list_kept(comparison: RunComparison, name: str) -> list[tuple[str, Any]]:
    """Return the parameters of the version and, if it is another than the primary one, of the measure."""
    measure = [(name, comparison.measure)] if comparison.measure != comparison.primary else []
    return [("version", comparison.version.number), *measure]
