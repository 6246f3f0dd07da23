"""One query in the runs of a benchmark: its rankings, its values on a dataset version, and their history."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db.models import FloatField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from apps.datasets.editing.differences import Changes
from apps.datasets.models import DatasetVersion, Judgment, Query
from apps.records.models import Benchmark, Evaluation, QueryResult, Run
from apps.records.models.values import read_value, select_value
from apps.results.charts import Figure, describe_mode, figure, mark_reranked
from apps.results.leaderboard.versions import VersionView, choose_version
from apps.verdicts.configurations import build_labels
from apps.verdicts.ranked_runs import name_primary, select_measures
from benchbench.ir.measures import Measure
from benchbench.site.panels import change_url

SHOWN_VERSIONS = 6  # the newest
SPREAD = [0.08 * side * step for step in range(5) for side in (1, -1)][1:]  # of points next to each other
UNUSED = ("provenance", "timing", "traceback")  # large columns of runs
Values = Mapping[Any, tuple[float | None, float | None]]  # by run: the value of the query, and the mean over all


@dataclass(frozen=True, slots=True)
class RunOfQuery:
    """The query in one run: its ranking, its value, the run's mean, and the change since the previous version."""

    run: Run
    label: str
    result: QueryResult | None
    value: float | None
    mean: float | None
    change: float | None

    @property
    def ranking(self) -> list[int]:
        """The documents, best first; [] if the query failed or was not searched."""
        return self.result.document_ids if self.result and not self.result.error else []


@dataclass(frozen=True, slots=True)
class VersionOfQuery:
    """The query's values on a version over all runs, and the changes of its judgments since the version before."""

    version: DatasetVersion
    changes: Changes
    best: float | None
    middle: float | None
    worst: float | None


@dataclass(frozen=True, slots=True)
class QueryRuns:
    """A query in the completed runs of a benchmark, best first by `measure`, with its values on the version of `at`.

    `before` is the version with which `change` of a run compares. `history` has the newest versions first.
    """

    benchmark: Benchmark
    at: VersionView
    before: DatasetVersion | None
    measure: str
    measures: list[str]
    rows: list[RunOfQuery]
    history: list[VersionOfQuery]

    @property
    def ranked(self) -> list[RunOfQuery]:
        """The runs that have a ranking of the query."""
        return [row for row in self.rows if row.ranking]


def load_query_runs(
    query: Query, benchmark: Benchmark, judgments: Sequence[Judgment], *, number: str = "", by: str = ""
) -> QueryRuns:
    """Return the runs of `benchmark` with their values of the query by the measure `by`, if it has that.

    The version is `number`, by default the newest with values that has the query. `judgments` are those of the query in
    all versions. Raises NoValuesError. Four statements, which read the values and the lists of this query alone.
    """
    at = _choose_version(query, benchmark, number)
    measures = [name_primary(benchmark), *select_measures(benchmark, benchmark.primary_k)]
    measure = by if by in measures else measures[0]
    before = next((row for row in reversed(at.choices) if row.number < at.version.number), None)
    versions = {*at.choices[-SHOWN_VERSIONS:], at.version, *([before] if before else [])}
    values = _load_values(query, benchmark, measure, versions)
    runs = _list_runs(query, benchmark, values.get(at.version.pk, {}), values.get(before.pk, {}) if before else {})
    sign = 1 if Measure.parse(measure).definition.better == "lower" else -1
    runs.sort(key=lambda row: (row.value is None, sign * (row.value or 0.0)))
    return QueryRuns(benchmark, at, before, measure, measures, runs, _list_history(judgments, at, values, sign))


def _choose_version(query: Query, benchmark: Benchmark, number: str) -> VersionView:
    at = choose_version(benchmark, number)
    choices = [row for row in at.choices if query.since <= row.number < (query.until or row.number + 1)]
    return VersionView(at.version if number or not choices else choices[-1], at.original, choices)


