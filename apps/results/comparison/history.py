"""History of a dataset: the best run of each benchmark, and the baselines over time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import FloatField, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.urls import reverse
from django.utils.timezone import get_current_timezone_name, localtime

from apps.datasets.models import Dataset, DatasetVersion
from apps.operations.models import Status
from apps.records.measuring.alternatives import keep_alternatives
from apps.records.models import Baseline, Benchmark, Evaluation, GateOutcome, Run
from apps.results.charts import COLOURS, LEGEND, draw_line, figure
from apps.verdicts.comparing import is_lower_better
from apps.verdicts.gates.baselines import list_baselines
from apps.verdicts.ranked_runs import name_primary, select_measures
from benchbench import decimals
from benchbench.access import AnyUser, viewable

LEAST_DRAWN = 2  # points; of a single one, the table says as much
LEAST_MARGIN = timedelta(hours=12)
SYMBOLS = {"": "circle", "passed": "triangle-up", "failed": "x", "undecided": "diamond"}  # by the outcome of the gate
MARK = "#94a3b8"
MOST_NAMED = 12  # changes with words in the figure; more would overlap, and the table has them


@dataclass(frozen=True, slots=True)
class Point:
    """The best alternative of a benchmark on a dataset version by the shown measure.

    Values are comparable on one `truth` only.
    `at` is the end of the benchmark, or for a later version when it was re-scored. `gate` is the latest outcome for the
    run, else for another run of the benchmark; `changes` names code and index if they differ from those of the previous
    benchmark. Both are left out for later versions.
    """

    benchmark: Benchmark
    run: Run
    value: float
    truth: str
    baselines: list[str]
    version: DatasetVersion
    at: datetime
    gate: GateOutcome | None = None
    changes: tuple[str, ...] = ()

    @property
    def is_rescored(self) -> bool:
        return self.version.pk != self.benchmark.dataset_version_id

    @property
    def query_string(self) -> str:
        return f"?version={self.version.number}" if self.is_rescored else ""


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


def load_history(dataset: Dataset, user: AnyUser, *, measure: str = "") -> History:
    """Return the history of `dataset` visible to `user`, by `measure`, by default the newest primary measure.

    Completed benchmarks count, with the values on each dataset version that they were measured on. A benchmark without
    the measure, or without ranked runs, has no point.
    """
    benchmarks = viewable(Benchmark.objects.filter(mapping__dataset=dataset, status=Status.COMPLETED), user)
    newest = benchmarks.order_by("-completed_at").first()
    if newest is None:
        return History(measure, [], [], [])
    # The best run has the greatest value, so a measure that falls as runs improve is not offered.
    measures = [
        name for name in (name_primary(newest), *select_measures(newest, newest.primary_k)) if not is_lower_better(name)
    ]
    measure = measure if measure in measures else measures[0]
    baselines = list(viewable(list_baselines(dataset), user, through="run__benchmark"))
    best = keep_alternatives(select_ranked(measure, run__benchmark__in=benchmarks), "run__")
    evaluations = sorted(
        best.order_by("run__benchmark_id", "dataset_version_id", "-value", "run__run_order").distinct(
            "run__benchmark_id", "dataset_version_id"
        ),
        key=lambda evaluation: (_get_time(evaluation), evaluation.pk),
    )
    of_baselines = select_ranked(measure, run__in=[baseline.run_id for baseline in baselines])
    baseline_values = list(of_baselines.order_by("-dataset_version__number"))
    names = _name_truths([*evaluations, *baseline_values])
    points = _build_points(evaluations, names, baselines)
    lines = [
        Line(baseline, evaluation.value, names[_build_key(evaluation)])
        for baseline in baselines
        for evaluation in baseline_values
        if evaluation.run_id == baseline.run_id
    ]
    return History(measure, measures, points, lines)


def _build_points(
    evaluations: Sequence[Any], names: dict[tuple[Any, ...], str], baselines: Sequence[Baseline]
) -> list[Point]:
    """Return the points of evaluations in their order, oldest first. One query, for the outcomes of gates."""
    gates: dict[Any, GateOutcome] = {}
    outcomes = GateOutcome.objects.filter(run__benchmark__in={row.run.benchmark_id for row in evaluations})
    for outcome in outcomes.select_related("run").order_by("created_at"):
        gates[outcome.run.benchmark_id] = gates[outcome.run_id] = outcome
    points: list[Point] = []
    facts: dict[str, str] = {}
    for row in evaluations:
        point = Point(
            row.run.benchmark,
            row.run,
            row.value,
            names[_build_key(row)],
            [baseline.name for baseline in baselines if baseline.run_id == row.run_id],
            row.dataset_version,
            _get_time(row),
        )
        if not point.is_rescored:
            origin = {name: fact for name, fact in _describe_origin(row.run).items() if fact}
            changes = tuple(f"{name} {fact}" for name, fact in origin.items() if facts.get(name, fact) != fact)
            facts |= origin
            gate = gates.get(row.run_id) or gates.get(row.run.benchmark_id)
            point = replace(point, gate=gate, changes=changes)
        points.append(point)
    return points


def _describe_origin(run: Run) -> dict[str, str]:
    """Return the code and the index of a run by name; "" if unknown."""
    index = run.lineage.index
    name = f"{index.name} v{index.version} ({index.content[:6]})" if index and index.content else ""
    return {"code": (run.lineage.git_revision or "")[:7], "index": name}


def _get_time(evaluation: Evaluation) -> datetime:
    """Return when the benchmark ended, or for another version than its own when it was re-scored."""
    benchmark = evaluation.run.benchmark
    if evaluation.dataset_version_id != benchmark.dataset_version_id:
        return evaluation.created_at
    return benchmark.completed_at or benchmark.created_at


def select_ranked(measure: str, **filters: object) -> QuerySet[Any]:
    """Return the evaluations that rank completed runs by the measure, its mean annotated as `value`."""
    evaluations = Evaluation.objects.filter(Evaluation.filter_ranked(), **filters, run__status=Run.Status.COMPLETED)
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
        benchmark.means_name,
        benchmark.identity_note,
        evaluation.truth_hash,
    )


def _name_truths(evaluations: Sequence[Evaluation]) -> dict[tuple[Any, ...], str]:
    """Return a distinct name for each truth: "v2", "v2 on library", "v2, unresolved dropped, weighted by demand".

    If a mapping was resolved again in between, the names include the start of the truth's hash.
    """
    truths = sorted({_build_key(evaluation) for evaluation in evaluations}, key=str)
    several = len({mapping for _, mapping, *_ in truths}) > 1
    states = Counter(truth[:-1] for truth in truths)
    names = {}
    for truth in truths:
        version, _, collection, unresolved, empty, means_name, identity, mark = truth
        name = f"v{version}" + (f" on {collection}" if several else "")
        name += ", unresolved dropped" if unresolved == "drop" else ""
        name += ", empty queries skipped" if empty == "skip" else ""
        name += "".join(f", {note}" for note in (means_name, identity) if note)
        name += f", resolved as {mark[:6]}" if states[truth[:-1]] > 1 else ""
        names[truth] = name
    return names


def plot_history(timeline: History) -> dict[str, Any] | None:
    """Return the figure: linked points for benchmarks, colours for truths, lines for baselines; None for one point."""
    if len(timeline.points) < LEAST_DRAWN:
        return None
    truths = list(dict.fromkeys(point.truth for point in timeline.points))
    colours = {truth: COLOURS[index % len(COLOURS)] for index, truth in enumerate(truths)}
    drawn = [_draw_baseline(line, timeline, colours[line.truth]) for line in timeline.lines if line.truth in colours]
    changed = [_draw_change(point) for point in timeline.points if point.changes]
    annotations = drawn + (changed if len(changed) <= MOST_NAMED else [])
    return figure(
        *(_trace(timeline, truth, colours[truth]) for truth in truths),
        x={
            "type": "date",
            "range": _compute_span([_get_end(point) for point in timeline.points]),
            "title": {"text": f"time ({get_current_timezone_name()})"},
        },
        y={
            "title": {"text": f"best mean {timeline.measure}"},
            "tickformat": ".3~f",
            "autorangeoptions": {"minallowed": 0, "maxallowed": 1},  # one point alone would have an axis from −1 to 2
        },
        height=380,
        margin=(64, 16, 40, 40),
        legend=LEGEND,
        showlegend=True,
        hovermode="closest",
        shapes=[shape for shape, _ in drawn + changed],
        annotations=[note for _, note in annotations],
    )


def _trace(timeline: History, truth: str, colour: str) -> dict[str, object]:
    points = [point for point in timeline.points if point.truth == truth]
    return {
        "type": "scatter",
        "x": [_get_end(point).isoformat(timespec="seconds") for point in points],
        "y": [point.value for point in points],
        "name": truth,
        "mode": "lines+markers",
        "line": {"width": 1, "color": colour, "dash": "dot"},
        "marker": {
            "size": [13 if point.gate else 11 for point in points],
            "color": colour,
            "symbol": [SYMBOLS[point.gate.outcome if point.gate else ""] for point in points],
        },
        "text": ["<br>".join(_list_words(point)) for point in points],
        "customdata": [
            reverse("admin:benchmark_results", args=[point.benchmark.pk]) + point.query_string for point in points
        ],
        "hovertemplate": "%{text}<br>" + timeline.measure + " %{y:.4f}<extra></extra>",
    }


def _list_words(point: Point) -> list[str]:
    """Return the lines that show when a point has the pointer."""
    gate = [f"gate {point.gate.phrase}"] if point.gate else []
    scored = [f"re-scored on v{point.version.number}"] if point.is_rescored else []
    return [point.benchmark.name, point.run.label, *scored, *gate, *(f"changed: {one}" for one in point.changes)]


def _draw_change(point: Point) -> tuple[dict[str, object], dict[str, object]]:
    """Return a vertical line where code or index changed, and its words above the figure."""
    when = _get_end(point).isoformat(timespec="seconds")
    words = {"x": when, "y": 0, "yref": "paper", "yanchor": "bottom", "xanchor": "left", "showarrow": False}
    note = words | {"text": " ".join(change.split()[0] for change in point.changes), "font": {"size": 11}}
    return draw_line(when, width=1, dash="dash", color=MARK), note


def _draw_baseline(line: Line, timeline: History, colour: str) -> tuple[dict[str, object], dict[str, object]]:
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
    """Return the time of a point, local and without the zone, which Plotly would drop."""
    return localtime(point.at).replace(tzinfo=None)


def _compute_span(times: Sequence[datetime]) -> list[str]:
    margin = max((max(times) - min(times)) / 20, LEAST_MARGIN)
    return [(min(times) - margin).isoformat(), (max(times) + margin).isoformat()]
