"""Runs that differ only in how vectors are searched, compared with exact search: size, time, recall and loss."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.template.defaultfilters import filesizeformat

from apps.benchmarks.measuring.alternatives import choose_alternatives
from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.running.timing import find_search_ms, name_search_ms
from apps.results.charts import COLOURS, Figure, figure, time_axis
from apps.results.comparison.comparing import RunComparison, compare_runs
from apps.results.comparison.figures import OPEN
from apps.results.comparison.migrating import MARGIN
from apps.results.comparison.sentences import describe_few_changes
from apps.results.configurations import list_shared
from benchbench.decimals import figure as format_value
from benchbench.decimals import format_ms, short_signed
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.labels import label_settings
from benchbench.ir.statistics.resampling import Interval
from benchbench.ir.statistics.significance import Pair

MEGABYTE = 2**20
SMALLEST = 0.01  # difference at each end of an axis: smaller ones look small


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting: what every search reads, in memory, and the full vectors of which it reads a few, on disk.

    `ms` is `find_search_ms`. `recall` is that of the vectors at `k`, None for exact search. `pair` is the setting
    against the reference, None for the reference itself.
    """

    run: Run
    label: str
    memory_bytes: int | None
    disk_bytes: int
    ms: float | None
    recall: dict[str, Any] | None
    pair: Pair | None

    @property
    def is_good_enough(self) -> bool:
        """Return whether it is not significantly worse than the reference; without intervals, whether it is better."""
        if self.pair is None or self.pair.significant:
            return self.pair is None or self.pair.difference > 0
        return self.pair.simultaneous is not None

    @property
    def interval(self) -> Interval | None:
        """Return the interval of the difference; None if too few queries changed for one."""
        return self.pair.simultaneous if self.pair and not describe_few_changes(self.pair) else None


@dataclass(frozen=True, slots=True)
class Ladder:
    """Settings of search that share everything else, the reference first; or why they cannot be compared."""

    shared: str
    rows: Sequence[SettingRow] = ()
    comparison: RunComparison | None = None
    error: str = ""

    @property
    def is_isolated(self) -> bool:
        return _are_isolated([row.run for row in self.rows])

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

    def _describe(self, superlative: str, row: SettingRow) -> str:
        assert self.comparison is not None
        costs = f"{_format_bytes(row.memory_bytes)} in memory"
        costs += f" and {_format_bytes(row.disk_bytes)} on disk" if row.disk_bytes else ""
        if row.ms is not None:
            kind = "median" if self.is_isolated else "shared"
            unit = "of latency" if "open_loop" in row.run.timing else "per search"
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
    groups: dict[tuple[Any, str], list[Run]] = {}
    completed = benchmark.runs.filter(status=Run.Status.COMPLETED).exclude(index__chunk_set=None)
    alternatives, _ = choose_alternatives(completed.select_related("index__chunk_set").order_by("run_order"))
    for run in alternatives:
        configuration = run.configuration
        if configuration.uses_vectors and (configuration.filter_share or 1) == 1:
            exact = replace(configuration, ann="exact", dimensions=None).normalize()
            groups.setdefault((run.index_id, exact.hash), []).append(run)
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
    rows = list(_list_rows(comparison, runs, labels))
    rows.sort(key=lambda row: (row.pair is not None, -_or_last(row.memory_bytes)))
    return Ladder(shared, rows, comparison)


def _list_rows(comparison: RunComparison, runs: Sequence[Run], labels: Mapping[str, str]) -> Iterator[SettingRow]:
    reference = comparison.reference
    loaded = {run.pk: run for run in runs}
    for number, compared in enumerate(comparison.runs):
        run = loaded[compared.pk]
        recalls = (run.provenance.get("ann") or {}).get("recall") or [None]
        yield SettingRow(
            run,
            _render_label(run, labels),
            *_count_bytes(run),
            ms=find_search_ms(run),
            recall=recalls[0],
            pair=None if number == reference else comparison.comparison.get_pair(number, reference),
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
    return (run.provenance.get("ann") or {}).get("bytes"), full if setting.rescores else 0


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
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": sizes,
        "y": differences,
        "error_y": {
            "type": "data",
            "symmetric": False,
            "color": OPEN,
            "array": array,
            "arrayminus": arrayminus,
        },
        "marker": {"size": 11, "color": [COLOURS[0] if row.is_good_enough else COLOURS[1] for row in rows]},
        "text": [row.label for row in rows],
        "hovertemplate": "%{text}<br>%{y:+.4f}<br>%{x:.3~f} MB in memory<extra></extra>",
    }
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


def _are_isolated(runs: Sequence[Run]) -> bool:
    return all(run.timing.get("execution") == Benchmark.Execution.ISOLATED for run in runs)


def _or_last(cost: float | None) -> float:
    return math.inf if cost is None else cost


def _format_bytes(size: int | None) -> str:
    return "an unknown size" if size is None else str(filesizeformat(size)).replace("\N{NO-BREAK SPACE}", " ")
