"""Search under filters: recall, loss and time of each setting over the shares of the documents that a filter admits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from apps.benchmarks.measuring.approximations import build_ann
from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.running.timing import mark_shared
from apps.results.charts import COLOURS, LEGEND, Figure, compute_height, figure, time_axis, wrap_text
from apps.results.leaderboard.runs import Row, load_leaderboard, name_primary
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.labels import run_label

Curve = Sequence[tuple[float, float, float]]  # share, and the milliseconds of exact search and of a setting


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting at one share. `ms` is the median of isolated searches, otherwise the mean shared cost.

    `recall` is over the queries that the store answered itself; None without such queries, and of the first dimensions
    alone. Of exact search it is 1.
    `short` and `exactly` count the queries with too few results, and those that exact search answered instead.
    """

    row: Row
    share: float
    facts: dict[str, Any]

    @property
    def run(self) -> Run:
        return self.row.run

    @property
    def is_exact(self) -> bool:
        return Configuration.from_dict(self.run.config).is_exact

    @property
    def share_text(self) -> str:
        return render_share(self.share)

    @property
    def ndcg(self) -> float | None:
        return self.row.values.get(name_primary(self.run.benchmark))

    @property
    def change(self) -> float | None:
        """Return the difference of nDCG to exact search under the same filter; None for exact search."""
        cost = self.facts["ndcg"]["cost"] if self.facts else None
        return None if cost is None else -cost

    @property
    def recall(self) -> float | None:
        shares = self.facts.get("recall", ())
        return 1.0 if self.is_exact else next((one["mean"] for one in shares), None)

    @property
    def ms(self) -> float | None:
        timing: dict[str, Any] = self.run.timing
        ms: float | None = timing.get("percentiles", {}).get("search_ms", {}).get("p50", timing.get("search_ms"))
        return ms

    @property
    def short(self) -> int:
        return int(self.facts.get("notes", {}).get("short", 0))

    @property
    def exactly(self) -> int:
        return int(self.facts.get("notes", {}).get("searched_exactly", 0))

    @property
    def choice(self) -> str:
        """Return in words what PostgreSQL would choose by its costs; "" for searches elsewhere."""
        chosen, is_whole = self.facts.get("chosen"), "exact" in self.run.config.get("ann", "")
        if chosen is None:
            return ""
        return "vector index" if chosen["index_used"] and not is_whole else "compare all admitted"


@dataclass(frozen=True, slots=True)
class Setting:
    """The cells of a configuration, the greatest share first, and a sentence on where exact search wins.

    The sentence is "" for exact search, and where times are shared costs, which are those of batches.
    """

    label: str
    cells: list[Cell]
    sentence: str


def has_shares(benchmark: Benchmark) -> bool:
    """Return whether a benchmark compares filter shares."""
    return len(benchmark.matrix.get("filter_shares", ())) > 1


def list_settings(benchmark: Benchmark) -> list[Setting]:
    """Return the dense and hybrid settings of a benchmark that ran at several shares, in the order of the runs.

    Without a share all documents are admitted; if there are runs at share 1 too, only these are shown.
    """
    unstated = 1.0 if has_shares(benchmark) and 1 not in benchmark.matrix["filter_shares"] else None
    cells: dict[Configuration, list[Cell]] = {}
    for row in load_leaderboard(benchmark).in_run_order:
        configuration = Configuration.from_dict(row.run.config) if row.run.config else None
        share = configuration and (configuration.filter_share or unstated)
        if configuration and share and configuration.uses_vectors and row.final:
            cell = Cell(row, share, build_ann(row.run, row.truth) or {})
            cells.setdefault(replace(configuration, filter_share=None), []).append(cell)
    for some in cells.values():
        some.sort(key=lambda cell: -cell.share)
    settings, is_isolated = [], benchmark.execution == Benchmark.Execution.ISOLATED
    for configuration, some in cells.items():
        exact = cells.get(replace(configuration, ann="exact", dimensions=None).normalize(), [])
        sentence = "" if some[0].is_exact or not is_isolated else describe_crossing(_pair_times(exact, some))
        settings.append(Setting(run_label(configuration), some, sentence))
    return settings


def _pair_times(exact: Sequence[Cell], cells: Sequence[Cell]) -> Curve:
    times = {cell.share: cell.ms for cell in exact}
    return sorted((one.share, ms, one.ms) for one in cells if (ms := times.get(one.share)) and one.ms)


def render_share(share: float) -> str:
    """Return a share of the documents as `0.1 %`."""
    return f"{100 * share:.3g} %"


def find_crossing(curve: Curve) -> float | None:
    """Return the greatest share at and below which exact search is at least as fast as a setting, of those measured.

    Its recall is never lower. Between two measured shares it is interpolated where the logarithm of the ratio of the
    times is 0, linearly in the logarithm of the share. None if exact search is slower at the smallest share.
    """
    ratios = [(math.log(share), math.log(exact_ms / ms)) for share, exact_ms, ms in sorted(curve)]
    wins = next((number for number, (_, ratio) in enumerate(ratios) if ratio > 0), len(ratios))
    if not wins:
        return None
    low, ratio = ratios[wins - 1]
    if wins == len(ratios):
        return math.exp(low)
    high, next_ratio = ratios[wins]
    return math.exp(low + (high - low) * -ratio / (next_ratio - ratio))


def describe_crossing(curve: Curve) -> str:
    """Return a sentence on the share up to which exact search wins."""
    if not curve:
        return "Add “exact” to the settings of dense search to see where exact search is as fast."
    smallest, greatest = (render_share(edge(point[0] for point in curve)) for edge in (min, max))
    share = find_crossing(curve)
    if share is None:
        return f"Exact search is slower at the smallest measured share, {smallest}: no share was found where it wins."
    if share >= max(point[0] for point in curve):
        return (
            f"Exact search wins at every measured share, up to {greatest}: at least as fast, and never less complete."
        )
    return f"Exact search wins at {render_share(share)} of the documents and below, down to {smallest} (interpolated)."


def plot_recall(settings: Sequence[Setting]) -> Figure:
    """Return a map of the recall of each setting at each share, the greatest share left."""
    shares = sorted({cell.share for setting in settings for cell in setting.cells}, reverse=True)
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
        "hovertemplate": "%{y}<br>%{x} of the documents<br>recall %{text}<extra></extra>",
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
    """Return the name of the times: medians of isolated searches, or means of shared costs."""
    suffix = mark_shared(cell.run for setting in settings for cell in setting.cells)
    return f"{'mean' if 'shared' in suffix else 'median'} ms of search{suffix}"


def build_context(benchmark: Benchmark) -> dict[str, Any]:
    """Return the context of the page."""
    settings = list_settings(benchmark)
    figures = {"recall": plot_recall(settings), "times": plot_times(settings)} if settings else {}
    return {"benchmark": benchmark, "settings": settings, "figures": figures, "time": name_time(settings)}
