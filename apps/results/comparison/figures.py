"""The figures of a comparison, built here and drawn in the browser by Plotly, in the wording of the tables."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apps.results.charts import (
    COLOURS,
    Figure,
    compute_height,
    draw_line,
    figure,
    format_hover,
    plot_over_time,
    wrap_text,
)
from apps.results.comparison.axes import Effect
from apps.results.comparison.comparing import RunComparison
from apps.results.comparison.describing import Costs, SliceDifferences
from benchbench.decimals import format_p, short_signed
from benchbench.ir.statistics.resampling import Interval

Cells = Sequence[Sequence[float | None]]
BETTER, WORSE, OPEN = COLOURS[2], COLOURS[1], "#8a94a6"
# Pale enough for the page's text in both themes.
DIVERGING = [[0, "rgba(224, 123, 57, 0.6)"], [0.5, "rgba(128, 136, 150, 0.1)"], [1, "rgba(42, 157, 111, 0.6)"]]
MOST_WRITTEN = 10  # columns of a map up to which cells have room for a number
HEAD = 84  # pixels above and below the rows


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a forest plot: a difference, with its interval if known."""

    label: str
    difference: float
    interval: Interval | None
    colour: str


def plot_differences(comparison: RunComparison) -> Figure:
    """Return the difference of every run to the reference, highest on top; with simultaneous intervals if tested."""
    reference = comparison.reference
    pairs = {run: comparison.comparison.get_pair(run, reference) for run in comparison.order if run != reference}
    lines = [
        Line(
            comparison.labels[run],
            pair.difference,
            pair.simultaneous if comparison.is_tested else pair.interval,
            OPEN if not (comparison.is_tested and pair.significant) else BETTER if pair.difference > 0 else WORSE,
        )
        for run, pair in pairs.items()
    ]
    return _plot_forest(lines, _build_title(comparison))


def plot_effects(effects: Sequence[Effect], measure: str) -> Figure:
    """Return the gain of each value of an axis over the axis's first value."""
    lines = [
        Line(f"{effect.value} vs {effect.reference}", effect.difference, effect.interval, COLOURS[0])
        for effect in effects
    ]
    return _plot_forest(lines, f"average difference in {measure}")


def plot_slice_differences(comparison: RunComparison, slices: Sequence[SliceDifferences]) -> Figure:
    """Return the differences to the reference by slice: with intervals for two runs, as a map for more.

    A slice that is too small for a conclusion has numbers, but no colour.
    """
    rivals = [run for run in comparison.order if run != comparison.reference]
    labels = [f"{in_slice.slice.name}, n\N{NO-BREAK SPACE}{in_slice.slice.n}" for in_slice in slices]
    if len(rivals) == 1:
        (run,) = rivals
        lines = [
            Line(label, difference.mean, difference.interval, OPEN if in_slice.is_small(run) else COLOURS[0])
            for label, in_slice in zip(labels, slices, strict=True)
            if (difference := in_slice.differences[run]).mean is not None
        ]
        return _plot_forest(lines, _build_title(comparison))
    means = [[in_slice.differences[run].mean for run in rivals] for in_slice in slices]
    texts = [["" if mean is None else short_signed(mean, 3) for mean in row] for row in means]
    cells = [
        [None if in_slice.is_small(run) else in_slice.differences[run].mean for run in rivals] for in_slice in slices
    ]
    return _map([comparison.labels[run] for run in rivals], labels, cells, texts)


def plot_pairs(comparison: RunComparison) -> Figure | None:
    """Return a map of all pairs: row − column where significant, with adjusted p. None if untested or under 3 runs."""
    order = comparison.order
    if len(order) < 3 or comparison.comparison.baseline is not None or not comparison.is_tested:
        return None
    pairs = [
        [None if row == column else comparison.comparison.get_pair(row, column) for column in order] for row in order
    ]
    cells = [[pair.difference if pair and pair.significant else 0.0 if pair else None for pair in row] for row in pairs]
    texts = [[format_p(pair.p_adjusted) if pair else "" for pair in row] for row in pairs]
    labels = [comparison.labels[run] for run in order]
    return _map(labels, labels, cells, texts)


def plot_query_differences(differences: Sequence[float], measure: str) -> Figure:
    """Return the differences of two runs on every query, the greatest gain first."""
    ordered = sorted(differences, reverse=True)
    bars = {
        "type": "bar",
        "x": list(range(1, len(ordered) + 1)),
        "y": ordered,
        "marker": {"color": [BETTER if gain > 0 else WORSE for gain in ordered], "line": {"width": 0}},
        "hovertemplate": "%{y:+.4f}<extra></extra>",
    }
    return figure(
        bars,
        x={"title": {"text": "queries, the greatest gain first"}},
        y={"title": {"text": f"difference in {measure}"}, "tickformat": "+.2~f"},
        height=320,
        margin=(64, 16, 16, 48),
        bargap=0,
        showlegend=False,
    )


