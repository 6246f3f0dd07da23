"""The ladder of runs that differ only in how vectors are searched: size, time, agreement and loss."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html

from apps.execution.running.timing import name_search_ms
from apps.records.measuring.alternatives import choose_alternatives
from apps.records.models import Benchmark, Run
from apps.results.charts import COLOURS, Figure, figure, time_axis
from apps.results.comparison.figures import OPEN
from apps.results.ladders import page
from apps.results.ladders.filter_shares import has_shares
from apps.results.templatetags.benchbench import DASH, milliseconds
from apps.verdicts.comparing import RunComparison, compare_runs
from apps.verdicts.configurations import list_shared
from apps.verdicts.migrating import MARGIN
from benchbench.decimals import figure as format_value
from benchbench.decimals import format_ms, format_p, short_signed
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.labels import label_settings
from benchbench.ir.statistics.resampling import Interval
from benchbench.ir.statistics.wording import describe_few_changes

MEGABYTE = 2**20
LEGEND = {
    "In memory": "what every search reads: the vectors, compressed or not, or the graph or lists of a store.",
    "On disk": "the full vectors, of which rescoring reads those of the nominees.",
    "Time": "of search, without encoding the query, which the settings share; a median if the benchmark ran isolated; "
    "at a rate, the median latency of the whole query, from when it was due. Shared times are parts of batches, which "
    "favour exact search: isolated execution names the fastest.",
}
SMALLEST = 0.01  # difference at each end of an axis: smaller ones look small


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRung(page.Rung):
    """A setting: what every search reads, in memory, and the full vectors of which it reads a few, on disk."""

    label: str
    memory_bytes: int | None
    disk_bytes: int

    @property
    def is_good_enough(self) -> bool:
        """Return whether it is not significantly worse than the reference; without intervals, whether it is better."""
        if self.pair is None or self.pair.significant:
            return self.pair is None or self.pair.difference > 0
        return self.pair.simultaneous is not None

    @property
    def standing(self) -> str:
        """Return whether it is better or worse, if that is significant."""
        return "" if self.pair is None or not self.pair.significant else "better" if self.is_good_enough else "worse"

    @property
    def interval(self) -> Interval | None:
        """Return the interval of the difference; None if too few queries changed for one."""
        return self.pair.simultaneous if self.pair and not describe_few_changes(self.pair) else None


@dataclass(frozen=True, slots=True)
class Ladder:
    """Settings of search that share everything else, the reference first; or why they cannot be compared."""

    shared: str
    rows: Sequence[SettingRung] = ()
    comparison: RunComparison | None = None
    error: str = ""

    @property
    def is_isolated(self) -> bool:
        return all(row.run.times.execution == Benchmark.Execution.ISOLATED for row in self.rows)

    @property
    def time_name(self) -> str:
        return name_search_ms(row.run for row in self.rows)

    @property
    def sentences(self) -> list[str]:
        """Name the smallest and the fastest setting that is not significantly worse than the reference.

        Shared times name no fastest one: exact search compares a batch at once, other settings each query.
        """
        if self.comparison is None:
            return []
        if all(row.pair is None or row.pair.simultaneous is None for row in self.rows):
            return ["There are too few queries, or a few have most of the demand: no interval bounds a loss."]
        good = [row for row in self.rows if row.is_good_enough]
        smallest = min(good, key=lambda row: (_or_last(row.memory_bytes), row.disk_bytes, _or_last(row.ms)))
        fastest = min(good, key=lambda row: (_or_last(row.ms), _or_last(row.memory_bytes), row.disk_bytes))
        superlatives = {"smallest": smallest, "fastest": fastest} if self.is_isolated else {"smallest": smallest}
        if self.is_isolated and smallest is fastest:
            superlatives = {"smallest and the fastest": smallest}
        return [self._describe(words, row) for words, row in superlatives.items()]

    def _describe(self, superlative: str, row: SettingRung) -> str:
        assert self.comparison is not None
        costs = f"{_format_bytes(row.memory_bytes)} in memory"
        costs += f" and {_format_bytes(row.disk_bytes)} on disk" if row.disk_bytes else ""
        if row.ms is not None:
            kind = "median" if self.is_isolated else "shared"
            unit = "of latency" if row.run.times.open_loop else "per search"
            costs += f", {format_ms(row.ms)} ms {unit}, {kind}"
        reference, pair, interval = self.rows[0].label, row.pair, row.interval
        if pair is None:
            return f"The {superlative} setting that is not significantly worse is the reference, {reference}: {costs}."
        sentence = (
            f"The {superlative} setting that is not significantly worse than {reference} is {row.label}: {costs}; "
            f"{self.comparison.title} {short_signed(pair.difference)}"
        )
        if interval is None:
            return f"{sentence}. {describe_few_changes(pair)}"
        low, high = (short_signed(end) for end in (interval.low, interval.high))
        sentence = f"{sentence} (simultaneous 95 % interval {low} to {high})."
        most_lost = max(0.0001, -interval.low)  # the smallest bound that is shown
        if most_lost > MARGIN:
            return (
                f"{sentence} The interval is wide: a loss of {format_value(most_lost)} is possible, so do not call "
                "them equal; add queries to know more."
            )
        return f"{sentence} By it, the loss is at most {format_value(most_lost)}."


def list_ladders(benchmark: Benchmark) -> list[Ladder]:
    """Return a ladder for each reference with others that differ from it only in the search of vectors.

    Runs under a filter share below 1 are left out: their means cover queries whose relevant documents are excluded.
    """
    groups: dict[tuple[object, str], list[Run]] = {}
    completed = benchmark.runs.filter(status=Run.Status.COMPLETED).exclude(index__chunk_set=None)
    alternatives, _ = choose_alternatives(completed.select_related("index__chunk_set").order_by("run_order"))
    for run in alternatives:
        configuration = run.configuration
        if configuration.uses_vectors and (configuration.filter_share or 1) == 1:
            groups.setdefault((run.index_id, page.find_exact(configuration).hash), []).append(run)
    return [_build_ladder(benchmark, runs) for runs in groups.values() if len(runs) > 1]


def has_ladders(benchmark: Benchmark) -> bool:
    """Return whether the matrix has several settings of the search of vectors."""
    return any(len(benchmark.matrix.get(axis) or ()) > 1 for axis in ("ann", "dimensions"))


def _build_ladder(benchmark: Benchmark, runs: Sequence[Run]) -> Ladder:
    shared = ", ".join(list_shared([run.config for run in runs]))
    full = next((run for run in runs if run.configuration.is_exact), None)
    if full is None:
        return Ladder(shared, error="Exact search did not run with these settings: add exact to ann.")
    try:
        comparison = compare_runs(runs, baseline=full, version=benchmark.dataset_version)
    except BenchbenchError as error:
        return Ladder(shared, error=error.message)
    labels = label_settings(run.configuration.ann for run in runs)
    rows = list(_list_rungs(comparison, runs, labels))
    rows.sort(key=lambda row: (row.pair is not None, -_or_last(row.memory_bytes)))
    return Ladder(shared, rows, comparison)


def _list_rungs(comparison: RunComparison, runs: Sequence[Run], labels: Mapping[str, str]) -> Iterator[SettingRung]:
    reference = comparison.reference
    loaded = {run.pk: run for run in runs}
    for number, compared in enumerate(comparison.runs):
        run = loaded[compared.pk]
        memory_bytes, disk_bytes = _count_bytes(run)
        yield SettingRung(
            run=run,
            recall=page.find_recall(run, run.lineage.approximation.recall if run.lineage.approximation else ()),
            pair=None if number == reference else comparison.comparison.get_pair(number, reference),
            label=_render_label(run, labels),
            memory_bytes=memory_bytes,
            disk_bytes=disk_bytes,
        )


def _render_label(run: Run, labels: Mapping[str, str]) -> str:
    """Return the settings in which the runs of a ladder may differ."""
    configuration = run.configuration
    numbers = {"dimensions": configuration.dimensions, "candidates": configuration.candidates}
    return " · ".join([labels[configuration.ann], *(f"{number} {name}" for name, number in numbers.items() if number)])


def _count_bytes(run: Run) -> tuple[int | None, int]:
    """Return the bytes of what every search of a run reads, if known, and of the full vectors that rescoring reads."""
    index, configuration = run.index, run.configuration
    assert index is not None
    assert index.chunk_set is not None
    count, setting = index.chunk_set.vector_count, Ann.parse(configuration.ann)
    full = 4 * count * (index.dimension or 0)
    if setting.store == "memory" and setting.compares_all:
        return (4 * count * configuration.dimensions if configuration.dimensions else full), 0
    approximation = run.lineage.approximation
    return approximation.bytes if approximation else None, full if setting.rescores else 0


def plot_ladder(ladder: Ladder) -> Figure | None:
    """Return the differences to the reference, with their intervals, over the bytes in memory."""
    rows = [row for row in ladder.rows if row.memory_bytes]
    if ladder.comparison is None or not rows:
        return None
    sizes = [(row.memory_bytes or 0) / MEGABYTE for row in rows]
    pairs = [row.pair for row in rows]
    differences = [pair.difference if pair else 0.0 for pair in pairs]
    ends = [row.interval for row in rows]
    array = [end.high - y if end else 0 for end, y in zip(ends, differences, strict=True)]
    arrayminus = [y - end.low if end else 0 for end, y in zip(ends, differences, strict=True)]
    lowest = min(y - down for y, down in zip(differences, arrayminus, strict=True))
    highest = max(y + up for y, up in zip(differences, array, strict=True))
    trace: Figure = {
        "type": "scatter",
        "mode": "markers",
        "x": sizes,
        "y": differences,
        "text": [row.label for row in rows],
    }
    trace |= {"error_y": {"type": "data", "symmetric": False, "color": OPEN, "array": array, "arrayminus": arrayminus}}
    trace |= {"marker": {"size": 11, "color": [COLOURS[0] if row.is_good_enough else COLOURS[1] for row in rows]}}
    trace |= {"hovertemplate": "%{text}<br>%{y:+.4f}<br>%{x:.3~f} MB in memory<extra></extra>"}
    return figure(
        trace,
        x={"title": {"text": "MB in memory"}, **time_axis(sizes)},
        y={
            "title": {"text": f"difference in {ladder.comparison.measure}"},
            "tickformat": "+.2~r",
            "range": [1.2 * min(lowest, -SMALLEST), 1.2 * max(highest, SMALLEST)],
        },
        height=360,
        margin=(72, 16, 16, 56),
        hovermode="closest",
        showlegend=False,
    )


def _or_last(cost: float | None) -> float:
    return math.inf if cost is None else cost


def _format_bytes(size: int | None, unknown: str = "an unknown size") -> str:
    return unknown if size is None else str(filesizeformat(size)).replace("\N{NO-BREAK SPACE}", " ")


def build_content(benchmark: Benchmark) -> page.Content:
    """Return the content of the page, a section for each ladder."""
    legend = dict(LEGEND)
    if has_shares(benchmark):
        url = reverse("admin:benchmark_filters", args=[benchmark.pk])
        legend["Runs under a filter share"] = format_html(
            'left out here: <a href="{}">Filters</a> compares them on the queries with an admitted relevant document.',
            url,
        )
    return [_build_section(ladder, benchmark.primary_k) for ladder in list_ladders(benchmark)], legend


def _build_section(ladder: Ladder, k: int) -> page.Section:
    title, hint, comparison = "Against exact search", ladder.shared, ladder.comparison
    if comparison is None:
        return page.Section(title, hint, warnings=[ladder.error])
    return page.Section(
        title,
        hint,
        warnings=comparison.comparability.warnings,
        sentences=[("", sentence) for sentence in ladder.sentences],
        figure=plot_ladder(ladder),
        label=f"Difference in {comparison.measure} over megabytes in memory",
        columns=(
            page.Column(
                "Setting", lambda rung: page.Cell(rung.label, run=rung.run, standing=rung.standing), kind="bb-wide"
            ),
            page.Column("in memory", lambda rung: _format_bytes(rung.memory_bytes, unknown=DASH)),
            page.Column("on disk", lambda rung: _format_bytes(rung.disk_bytes or None, unknown=DASH)),
            page.Column(ladder.time_name, lambda rung: milliseconds(rung.ms)),
            page.agreement_column(k),
            page.difference_column(comparison.title),
            page.Column("corrected p", _show_p),
        ),
        rungs=ladder.rows,
    )


def _show_p(rung: SettingRung) -> page.Cell:
    if rung.pair is None:
        return page.Cell("the reference")
    return page.Cell(format_p(rung.pair.p_adjusted), "skew decides" if rung.pair.held_back else "")


LADDER = page.Ladder(
    "compression",
    "Approximation and compression",
    "compress",
    has_ladders,
    build_content,
    "This benchmark has no completed runs over all documents that differ only in ann. Create one with several settings "
    "of ann, exact among them.",
)
