"""Load: the runs of a benchmark that differ only in their rate, with latency and recall at each, and the knee."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import Any

from apps.benchmarks.models import Benchmark, Run
from apps.results.charts import COLOURS, LEGEND, Figure, figure, time_axis
from benchbench.decimals import format_ms, list_some
from benchbench.ir.planning.labels import label_settings, run_label

LEAST_SHARE = 0.98  # of the offered rate that is achieved at a sustained one,
MOST_TIMES = 3  # where a percentile is at most so many times that at the lowest measured rate:
LEAST_ANSWERS = {"p99": 1000, "p95": 100}  # the first of which all runs have enough answers, as it rests on few


@dataclass(frozen=True, slots=True)
class Point:
    """A run at one rate. `recall` is at the primary k, against exact search by whole vectors; None if not measured."""

    run: Run
    offered: float
    achieved: float | None
    latency: Mapping[str, float]
    recall: float | None
    requests: int
    threads: int

    @property
    def keeps_up(self) -> bool:
        return self.achieved is not None and self.achieved >= LEAST_SHARE * self.offered


@dataclass(frozen=True)
class Setting:
    """Points of runs that differ only in their rate, the lowest first."""

    label: str
    method: str
    points: Sequence[Point]

    @cached_property
    def percentile(self) -> str:
        """Return the percentile that the criterion compares; "" if a run has too few answers for any."""
        fewest = min(point.requests for point in self.points)
        return next((name for name, answers in LEAST_ANSWERS.items() if fewest >= answers), "")

    @cached_property
    def knee(self) -> Point | None:
        """Return the point of the highest measured rate before the first that is not sustained."""
        return [None, *takewhile(self.is_sustained, self.points)][-1]

    def is_sustained(self, point: Point) -> bool:
        name = self.percentile
        is_quick = bool(name) and point.latency[name] <= MOST_TIMES * self.points[0].latency[name]
        return point.keeps_up and is_quick

    @property
    def sentence(self) -> str:
        """Return the knee in words."""
        name, knee = self.percentile, self.knee
        if not name:
            return "No knee: a run has fewer than 100 answers, too few for p95. Choose higher rates or more queries."
        if knee == self.points[-1]:
            return f"The knee is at least {knee.offered:g}/s, the highest measured rate, by {name}."
        broken = self.points[self.points.index(knee) + 1 if knee else 0]
        times = [format_ms(point.latency[name]) for point in (broken, self.points[0])]
        reason = f"{name} is {times[0]} ms instead of {times[1]} ms"
        if not broken.keeps_up:
            reason = f"only {broken.achieved or 0:.1f}/s are answered"
        result = f"The knee is {knee.offered:g}/s" if knee else "No knee"
        sentence = f"{result}: at {broken.offered:g}/s {reason}."
        higher = filter(self.is_sustained, self.points[self.points.index(broken) :])
        if again := [f"{point.offered:g}/s" for point in higher]:
            sentence += f" Yet it sustained {list_some(again)}: this is not monotone. Repeat it on an idle machine."
        return sentence


def has_loads(benchmark: Benchmark) -> bool:
    """Return whether the matrix of a benchmark has several rates."""
    return sum(bool(rate) for rate in benchmark.matrix.get("rates", ())) > 1


def load_settings(benchmark: Benchmark) -> list[Setting]:
    """Return the settings of a benchmark's completed runs with a rate, in the order of the runs."""
    runs = benchmark.runs.filter(status=Run.Status.COMPLETED, timing__has_key="open_loop").order_by("run_order")
    by_setting: dict[str, list[Run]] = {}
    for run in runs:
        shared = {key: value for key, value in run.config.items() if key != "rate"}
        by_setting.setdefault(json.dumps(shared, sort_keys=True), []).append(run)
    labels = label_settings(run.configuration.ann for run in runs)
    return [_build_setting(group, labels) for group in by_setting.values()]


