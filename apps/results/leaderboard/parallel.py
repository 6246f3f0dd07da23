"""Parallel coordinates of a leaderboard: an axis for each varying setting, the measure last, a line for each run."""

from collections.abc import Sequence

from apps.results.charts import Figure, figure
from apps.verdicts.configurations import Config, find_varying, list_phrases, spell_settings
from apps.verdicts.ranked_runs import Leaderboard, Row
from benchbench.decimals import figure as show_value
from benchbench.ir.planning.axes import AXES

FEWEST_RUNS, FEWEST_AXES = 6, 2  # fewer are read faster in the table
SHADES = ["#c3cede", "#9fb5d6", "#7b9dd0", "#5686d7", "#2f6fde"]  # from the lowest to the highest value
NO_VALUE = "–"  # of an axis that does not touch a run


def plot_parallel(board: Leaderboard) -> Figure | None:
    """Return the figure of the settings and the primary measure of the ranked runs; None for a small matrix.

    The `customdata` of a point of an axis are the numbers of the runs with its setting: choosing it narrows the table.
    """
    rows = [row for row in board.rows if row.rank and row.values.get(board.primary) is not None]
    configs = spell_settings(row.run.config for row in rows)
    keys = [key for key in find_varying(configs) if key != "engine"]  # whose name is in the search mode
    if len(rows) < FEWEST_RUNS or len(keys) < FEWEST_AXES:
        return None
    words = [[_describe(config, key) for config in configs] for key in keys]
    heights = [_spread(column) for column in words]
    values = [float(row.values[board.primary] or 0) for row in rows]
    low, high = min(values), max(values)
    shares = [round((value - low) / (high - low), 4) if high > low else 0.5 for value in values]
    lines = [
        [*(height[word] for height, word in zip(heights, run, strict=True)), share]
        for run, share in zip(zip(*words, strict=True), shares, strict=True)
    ]
    names = [AXES[key].name if key in AXES else key.replace("_", " ") for key in keys]
    ticks = {"tickvals": list(range(len(keys) + 1)), "ticktext": [*names, board.title], "side": "top"}
    return figure(
        *_draw_lines(lines, shares),
        *(_draw_axis(axis, column, heights[axis], rows) for axis, column in enumerate(words)),
        _draw_ends(len(keys), low, high),
        x={**ticks, "range": [-0.4, len(keys) + 0.4], "showgrid": True, "zeroline": False, "fixedrange": True},
        y={"visible": False, "range": [-0.08, 1.08], "fixedrange": True},
        height=90 + 34 * max(map(len, heights)) if max(map(len, heights)) > 6 else 320,
        margin=(16, 16, 40, 16),
        showlegend=False,
        hovermode="closest",
    )


def _describe(config: Config, key: str) -> str:
    return " ".join(list_phrases(config, [key])) or NO_VALUE


def _spread(words: Sequence[str]) -> dict[str, float]:
    """Return the height of each setting of an axis, from 1 downwards in the order of the runs."""
    distinct = list(dict.fromkeys(words))
    return {word: round(1 - (number + 0.5) / len(distinct), 4) for number, word in enumerate(distinct)}


def _draw_lines(lines: Sequence[Sequence[float]], shares: Sequence[float]) -> list[Figure]:
    """Return a trace for each shade, the highest values above the others."""
    shades: list[tuple[list[object], list[object]]] = [([], []) for _ in SHADES]
    for line, share in zip(lines, shares, strict=True):
        xs, ys = shades[min(int(share * len(SHADES)), len(SHADES) - 1)]
        xs += [*range(len(line)), None]
        ys += [*line, None]
    return [
        {
            "type": "scatter",
            "x": xs,
            "y": ys,
            "mode": "lines",
            "line": {"color": shade, "width": 2},
            "hoverinfo": "skip",
        }
        for shade, (xs, ys) in zip(SHADES, shades, strict=True)
        if xs
    ]


def _draw_axis(axis: int, column: Sequence[str], heights: dict[str, float], rows: Sequence[Row]) -> Figure:
    chosen = {
        word: [row.run.run_order for row, setting in zip(rows, column, strict=True) if setting == word]
        for word in heights
    }
    return {
        "type": "scatter",
        "x": [axis] * len(heights),
        "y": list(heights.values()),
        "text": list(heights),
        "customdata": list(chosen.values()),
        "mode": "markers+text",
        "textposition": "top center",
        "marker": {"size": 11, "color": SHADES[-1]},
        "hovertemplate": "%{text}: show its runs<extra></extra>",
    }


def _draw_ends(axis: int, low: float, high: float) -> Figure:
    """Return the lowest and highest value at the axis of the measure."""
    texts = [show_value(low), show_value(high)]
    look = {"mode": "text", "textposition": "middle right", "hoverinfo": "skip"}
    return {"type": "scatter", "x": [axis, axis], "y": [0, 1], "text": texts, **look}
