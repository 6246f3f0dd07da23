"""History of a dataset: the best run of each benchmark, and the baselines over time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, FloatField, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.urls import reverse
from django.utils.timezone import localtime

from apps.benchmarks.gates.baselines import list_baselines
from apps.benchmarks.models import Baseline, Benchmark, Evaluation, Run
from apps.datasets.models import Dataset
from apps.operations.models import Status
from apps.results.charts import COLOURS, LEGEND, figure
from apps.results.comparison.comparing import is_lower_better
from apps.results.leaderboard.runs import name_primary, select_measures
from benchbench import decimals
from benchbench.access import visible

LEAST_MARGIN = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class Point:
    """The best run of a benchmark by the shown measure. Values are comparable only if `truth` is the same."""

    benchmark: Benchmark
    run: Run
    value: float
    truth: str
    baselines: list[str]


@dataclass(frozen=True, slots=True)
class Line:
    """The value of a baseline's run against one truth."""

    baseline: Baseline
    value: float
    truth: str


@dataclass(frozen=True, slots=True)
class History:
    """Points oldest first, and the ranked values of the current baselines. `measures`: the choices."""

    measure: str
    measures: list[str]
    points: list[Point]
    lines: list[Line]


def load_history(dataset: Dataset, user: Any, *, measure: str = "") -> History:
    """Return the history of `dataset` visible to `user`, by `measure`, by default the newest primary measure.

    Completed benchmarks count, with the values on their own dataset version and policies. A benchmark without the
    measure, or without ranked runs, has no point.
    """
    benchmarks = visible(Benchmark.objects.filter(mapping__dataset=dataset, status=Status.COMPLETED), user)
    newest = benchmarks.order_by("-completed_at").first()
    if newest is None:
        return History(measure, [], [], [])
    # The best run has the greatest value, so a measure that falls as runs improve is not offered.
    measures = [
        name for name in (name_primary(newest), *select_measures(newest, newest.primary_k)) if not is_lower_better(name)
    ]
    measure = measure if measure in measures else measures[0]
    baselines = list(visible(list_baselines(dataset), user, through="run__benchmark"))
    best = _annotate_value(measure, run__benchmark__in=benchmarks).filter(Evaluation.filter_ranked())
    best = best.filter(dataset_version=F("run__benchmark__dataset_version")).order_by(
        "run__benchmark_id", "-value", "run__run_order"
    )
    evaluations = sorted(
        best.distinct("run__benchmark_id"),
        key=lambda evaluation: (evaluation.run.benchmark.completed_at, evaluation.pk),
    )
    of_baselines = _annotate_value(measure, run__in=[baseline.run_id for baseline in baselines]).filter(
        Evaluation.filter_ranked()
    )
    baseline_values = list(of_baselines.order_by("dataset_version"))
    names = _name_truths([*evaluations, *baseline_values])
    points = [
        Point(
            evaluation.run.benchmark,
            evaluation.run,
            evaluation.value,
            names[_build_key(evaluation)],
            [baseline.name for baseline in baselines if baseline.run_id == evaluation.run_id],
        )
        for evaluation in evaluations
    ]
    lines = [
        Line(baseline, evaluation.value, names[_build_key(evaluation)])
        for baseline in baselines
        for evaluation in baseline_values
        if evaluation.run_id == baseline.run_id
    ]
    return History(measure, measures, points, lines)


def _annotate_value(measure: str, **filters: Any) -> QuerySet[Any]:
    """Return the evaluations of completed runs that have the measure, annotated as `value`."""
    evaluations = Evaluation.objects.filter(**filters, run__status=Run.Status.COMPLETED)
    valued = evaluations.annotate(value=Cast(KeyTextTransform(measure, "means"), FloatField())).exclude(value=None)
    return valued.defer("values", "query_ids").select_related("dataset_version", "run__benchmark__mapping__collection")


def _build_key(evaluation: Evaluation) -> tuple[Any, ...]:
    """Return the key that comparable values share: version, mapping, policies, and the hash of the truth."""
    benchmark = evaluation.run.benchmark
    return (
        evaluation.dataset_version.number,
        benchmark.mapping_id,
        benchmark.mapping.collection.name,
        benchmark.unresolved,
        benchmark.empty_queries,
        evaluation.truth_hash,
    )