def _build_setting(runs: Sequence[Run], labels: Mapping[str, str]) -> Setting:
    configuration = replace(runs[0].configuration, rate=None)
    method = configuration.ann.partition("(")[0] if configuration.uses_vectors else configuration.search_mode
    points = sorted(map(_build_point, runs), key=lambda point: point.offered)
    return Setting(run_label(replace(configuration, ann=labels[configuration.ann])), method, points)


def _build_point(run: Run) -> Point:
    loop, configuration = run.timing["open_loop"], run.configuration
    recall = loop["recall"][0]["mean"] if loop["recall"] else None
    if configuration.uses_vectors and not configuration.asks_engine and configuration.is_exact:
        recall = 1.0  # it is what the others are compared with
    facts = loop["latency_ms"], recall, loop["requests"], loop["threads"]
    return Point(run, loop["offered"], loop["achieved"], *facts)


def build_load_context(benchmark: Benchmark) -> dict[str, Any]:
    """Return the contents of the page: settings, and the figures of latency over rate and of rate over recall."""
    settings = load_settings(benchmark)
    return {
        "settings": settings,
        "latencies": _plot_latencies(settings),
        "recalls": _plot_recalls(settings, benchmark.primary_k),
        "least_percent": round(100 * LEAST_SHARE),
        "most_times": MOST_TIMES,
        "least_answers": LEAST_ANSWERS["p99"],
    }


def _plot_latencies(settings: Sequence[Setting]) -> Figure | None:
    traces: list[Figure] = []
    name = min((setting.percentile for setting in settings if setting.percentile), default="")
    for number, setting in enumerate(settings):
        if not setting.percentile:
            continue
        rates, times = zip(*((point.offered, point.latency[name]) for point in setting.points), strict=True)
        traces.append(_trace(setting.label, rates, times, number, f"%{{x:g}}/s: {name} %{{y:.1f}} ms<extra></extra>"))
    if not traces:
        return None
    axis = time_axis([ms for trace in traces for ms in trace["y"]])
    y = {"title": {"text": f"{name} in ms, from when a query was due"}, **axis}
    x = {"title": {"text": "offered requests per second"}, "rangemode": "tozero"}
    return _figure(traces, x, y)


def _plot_recalls(settings: Sequence[Setting], k: int) -> Figure | None:
    """Return the highest sustained rate of each setting over its recall, a line for each method; None without any."""
    points: dict[str, list[tuple[float, float, str]]] = {}
    for setting in settings:
        if setting.knee and setting.knee.recall is not None:
            point = setting.knee.recall, setting.knee.offered, setting.label
            points.setdefault(setting.method, []).append(point)
    traces = []
    for number, (method, group) in enumerate(points.items()):
        recalls, rates, labels = zip(*sorted(group), strict=True)
        hover = "%{text}<br>%{y:g}/s at agreement %{x:.3f}<extra></extra>"
        traces.append(_trace(method, recalls, rates, number, hover) | {"text": labels})
    lowest = min((recall for trace in traces for recall in trace["x"]), default=1.0)
    x = {
        "title": {"text": f"agreement with exact, top {k}"},
        "tickformat": ".3~f",
        "range": [lowest - 0.05, 1.005],
    }
    y = {"title": {"text": "highest sustained rate per second"}, "rangemode": "tozero"}
    return _figure(traces, x, y) if traces else None


def _trace(name: str, x: Sequence[Any], y: Sequence[Any], number: int, hover: str) -> Figure:
    colour = COLOURS[number % len(COLOURS)]
    drawn = {"line": {"color": colour}, "marker": {"size": 10, "color": colour}, "hovertemplate": hover}
    return {"type": "scatter", "mode": "lines+markers", "name": name, "x": x, "y": y, **drawn}


def _figure(traces: Sequence[Figure], x: Figure, y: Figure) -> Figure:
    return figure(*traces, x=x, y=y, height=360, margin=(64, 16, 40, 56), legend=LEGEND, showlegend=True)
