"""The page of search under filters: recall and time of each setting over the shares, as figures."""

from collections.abc import Sequence
from typing import Any

from apps.benchmarks.measuring.selection import find_selection
from apps.benchmarks.models import Benchmark
from apps.benchmarks.running.timing import name_search_ms
from apps.results.charts import COLOURS, LEGEND, Figure, compute_height, figure, time_axis, wrap_text
from apps.results.filter_shares import Setting, list_settings
from benchbench.ir.planning.labels import render_share


def plot_recall(settings: Sequence[Setting]) -> Figure:
    """Return a map of the recall of each setting at each share, the smallest share left."""
    shares = sorted({cell.share for setting in settings for cell in setting.cells})
    columns, labels = [render_share(share) for share in shares], [wrap_text(setting.label) for setting in settings]
    by_share = [{cell.share: cell.recall for cell in setting.cells} for setting in settings]
    recalls = [[recalls.get(share) for share in shares] for recalls in by_share]
    trace = {
        "type": "heatmap",
        "x": columns,
        "y": labels,
        "z": recalls,
        "zmin": 0,
        "zmax": 1,
        "colorscale": [[0, "#b3423a"], [0.5, "#c9a227"], [1, "#1f7a55"]],
        "text": [["–" if recall is None else f"{recall:.3f}" for recall in line] for line in recalls],
        "texttemplate": "%{text}",
        "textfont": {"color": "#ffffff"},
        "xgap": 2,
        "ygap": 2,
        "showscale": False,
        "hovertemplate": "%{y}<br>%{x} of the documents<br>agreement with exact %{text}<extra></extra>",
    }
    height = compute_height([setting.label for setting in settings]) + 90
    x = {"type": "category", "title": {"text": "documents admitted"}}
    return figure(trace, x=x, y={"autorange": "reversed"}, height=height, margin=(16, 16, 8, 64))


def plot_times(settings: Sequence[Setting]) -> Figure:
    """Return the milliseconds of each setting over the logarithm of the share; exact search is dashed."""
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": setting.label,
            "x": [cell.share for cell in setting.cells if cell.ms],
            "y": [cell.ms for cell in setting.cells if cell.ms],
            "line": {"color": COLOURS[number % len(COLOURS)], "dash": "dash" if setting.cells[0].is_exact else "solid"},
            "hovertemplate": "%{x} of the documents<br>%{y:.2f} ms<extra>%{fullData.name}</extra>",
        }
        for number, setting in enumerate(settings)
    ]
    shares = sorted({cell.share for setting in settings for cell in setting.cells})
    ticks = {"tickvals": shares, "ticktext": [render_share(share) for share in shares]}
    x = {"type": "log", "title": {"text": "documents admitted"}, **ticks}
    times = [cell.ms for setting in settings for cell in setting.cells if cell.ms]
    y = {"title": {"text": name_time(settings)}, **(time_axis(times) if times else {})}
    return figure(*traces, x=x, y=y, height=400, margin=(64, 16, 40, 64), legend=LEGEND, hovermode="closest")


def name_time(settings: Sequence[Setting]) -> str:
    return name_search_ms(cell.run for setting in settings for cell in setting.cells)


def build_context(benchmark: Benchmark) -> dict[str, Any]:
    """Return the context of the page."""
    settings = list_settings(benchmark)
    selection = find_selection(benchmark.dataset_version, {cell.run.pk for each in settings for cell in each.cells})
    figures = {"recall": plot_recall(settings), "times": plot_times(settings)} if settings else {}
    return {"benchmark": benchmark, "settings": settings, "figures": figures, "time": name_time(settings)} | {
        "caveat": selection.caveat if selection else ""
    }