def _name_truths(evaluations: Sequence[Evaluation]) -> dict[tuple[Any, ...], str]:
    """Return a distinct name for each truth: "v2", "v2 on library", "v2, unresolved dropped".

    If a mapping was resolved again in between, the names include the start of the truth's hash.
    """
    truths = sorted({_build_key(evaluation) for evaluation in evaluations}, key=str)
    several = len({mapping for _, mapping, *_ in truths}) > 1
    states = Counter(truth[:-1] for truth in truths)
    names = {}
    for truth in truths:
        version, _, collection, unresolved, empty, mark = truth
        name = f"v{version}" + (f" on {collection}" if several else "")
        name += ", unresolved dropped" if unresolved == "drop" else ""
        name += ", empty queries skipped" if empty == "skip" else ""
        name += f", resolved as {mark[:6]}" if states[truth[:-1]] > 1 else ""
        names[truth] = name
    return names


def plot_history(timeline: History) -> dict[str, Any] | None:
    """Return the figure: linked points for benchmarks, colours for truths, lines for baselines; None without points."""
    if not timeline.points:
        return None
    truths = list(dict.fromkeys(point.truth for point in timeline.points))
    colours = {truth: COLOURS[index % len(COLOURS)] for index, truth in enumerate(truths)}
    drawn = [_draw_baseline(line, timeline, colours[line.truth]) for line in timeline.lines if line.truth in colours]
    return figure(
        *(_trace(timeline, truth, colours[truth]) for truth in truths),
        x={"type": "date", "range": _compute_span([_get_end(point) for point in timeline.points])},
        y={"title": {"text": f"best mean {timeline.measure}"}, "tickformat": ".3~f"},
        height=380,
        margin=(64, 16, 40, 40),
        legend=LEGEND,
        showlegend=True,
        hovermode="closest",
        shapes=[shape for shape, _ in drawn],
        annotations=[note for _, note in drawn],
    )


def _trace(timeline: History, truth: str, colour: str) -> dict[str, Any]:
    points = [point for point in timeline.points if point.truth == truth]
    return {
        "type": "scatter",
        "x": [_get_end(point).isoformat(timespec="seconds") for point in points],
        "y": [point.value for point in points],
        "name": truth,
        "mode": "lines+markers",
        "line": {"width": 1, "color": colour, "dash": "dot"},
        "marker": {"size": 11, "color": colour},
        "text": [f"{point.benchmark.name}<br>{point.run.label}" for point in points],
        "customdata": [reverse("admin:benchmark_results", args=[point.benchmark.pk]) for point in points],
        "hovertemplate": "%{text}<br>" + timeline.measure + " %{y:.4f}<extra></extra>",
    }


def _draw_baseline(line: Line, timeline: History, colour: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a line for the baseline over the period of its truth, and its name at the end."""
    every = _compute_span([_get_end(point) for point in timeline.points])
    start, end = _compute_span([_get_end(point) for point in timeline.points if point.truth == line.truth])
    side = "left" if start == every[0] else "right"
    across = {"type": "line", "x0": start, "x1": end, "y0": line.value, "y1": line.value}
    name = {
        "x": start if side == "left" else end,
        "y": line.value,
        "xanchor": side,
        "yanchor": "bottom",
        "showarrow": False,
        "text": f"{line.baseline.name} ({line.truth}) {decimals.figure(line.value)}",
        "font": {"color": colour, "size": 12},
    }
    return across | {"line": {"color": colour, "width": 1.5}}, name


def _get_end(point: Point) -> datetime:
    """Return when the benchmark ended, as local time without the zone, which Plotly would drop."""
    ended = point.benchmark.completed_at or point.benchmark.created_at
    return localtime(ended).replace(tzinfo=None)


def _compute_span(times: Sequence[datetime]) -> list[str]:
    margin = max((max(times) - min(times)) / 20, LEAST_MARGIN)
    return [(min(times) - margin).isoformat(), (max(times) + margin).isoformat()]