def _load_values(
    query: Query, benchmark: Benchmark, measure: str, versions: Collection[DatasetVersion]
) -> dict[Any, dict[Any, tuple[float | None, float | None]]]:
    """Return the values of the completed runs by version. The database picks them from the evaluations."""
    evaluations = Evaluation.objects.filter(
        run__benchmark=benchmark, run__status=Run.Status.COMPLETED, dataset_version__in=versions
    )
    mean = Cast(KeyTextTransform(measure, "means"), FloatField())
    picked = evaluations.order_by().annotate(picked=select_value(measure, query.pk), mean=mean)
    values: dict[Any, dict[Any, tuple[float | None, float | None]]] = {}
    for version, run, packed, mean_value in picked.values_list("dataset_version_id", "run_id", "picked", "mean"):
        values.setdefault(version, {})[run] = (read_value(packed), mean_value)
    return values


def _list_runs(query: Query, benchmark: Benchmark, values: Values, before: Values) -> list[RunOfQuery]:
    runs = list(
        benchmark.runs.filter(status=Run.Status.COMPLETED).select_related("index").defer(*UNUSED).order_by("run_order")
    )
    rankings = QueryResult.objects.filter(run__benchmark=benchmark, query=query).defer("chunk_ids")
    results: dict[Any, QueryResult] = {}
    for result in rankings.order_by("error", "repetition"):  # of repetitions the first that did not fail, as measured
        results.setdefault(result.run_id, result)
    rows = []
    for run, label in zip(runs, build_labels(runs), strict=True):
        (value, mean), (old, _) = values.get(run.pk, (None, None)), before.get(run.pk, (None, None))
        change = None if value is None or old is None else value - old
        if run.pk in results:
            results[run.pk].run = run  # by which a page knows whether its reader may open the ranking
        rows.append(RunOfQuery(run, label, results.get(run.pk), value, mean, change))
    return rows


def _list_history(
    judgments: Sequence[Judgment], at: VersionView, values: Mapping[Any, Values], sign: int
) -> list[VersionOfQuery]:
    """Return the versions with values, newest first, each with the changes since the one before."""
    rows: list[VersionOfQuery] = []
    old: dict[str, int] = {}
    for version in at.choices:
        number = version.number
        alive = [row for row in judgments if row.since <= number < (row.until or number + 1)]
        new = {row.ref_hash: row.grade for row in alive}
        changed = sum(new[ref] != old[ref] for ref in new.keys() & old.keys())
        changes = Changes(len(new.keys() - old.keys()), changed, len(old.keys() - new.keys()), 0)
        numbers = [value for value, _ in values.get(version.pk, {}).values() if value is not None]
        ends = sorted((min(numbers), max(numbers)), key=lambda value: sign * value) if numbers else (None, None)
        rows.append(VersionOfQuery(version, changes, ends[0], median(numbers) if numbers else None, ends[1]))
        old = new
    return rows[-SHOWN_VERSIONS:][::-1]


def plot_values(runs: QueryRuns) -> Figure | None:
    """Return the strip plot of the values: a point per run, a row per search mode; None without values."""
    rows = [row for row in runs.rows if row.value is not None and row.result]
    modes = [describe_mode(row.run) for row in rows]
    names, symbols = list(dict.fromkeys(name for name, _ in modes)), mark_reranked(row.run for row in rows)
    if not rows:
        return None
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": [row.value for row in rows],
        "y": [names.index(name) + SPREAD[n % len(SPREAD)] for n, (name, _) in enumerate(modes)],
        "marker": {"size": 12, "color": [colour for _, colour in modes], "symbol": symbols, "opacity": 0.8},
        "text": [row.label for row in rows],
        "customdata": [f"{change_url(row.result)}{runs.at.query_string}" for row in rows if row.result],
        "hovertemplate": "%{text}<br>" + runs.measure + " %{x:.4f}<extra></extra>",
    }
    return figure(
        points,
        x={"title": {"text": runs.measure}, "tickformat": ".2~f", "rangemode": "tozero"},
        y={"tickvals": [*range(len(names))], "ticktext": names, "range": [len(names) - 0.4, -0.6]},
        height=110 + 70 * len(names),
        margin=(16, 16, 16, 48),
        hovermode="closest",
    )
