"""Figures, built here and drawn in the browser by Plotly. Text and grid there take their colours from the page's theme.

A figure is plain JSON, as Plotly documents it. Plotly's Python package would only validate that; it takes a second to
import and longer than the rest of a page to run.
"""

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from apps.execution.running.timing import mark_shared
from apps.records.models import Run
from apps.verdicts.configurations import find_varying, list_phrases, spell_settings
from apps.verdicts.ranked_runs import Leaderboard, Row
from benchbench.ir.planning.configuration import SEARCH_MODES

Figure = dict[str, Any]
COLOURS = ["#2f6fde", "#e07b39", "#2a9d6f", "#b04bc0", "#c9a227", "#5f6b7a"]
ROW, LINE = 34, 18  # pixels of a row next to an axis, and of a line of its label
WIDEST = 24  # letters of a line next to an axis: more would not fit on a narrow page
MOST_NAMED = 12  # points with a name in the figure; the names of more would overlap
SYMBOLS = {False: "circle", True: "diamond"}
SIGNS = str.maketrans({"&": "&amp;", "<": "&lt;"})
TAGS = re.compile("&lt;(br|/?extra)>")  # those that figures are written with
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}  # above the figure


def plot_quality(board: Leaderboard) -> dict[str, Any] | None:
    """Return the figure of the primary measure over milliseconds per query, a point per run; None without values.

    The colour shows the search mode, a diamond the reranker. Time is logarithmic if the slowest run takes over twenty
    times as long as the quickest.
    """
    rows = [row for row in board.rows if row.rank and row.ms]
    if not rows:
        return None
    configs = spell_settings(row.run.config for row in rows)
    keys = find_varying(configs)
    labels = {row.run.pk: ", ".join(list_phrases(config, keys)) for row, config in zip(rows, configs, strict=True)}
    modes = sorted({find_mode(row.run) for row in rows})
    groups = [[row for row in rows if find_mode(row.run) == mode] for mode in modes]
    times = [row.ms for row in rows if row.ms]
    traces = [_trace(group, board.primary, labels) for group in groups]
    if len(rows) <= MOST_NAMED:
        traces = [_name_points(trace, math.sqrt(min(times) * max(times))) for trace in traces]
    return plot_over_time(traces, [row.run for row in rows], times, board.title, margin=(64, 16, 40, 56), legend=LEGEND)


def plot_over_time(
    traces: list[Figure], runs: Iterable[Run], times: list[float], measure: str, **layout: Any
) -> Figure:
    """Return a figure of the mean of a measure over milliseconds per query."""
    return figure(
        *traces,
        x={"title": {"text": f"ms per query{mark_shared(runs)}"}, **time_axis(times)},
        y={"title": {"text": f"mean {measure}"}, "tickformat": ".3~f"},
        height=320,
        hovermode="closest",
        **layout,
    )


def format_hover(measure: str) -> str:
    return "%{text}<br>" + measure + " %{y:.4f}<br>%{x:.1f} ms per query<extra></extra>"


def time_axis(times: list[float]) -> dict[str, Any]:
    """Return an axis from 0, or a logarithmic one if the slowest takes over twenty times as long as the quickest.

    The logarithmic axis has ticks at 1, 2 and 5 of each power of ten, over many powers only at these: Plotly's own
    differ in size.
    """
    if max(times) <= 20 * min(times):
        return {"rangemode": "tozero"}
    powers = range(math.floor(math.log10(min(times))), math.ceil(math.log10(max(times))) + 1)
    ticks = [round(step * 10.0**power, 6) for power in powers for step in ((1, 2, 5) if len(powers) < 5 else (1,))]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def figure(*traces: Figure, x: Figure, y: Figure, height: int, margin: Sequence[int], **layout: Any) -> Figure:
    """Return a figure; `margin` is the pixels left, right, above and below.

    Plotly reads texts as HTML: links and bold words, too. In a figure they are plain, but for line breaks.
    """
    margins = dict(zip("lrtb", margin, strict=True))
    described = {"xaxis": x, "yaxis": y, "height": height, "margin": margins, **layout}
    return {"data": [_escape(trace) for trace in traces], "layout": _escape(described)}