def plot_frontier(comparison: RunComparison, costs: Costs) -> Figure | None:
    """Return quality over latency, with points sized by the index and filled on the frontier; None without times.

    The chosen run is a star.
    """
    times = {run: ms for run in comparison.order if (ms := costs.points[run].latency_ms) is not None}
    if not times:
        return None
    largest = max((point.index_bytes or 0 for point in costs.points), default=0) or 1
    chosen = costs.choice.run if costs.choice else None
    points = [costs.points[run] for run in times]
    trace = {
        "type": "scatter",
        "x": list(times.values()),
        "y": [point.quality for point in points],
        "mode": "markers",
        "marker": {
            "size": [10 + 12 * float(np.sqrt((point.index_bytes or 0) / largest)) for point in points],
            "symbol": [
                "star" if run == chosen else "circle" if run in costs.frontier else "circle-open" for run in times
            ],
            "color": [COLOURS[0] if run in costs.frontier or run == chosen else OPEN for run in times],
            "opacity": 0.85,
        },
        "text": [comparison.labels[run] for run in times],
        "hovertemplate": format_hover(comparison.measure),
    }
    bound = costs.bounds.latency_ms
    shapes = [] if bound is None else [draw_line(bound, color=OPEN, width=1, dash="dash")]
    layout = {"margin": (64, 16, 16, 56), "showlegend": False, "shapes": shapes}
    return plot_over_time([trace], comparison.runs, list(times.values()), comparison.measure, **layout)


def _plot_forest(lines: Sequence[Line], title: str) -> Figure:
    rows = list(reversed(lines))  # Plotly counts from below
    ends = [line.interval or Interval(line.difference, line.difference) for line in rows]
    trace = {
        "type": "scatter",
        "x": [line.difference for line in rows],
        "y": [wrap_text(line.label) for line in rows],
        "mode": "markers",
        "marker": {"size": 9, "color": [line.colour for line in rows]},
        "error_x": {"visible": False},
        "customdata": [[end.low, end.high] for end in ends],
        "hovertemplate": "%{y}<br>%{x:+.4f} [%{customdata[0]:+.4f}, %{customdata[1]:+.4f}]<extra></extra>",
    }
    shapes = [
        {"type": "line", "x0": end.low, "x1": end.high, "y0": position, "y1": position}
        | {"line": {"color": line.colour, "width": 3}, "layer": "below"}
        for position, (line, end) in enumerate(zip(rows, ends, strict=True))
    ]
    reach = [0.0, *(end.low for end in ends), *(end.high for end in ends)]
    room = 0.06 * (max(reach) - min(reach) or 1)
    ends_of_axis = [min(reach) - room, max(reach) + room]
    heading = {"text": title, "font": {"size": 13}}
    return figure(
        trace,
        x={"title": heading, "tickformat": "+.2~f", "range": ends_of_axis, "zeroline": False},
        y={"range": [-0.6, len(rows) - 0.4], "type": "category"},
        height=HEAD + compute_height([line.label for line in rows]),
        margin=(8, 16, 8, 56),
        shapes=[draw_line(0, color=OPEN, width=1), *shapes],
        showlegend=False,
    )


def _map(columns: Sequence[str], rows: Sequence[str], values: Cells, texts: Sequence[Sequence[str]]) -> Figure:
    """Return a heat map, whose full colour is that of the value farthest from 0."""
    largest = max((abs(value) for row in values for value in row if value is not None), default=0) or 1
    across, down = [wrap_text(column, 14) for column in columns], [wrap_text(row) for row in rows]
    trace = {
        "type": "heatmap",
        "x": across,
        "y": down,
        "z": [list(row) for row in values],
        "text": [list(row) for row in texts],
        "colorscale": DIVERGING,
        "zmin": -largest,
        "zmax": largest,
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hovertemplate": "%{y}<br>%{x}<br>%{text}<extra></extra>",
    }
    plain = {"type": "category", "showgrid": False, "ticks": ""}
    # Not the trace's own text: Plotly chooses its colour for a cell without regard to the page behind it.
    notes = [
        {"x": column, "y": row, "text": text, "showarrow": False}
        for row, written in enumerate(texts)
        for column, text in enumerate(written)
        if text and len(columns) <= MOST_WRITTEN
    ]
    return figure(
        trace,
        x={"side": "top", **plain},
        y={"autorange": "reversed", **plain},
        height=HEAD + 36 + compute_height(rows),
        margin=(8, 8, 8, 8),
        annotations=notes,
    )


def _build_title(comparison: RunComparison) -> str:
    reference = "baseline" if comparison.verdict.against_baseline else "best"
    return f"difference to the {reference}"
