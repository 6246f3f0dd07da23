"""The figures of a comparison, built here and drawn in the browser by Plotly, in the wording of the tables."""

from collections.abc import Mapping, Sequence

import numpy as np

from apps.results.charts import COLOURS, Figure, compute_height, draw_line, figure, plot_over_time, wrap_text
from apps.verdicts.comparing import RunComparison
from apps.verdicts.describing import Costs, SliceDifferences
from benchbench.decimals import format_p, short_signed

Cells = Sequence[Sequence[float | None]]
BETTER, WORSE, OPEN = COLOURS[2], COLOURS[1], "#8a94a6"
# Pale enough for the page's text in both themes.
DIVERGING = [[0, "rgba(224, 123, 57, 0.6)"], [0.5, "rgba(128, 136, 150, 0.1)"], [1, "rgba(42, 157, 111, 0.6)"]]
MOST_WRITTEN = 10  # columns of a map up to which cells have room for a number
MOST_WRAPPED = 24  # rows or columns of a map up to which their labels have room to be wrapped
CROWDED = 15  # pixels of a row of a map with more
HEAD = 84  # pixels above and below the rows
MARGIN = (64, 16, 16, 56)


def plot_slice_differences(
    comparison: RunComparison, slices: Sequence[SliceDifferences], columns: Sequence[int]
) -> Figure:
    """Return a map of the differences to the reference, of the runs `columns` by slice.

    A slice that is too small for a conclusion has numbers, but no colour.
    """
    rivals = [run for run in columns if run != comparison.reference]
    labels = [f"{in_slice.slice.name}, n\N{NO-BREAK SPACE}{in_slice.slice.n}" for in_slice in slices]
    means = [[in_slice.differences[run].mean for run in rivals] for in_slice in slices]
    texts = [["" if mean is None else short_signed(mean, 3) for mean in row] for row in means]
    cells = [[None] * len(row) if one.slice.is_small else row for one, row in zip(slices, means, strict=True)]
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
        y={"title": {"text": f"{measure}, run − reference"}, "tickformat": "+.2~f"},
        height=320,
        margin=(64, 16, 16, 48),
        bargap=0,
        showlegend=False,
    )


def plot_frontier(comparison: RunComparison, costs: Costs) -> Figure | None:
    """Return quality over latency; None without times."""
    times = {run: ms for run in comparison.order if (ms := costs.points[run].latency_ms) is not None}
    if not times:
        return None
    bound = costs.bounds.latency_ms
    return plot_over_time(
        [_trace_points(comparison, costs, times, "%{x:.1f} ms per query")],
        comparison.runs,
        list(times.values()),
        comparison.title,
        margin=MARGIN,
        showlegend=False,
        shapes=[] if bound is None else [draw_line(bound, color=OPEN, width=1, dash="dash")],
    )


def plot_calls(comparison: RunComparison, costs: Costs) -> Figure | None:
    """Return quality over calls of a language model per query; None if no run calls one."""
    if not any(point.llm_calls for point in costs.points):
        return None
    calls = {run: costs.points[run].llm_calls for run in comparison.order}
    return figure(
        _trace_points(comparison, costs, calls, "%{x:.2~f} calls per query"),
        x={"title": {"text": "calls of a language model per query"}, "rangemode": "tozero"},
        y={"title": {"text": f"mean {comparison.title}"}, "tickformat": ".3~f"},
        height=300,
        margin=MARGIN,
        hovermode="closest",
        showlegend=False,
    )


def _trace_points(comparison: RunComparison, costs: Costs, places: Mapping[int, float], unit: str) -> Figure:
    """Return a point per run, sized by its index and filled on the frontier. The chosen run is a star."""
    largest = max((point.index_bytes or 0 for point in costs.points), default=0) or 1
    chosen = costs.choice.run if costs.choice else None
    points = [costs.points[run] for run in places]
    return {
        "type": "scatter",
        "x": list(places.values()),
        "y": [point.quality for point in points],
        "mode": "markers",
        "marker": {
            "size": [10 + 12 * float(np.sqrt((point.index_bytes or 0) / largest)) for point in points],
            "symbol": [
                "star" if run == chosen else "circle" if run in costs.frontier else "circle-open" for run in places
            ],
            "color": [COLOURS[0] if run in costs.frontier or run == chosen else OPEN for run in places],
            "opacity": 0.85,
        },
        "text": [comparison.labels[run] for run in places],
        "hovertemplate": f"%{{text}}<br>{comparison.measure} %{{y:.4f}}<br>{unit}<extra></extra>",
    }


def _map(columns: Sequence[str], rows: Sequence[str], values: Cells, texts: Sequence[Sequence[str]]) -> Figure:
    """Return a heat map, whose full colour is that of the value farthest from 0."""
    largest = max((abs(value) for row in values for value in row if value is not None), default=0) or 1
    crowded = len(rows) > MOST_WRAPPED
    across = list(columns) if len(columns) > MOST_WRAPPED else [wrap_text(column, 14) for column in columns]
    down = list(rows) if crowded else [wrap_text(row) for row in rows]
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
        x={"side": "top", "showticklabels": len(columns) <= MOST_WRAPPED, **plain},
        y={"autorange": "reversed", "tickfont": {"size": 11 if crowded else 13}, **plain},
        height=HEAD + (36 + (CROWDED * len(rows) if crowded else compute_height(rows))),
        margin=(8, 8, 8, 8),
        annotations=notes,
    )