def _escape(value: object) -> Any:
    """Return a value of a figure with its texts escaped, except `customdata`, which holds addresses."""
    if isinstance(value, str):
        return TAGS.sub(r"<\1>", value.translate(SIGNS))
    if isinstance(value, dict):
        return {name: item if name == "customdata" else _escape(item) for name, item in value.items()}
    return [_escape(item) for item in value] if isinstance(value, list | tuple) else value


def draw_line(x: float | str, **line: object) -> Figure:
    """Return a vertical line over the whole height of a figure."""
    return {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def compute_height(labels: Sequence[str]) -> int:
    """Return the height in pixels of rows with these labels, wrapped: all have the height of the longest."""
    lines = max((wrap_text(label).count("<br>") + 1 for label in labels), default=1)
    return len(labels) * max(ROW, LINE * lines + LINE // 2)


def wrap_text(text: str, width: int = WIDEST) -> str:
    """Return `text` in lines of at most `width` letters, for Plotly."""
    return "<br>".join(textwrap.wrap(text, width))


def plot_sparkline(points: Sequence[tuple[float, object]], *, width: int = 240, height: int = 44) -> Figure:
    """Return a small line as SVG: `lines` are the points of polylines, `dots` the centres of points.

    `points` are values from left to right, each with a key; only neighbours with equal keys are joined. The height
    shows the range of the values; equal values are in the middle.
    """
    values = [value for value, _ in points]
    low, span, margin = min(values), max(values) - min(values), 4
    step = (width - 2 * margin) / max(len(values) - 1, 1)
    dots = [
        (
            round(margin + step * index if len(values) > 1 else width / 2, 1),
            round(height - margin - (height - 2 * margin) * ((value - low) / span if span else 0.5), 1),
        )
        for index, value in enumerate(values)
    ]
    joined = groupby(zip(dots, points, strict=True), key=lambda pair: pair[1][1])
    lines = [[f"{x},{y}" for (x, y), _ in group] for _, group in joined]
    polylines = [" ".join(line) for line in lines if len(line) > 1]
    return {"width": width, "height": height, "lines": polylines, "dots": dots}


def find_mode(run: Run) -> str:
    """Return the search mode of a run; "" for an external one."""
    return "" if run.is_external else run.configuration.search_mode


def describe_mode(run: Run) -> tuple[str, str]:
    """Return a run's search mode in words, and its colour."""
    mode = find_mode(run)
    order = SEARCH_MODES.index(mode) if mode in SEARCH_MODES else -1
    return " ".join(list_phrases({"search_mode": mode}, ["search_mode"])), COLOURS[order]


def mark_reranked(runs: Iterable[Run]) -> list[str]:
    """Return the symbol of each run, which shows whether it has a reranker."""
    return [SYMBOLS[run.configuration.use_reranker] for run in runs]


def _trace(rows: list[Row], primary: str, labels: Mapping[Any, str]) -> dict[str, object]:
    name, colour = describe_mode(rows[0].run)
    return {
        "type": "scatter",
        "x": [row.ms for row in rows],
        "y": [row.values[primary] for row in rows],
        "name": name,
        "mode": "markers",
        "marker": {
            "size": 12,
            "color": colour,
            "symbol": mark_reranked(row.run for row in rows),
            "opacity": 0.85,
        },
        "text": [f"{row.rank}. {labels[row.run.pk] or row.run.label}" for row in rows],
        "hovertemplate": format_hover(primary),
    }


def _name_points(trace: Figure, middle: float) -> Figure:
    """Return a trace whose points have their names next to them, towards the `middle` time; ties share one."""
    sides = ["middle left" if ms > middle else "middle right" for ms in trace["x"]]
    names = [
        name if trace["y"].index(y) == index else ""
        for index, (name, y) in enumerate(zip(trace["text"], trace["y"], strict=True))
    ]
    hover = {"hovertext": trace["text"], "hovertemplate": trace["hovertemplate"].replace("%{text}", "%{hovertext}")}
    return {**trace, **hover, "text": names, "mode": "markers+text", "textposition": sides, "textfont": {"size": 11}}
