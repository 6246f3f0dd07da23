"""The page of a ladder: runs along an axis with their quality and time, as sentences, a figure and a table."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from apps.records.models import Benchmark, Run
from apps.records.models.provenance import RecallShare
from apps.records.models.timing import LoopRecall
from apps.results.charts import COLOURS, LEGEND, Figure, figure
from apps.results.templatetags.benchbench import DASH, interval, signed, value
from benchbench.ir.planning.axes import normalize, run_label
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.labels import label_settings
from benchbench.ir.statistics.significance import Pair
from benchbench.ir.statistics.wording import describe_few_changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """A run on a ladder. `pair` is its difference to exact search on the compared queries; None for exact search.

    `recall` is its agreement with exact search by all dimensions at the primary k: over the queries that the store
    answered itself, 1 for exact search, None if not measured.
    """

    run: Run
    recall: float | None
    pair: Pair | None = None

    @property
    def is_exact(self) -> bool:
        return self.run.configuration.is_exact

    @property
    def ms(self) -> float | None:
        return self.run.times.typical_search_ms


def find_recall(run: Run, measured: Sequence[RecallShare | LoopRecall]) -> float | None:
    """Return the `recall` of a rung from the measured ones, that at the primary k first."""
    configuration = run.configuration
    if configuration.is_exact and configuration.uses_vectors and not configuration.asks_engine:
        return 1.0  # it is what the others are compared with
    return measured[0].mean if measured else None


def find_exact(configuration: Configuration) -> Configuration:
    """Return the exact search with which a setting is compared."""
    return normalize(replace(configuration, ann="exact", dimensions=None))


def list_labels(settings: Collection[Configuration]) -> Iterator[str]:
    """Yield the labels of settings, with the options in which they differ."""
    labels = label_settings(setting.ann for setting in settings)
    return (run_label(replace(setting, ann=labels[setting.ann])) for setting in settings)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table, with smaller text below it, a standing, or text that unfolds. One with a run heads its row."""

    text: str
    small: str = ""
    run: Run | None = None
    standing: str = ""
    details: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its heading, and the function that returns the cell of a rung."""

    heading: str
    show: Callable[[Any], Cell | str]
    small: str = ""
    kind: str = "bb-number"


def agreement_column(k: int) -> Column:
    heading = f"agreement with exact, top {k}"
    return Column(heading, lambda rung: "exact" if rung.recall and rung.is_exact else value(rung.recall, 3))


def difference_column(measure: str) -> Column:
    """Return the column of differences to exact search, with their intervals or the reasons against one."""
    return Column(f"{measure} against exact".strip(), lambda rung: _show_pair(rung.pair), "simultaneous 95 %")


def _show_pair(pair: Pair | None) -> Cell:
    return (
        Cell(signed(pair.difference), describe_few_changes(pair) or interval(pair.simultaneous)) if pair else Cell(DASH)
    )


@dataclass(frozen=True, slots=True)
class Section:
    """A panel of the page, with a figure or a table of `rungs`. `label` describes the figure to who does not see it.

    `sentences` are those on each setting, after its label; without one if the title names it.
    """

    title: str
    hint: str = ""
    warnings: Sequence[str] = ()
    sentences: Iterable[tuple[str, str]] = ()
    text: str = ""
    figure: Figure | None = None
    label: str = ""
    columns: Sequence[Column] = ()
    rungs: Iterable[Rung] = ()

    @property
    def rows(self) -> list[list[tuple[str, Cell]]]:
        """Return the cells of each row with the kinds of their columns."""
        cells = [[(column.kind, column.show(rung)) for column in self.columns] for rung in self.rungs]
        return [[(kind, Cell(cell) if isinstance(cell, str) else cell) for kind, cell in row] for row in cells]


Content = tuple[Sequence[Section], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Ladder:
    """A ladder: the name in the page's address, its title, and for a benchmark its sections with their legend.

    A benchmark whose matrix `has_runs` for it links to the page; without completed ones the page shows `empty`.
    """

    name: str
    title: str
    icon: str
    has_runs: Callable[[Benchmark], bool]
    build: Callable[[Benchmark], Content]
    empty: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a figure: its points from left to right, with words of each."""

    name: str
    points: Sequence[tuple[float, float]]
    words: Sequence[str] = ()
    is_dashed: bool = False


def plot_lines(lines: Sequence[Line], *, hover: str, x: Figure, y: Figure) -> Figure:
    """Return a figure of lines, each with its colour."""
    traces = []
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        trace: Figure = {"type": "scatter", "mode": "lines+markers", "name": line.name, "hovertemplate": hover}
        trace |= {"x": [x for x, _ in line.points], "y": [y for _, y in line.points], "text": line.words}
        trace |= {"line": {"color": colour, "dash": "dash" if line.is_dashed else "solid"}}
        traces.append(trace | {"marker": {"size": 9, "color": colour}})
    layout = {"legend": LEGEND, "showlegend": True, "hovermode": "closest"}
    return figure(*traces, x=x, y=y, height=380, margin=(64, 16, 40, 64), **layout)
