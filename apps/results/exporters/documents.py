"""A benchmark as a document: leaderboard and verdict as text, Markdown and LaTeX, all from one `Story`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from apps.benchmarks.measuring.alternatives import choose_alternatives
from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.running.timing import mark_shared
from apps.benchmarks.runs import find_shared_warnings
from apps.datasets.models import DatasetVersion
from apps.results.comparison.comparing import MOST_RUNS, RunComparison, compare_runs
from apps.results.comparison.describing import pick_strongest
from apps.results.comparison.expected import find_board_selection
from apps.results.comparison.sentences import build_verdict
from apps.results.configurations import build_labels, list_shared
from apps.results.leaderboard.runs import Leaderboard, Row, load_leaderboard, select_measures
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.ir.demand import name_mean
from benchbench.markup import code, text


@dataclass(frozen=True, slots=True)
class Line:
    """One run. `label` has what distinguishes its configuration from those of the other runs."""

    story: "Story"
    row: Row
    label: str

    @property
    def cells(self) -> list[float | None]:
        """The final value of each measure."""
        return [self.row.final.get(name) for name in self.story.measures]

    @property
    def numbers(self) -> list[str]:
        """The cells as texts, then the milliseconds per query; a dash for a missing value."""
        values = ["–" if value is None else f"{value:.4f}" for value in self.cells]
        return [*values, "–" if self.row.ms is None else f"{self.row.ms:.1f}"]

    @property
    def standing(self) -> str:
        """The place in the verdict; "" without one."""
        return self.story.standings.get(self.row.run.pk, "")

    @property
    def lost(self) -> str:
        """The number of failed queries, or why the run is unranked; "" if it answered all."""
        failed = self.row.run.failed_queries
        return self.row.unranked or (f"{counted(failed, 'query')} failed" if failed else "")

    @property
    def failure(self) -> str:
        """The reason why the run has no values; "" if it has some."""
        run = self.row.run
        return "" if run.status == Run.Status.COMPLETED else ": ".join(filter(None, (run.status, run.error_message)))


@dataclass(frozen=True)
class Story:
    """A benchmark for readers, with the values of its leaderboard. Reading the verdict compares the runs."""

    benchmark: Benchmark
    board: Leaderboard
    measures: list[str]  # the primary one first

    @cached_property
    def shared(self) -> list[str]:
        """The common settings of all configurations."""
        return list_shared([run.config for run in self.board.runs])

    @property
    def lines(self) -> list[Line]:
        return [Line(self, *pair) for pair in zip(self.board.rows, build_labels(self.board.runs), strict=True)]

    @property
    def time(self) -> str:
        """The heading of the column of times."""
        return f"ms per query{mark_shared(self.board.runs)}"

    @cached_property
    def alternatives(self) -> tuple[list[Run], dict[str, str]]:
        return choose_alternatives(run for run in self.board.runs if run.status == Run.Status.COMPLETED)

    @cached_property
    def compared(self) -> tuple[RunComparison | None, str]:
        """The comparison of the completed alternatives, and its verdict; None and the reason without one."""
        runs, _ = self.alternatives
        if len(runs) < 2:
            return None, "No verdict: it needs two runs with values that answer the same question."
        try:
            comparison = compare_runs(pick_strongest(runs, version=self.board.version), version=self.board.version)
        except BenchbenchError as error:
            return None, f"No verdict: {error.message}"
        return comparison, build_verdict(comparison).verdict

    @property
    def verdict(self) -> str:
        return self.compared[1]

    @cached_property
    def standings(self) -> dict[UUID, str]:
        """The place of each compared run in the verdict, by run id."""
        comparison, _ = self.compared
        return (
            {run.pk: comparison.verdict.find_standing(n) for n, run in enumerate(comparison.runs)} if comparison else {}
        )

    @property
    def notes(self) -> list[str]:
        """The basis of the verdict, and differences other than the configuration."""
        comparison, _ = self.compared
        board, original = self.board, self.benchmark.dataset_version
        sentences = build_verdict(comparison) if comparison else None
        notes = [f"Means are {board.means_name}: Σ weight × value / Σ weight."] if board.means_name else []
        alternatives, omitted = self.alternatives
        notes += omitted.values()
        notes += [*sentences.notes, *sentences.warnings] if sentences else []
        weaker = len(alternatives) - MOST_RUNS
        if comparison and weaker > 0:
            left_out = counted(weaker, "lower-ranked run")
            notes.append(
                f"A comparison takes at most {MOST_RUNS} runs, so {left_out} had to be left out by their results: the "
                "error rate holds only approximately."
            )
        if board.version != original:
            notes.append(f"The values are those on {board.version}, measured from the rankings for {original}.")
        failed = sum(run.failed_queries > 0 for run in board.runs)
        if failed and not sentences:  # its warnings would cover this
            notes.append(f"{failed} of the runs failed on some queries, which their means leave out.")
        if board.evaluation and board.evaluation.unresolved_count:
            lost = board.evaluation
            notes.append(
                f"{lost.unresolved_count:,} judgments are unresolved, with {lost.unresolved_share:.1%} of "
                "the ideal gain: their documents were not found in the collection."
            )
        return notes


def load_story(benchmark: Benchmark, version: DatasetVersion | None, *, omitted: str = "") -> Story:
    """Return a benchmark for readers without the measure `omitted`; its values are on `version`, its own by default."""
    board = load_leaderboard(benchmark, version=version)
    measures = [board.primary, *select_measures(benchmark, benchmark.primary_k)]
    return Story(benchmark, board, [name for name in measures if name != omitted])


ESCAPED = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "≥": r"$\geq$",
    "–": "--",
    "·": r"$\cdot$",
    "α": r"$\alpha$",
    "−": "$-$",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
}
ESCAPED |= {sign: f"\\{sign}" for sign in "&%$#_{}"}


def write_markdown(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """Write a comment on a pull request; equal results give equal texts."""
    story = load_story(benchmark, version)
    yield f"## {text(benchmark.name)}\n\n**{text(story.verdict)}**\n\n"
    collection = benchmark.mapping.collection.name
    yield f"Dataset {text(str(version))} on {code(collection)}, {counted(version.query_count, 'query')}.\n"
    if story.shared:
        yield f"All runs: {text(' · '.join(story.shared))}.\n"
    yield f"\n| rank | run | label | {' | '.join(map(text, story.measures))} | {story.time} | standing |\n"
    yield f"|---:|---:|---|{'---:|' * (len(story.measures) + 1)}---|\n"
    for line in story.lines:
        yield _render_row(line)
    if story.notes:
        yield "\n" + "\n".join(f"- {text(note)}" for note in story.notes) + "\n"


def _render_row(line: Line) -> str:
    row = line.row
    standing = f"**{text(line.failure)}**" if line.failure else line.standing
    if line.lost:
        standing += f"{', ' if standing else ''}**{text(line.lost)}**"
    cells = [str(row.rank or "–"), str(row.run.run_order), text(line.label), *line.numbers, standing]
    return f"| {' | '.join(cells)} |\n"


def escape_latex(plain: str) -> str:
    """Return plain text as one line of LaTeX, with special characters escaped."""
    pattern = "[" + re.escape("".join(ESCAPED)) + "]"
    return re.sub(pattern, lambda match: ESCAPED[match[0]], " ".join(plain.split()))


def write_latex(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """Write a `table` that needs no package; its caption describes the test.

    The best run is bold; a dagger marks significantly worse runs.
    """
    story = load_story(benchmark, version)
    yield "\\begin{table}\n\\centering\n"
    yield f"\\begin{{tabular}}{{l{'r' * len(story.measures)}r}}\n\\hline\n"
    yield " & ".join(["Run", *map(escape_latex, story.measures), escape_latex(story.time)]) + " \\\\\n\\hline\n"
    for line in story.lines:
        yield _render_latex_row(line, len(story.measures)) + " \\\\\n"
    caption = escape_latex(" ".join([f"{story.benchmark.name} on {story.board.version}.", story.verdict, *story.notes]))
    marks = r" $^\dagger$: significantly worse than the best (bold)." if story.standings else ""
    yield f"\\hline\n\\end{{tabular}}\n\\caption{{{caption}{marks}}}\n\\end{{table}}\n"


def _render_latex_row(line: Line, measures: int) -> str:
    if line.failure:
        return f"{escape_latex(line.label)} & \\multicolumn{{{measures + 1}}}{{l}}{{{escape_latex(line.failure)}}}"
    values = [escape_latex(number) for number in line.numbers]
    if line.standing == "best":
        values[0] = f"\\textbf{{{values[0]}}}"
    elif line.standing == "worse":
        values[0] += "$^\\dagger$"
    label = escape_latex(line.label)
    if line.lost:
        label += f" ({escape_latex(line.lost)})"
    return " & ".join([label, *values])


def render_text(benchmark: Benchmark, version: DatasetVersion | None = None) -> str:
    """Return the leaderboard as lines of text, best first by the primary measure; equal means share a rank, as `1=`.

    The values are those on `version`, by default the benchmark's own. The column `run` is the number that commands take
    as `--run N` and `BENCHMARK:N`.
    """
    story = load_story(benchmark, version, omitted="AP")  # so that usual lines fit a terminal
    runs = story.board.runs
    width = max([len(run.label) for run in runs], default=10)
    searched = sorted({str(run.index) for run in runs if run.index})
    about = f"{benchmark.name}: {benchmark.status}" + (f", index {', '.join(searched)}" if searched else "")
    names = [*story.measures, f"ms/query{mark_shared(runs)}"]
    warnings = find_shared_warnings(runs)
    # Benchmark means, one of the three kinds of a run's means: see docs/measures.md.
    lines = [
        name_mean(f"{about}; benchmark means", benchmark.means_name),
        f"rank  run  {'label':{width}}  {_align(names, names)}",
    ]
    for line in story.lines:
        row, run = line.row, line.row.run
        rank = f"{row.rank}{'=' * row.tied}" if row.rank and row.final else "–"
        values = line.failure or _align(line.numbers, names)
        lines.append(f"{rank:>4}  {run.run_order:>3}  {run.label:{width}}  {values}")
        notes = [row.unranked, row.ann, *(warning for warning in run.warnings if warning not in warnings)]
        lines += [f"{'':11}{note}" for note in notes if note]
    selection = find_board_selection(story.board)
    first = [story.verdict, selection.caveat, ""] if selection else []
    return "\n".join([*first, *lines, *(f"All runs: {warning}" for warning in warnings)])


def _align(cells: Sequence[str], names: Sequence[str]) -> str:
    return " ".join(f"{cell:{max(9, len(name))}}" for cell, name in zip(cells, names, strict=True)).rstrip()
