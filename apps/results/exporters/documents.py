"""A benchmark as a document: verdict and leaderboard in Markdown, LaTeX and HTML, all from one `Story`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.template.loader import render_to_string

from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.running.timing import mark_shared
from apps.benchmarks.runs import find_shared_warnings
from apps.datasets.models import DatasetVersion
from apps.results.charts import plot_quality
from apps.results.comparison.comparing import RunComparison, compare_runs
from apps.results.comparison.sentences import VerdictText, build_verdict
from apps.results.configurations import build_labels, list_shared
from apps.results.leaderboard.runs import Leaderboard, Row, load_leaderboard, select_measures
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.markup import code, text


@dataclass(frozen=True, slots=True)
class Line:
    """One run: `cells` has the value of each measure, `standing` its place in the verdict, "" without one."""

    row: Row
    label: str
    cells: list[float | None]
    standing: str

    @property
    def numbers(self) -> list[str]:
        """The cells as texts, then the milliseconds per query; a dash for a missing value."""
        values = ["–" if value is None else f"{value:.4f}" for value in self.cells]
        return [*values, "–" if self.row.ms is None else f"{self.row.ms:.1f}"]

    @property
    def lost(self) -> str:
        """The number of failed queries, or why the run is unranked; "" if it answered all."""
        if self.row.unranked:
            return self.row.unranked
        failed = self.row.run.failed_queries
        return f"{counted(failed, 'query')} failed" if failed else ""

    @property
    def failure(self) -> str:
        """The reason why the run has no values; "" if it has some."""
        run = self.row.run
        return "" if run.status == Run.Status.COMPLETED else f"{run.status}: {run.error_message or 'no values'}"


@dataclass(frozen=True, slots=True)
class Story:
    """Summary of a benchmark for readers. `comparison`: None without a verdict; `verdict` then gives the reason."""

    benchmark: Benchmark
    board: Leaderboard
    measures: list[str]  # the primary one first
    shared: list[str]  # common settings of all configurations
    lines: list[Line]
    comparison: RunComparison | None
    verdict: str
    time: str  # heading of the column of times
    notes: list[str]  # the basis of the verdict, and differences other than the configuration


def build_story(benchmark: Benchmark, version: DatasetVersion) -> Story:
    """Return the summary of a finished benchmark, with its values on `version`."""
    board = load_leaderboard(benchmark, version=version)
    runs = board.runs
    comparison, reason = _compare([run for run in runs if run.status == Run.Status.COMPLETED], version)
    sentences = build_verdict(comparison) if comparison else None
    standing = {run.pk: comparison.find_standing(n) for n, run in enumerate(comparison.runs)} if comparison else {}
    measures = [board.primary, *select_measures(benchmark, benchmark.primary_k)]
    return Story(
        benchmark=benchmark,
        board=board,
        measures=measures,
        shared=list_shared([run.config for run in runs]),
        lines=[
            Line(row, label, [row.values.get(name) for name in measures], standing.get(row.run.pk, ""))
            for row, label in zip(board.rows, build_labels(runs), strict=True)
        ],
        comparison=comparison,
        verdict=sentences.verdict if sentences else reason,
        time=f"ms per query{mark_shared(runs)}",
        notes=_list_notes(sentences, board, benchmark.dataset_version),
    )


def _compare(runs: list[Run], version: DatasetVersion) -> tuple[RunComparison | None, str]:
    if len(runs) < 2:
        return None, "No verdict: it needs two runs with values."
    try:
        return compare_runs(runs, version=version), ""
    except BenchbenchError as error:
        return None, f"No verdict: {error.message}"


def _list_notes(sentences: VerdictText | None, board: Leaderboard, original: DatasetVersion) -> list[str]:
    failed = [row.run.failed_queries for row in board.rows if row.run.failed_queries]
    notes = [*sentences.notes, *sentences.warnings] if sentences else []
    if board.version != original:
        notes.append(f"The values are those on {board.version}, measured from the rankings for {original}.")
    if failed and not sentences:  # its warnings would cover this
        notes.append(f"{len(failed)} of the runs failed on some queries, which their means leave out.")
    if board.evaluation and board.evaluation.unresolved_count:
        lost = board.evaluation
        notes.append(
            f"{lost.unresolved_count:,} judgments are unresolved, with {lost.unresolved_share:.1%} of "
            "the ideal gain: their documents were not found in the collection."
        )
    return notes


SCRIPT = "<!-- plotly -->"  # placeholder for the 4 MB of script that draw the figure
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
    story = build_story(benchmark, version)
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
    story = build_story(benchmark, version)
    yield "\\begin{table}\n\\centering\n"
    yield f"\\begin{{tabular}}{{l{'r' * len(story.measures)}r}}\n\\hline\n"
    yield " & ".join(["Run", *map(escape_latex, story.measures), escape_latex(story.time)]) + " \\\\\n\\hline\n"
    for line in story.lines:
        yield _render_latex_row(line, len(story.measures)) + " \\\\\n"
    caption = escape_latex(" ".join([f"{story.benchmark.name} on {story.board.version}.", story.verdict, *story.notes]))
    marks = "" if story.comparison is None else r" $^\dagger$: significantly worse than the best (bold)."
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


def write_html(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """Write one page that needs no network, in three pieces; the second draws the figure, if any."""
    story = build_story(benchmark, version)
    figure = plot_quality(story.board)
    page = render_to_string("results/export.html", {"story": story, "figure": figure, "script": SCRIPT})
    before, script, after = page.partition(SCRIPT)
    yield before
    if script:
        from plotly.offline import get_plotlyjs  # takes a second to import, and is needed only here

        yield f"<script>{get_plotlyjs()}</script>"
    yield after


FACTS = ("id", "label", "config", "status", "timing", "failed_queries", "unranked", "ann", "warnings", "error_message")


def build_facts(benchmark: Benchmark) -> dict[str, Any]:
    """Return the benchmark and its runs in run order, for the JSON output of commands."""
    return {
        "benchmark": str(benchmark.pk),
        "name": benchmark.name,
        "status": benchmark.status,
        "runs": [_describe_row(row) for row in load_leaderboard(benchmark).in_run_order],
    }


def _describe_row(row: Row) -> dict[str, Any]:
    facts, index = row.facts, row.run.index
    picked = {name: facts[name] for name in FACTS}
    return {**picked, "index": str(index) if index else None, "metrics": facts["metrics_flat"]}


def render_text(benchmark: Benchmark) -> str:
    """Return the leaderboard as lines of text, best first by the primary measure; equal means share a rank, as `1=`.

    The column `run` is the number that commands take as `--run N` and `BENCHMARK:N`.
    """
    board, k = load_leaderboard(benchmark), benchmark.primary_k
    runs = board.runs
    width = max([len(run.label) for run in runs], default=10)
    searched = sorted({str(run.index) for run in runs if run.index})
    about = f"{benchmark.name}: {benchmark.status}" + (f", index {', '.join(searched)}" if searched else "")
    head = f"rank  run  {'label':{width}}  nDCG@{k:<4} P@{k:<6}  R@{k:<6}  RR       ms/query{mark_shared(runs)}"
    warnings = find_shared_warnings(runs)
    measures = (board.primary, f"P@{k}", f"R@{k}", "RR")
    lines = [line for row in board.rows for line in _render_lines(row, measures, width, warnings)]
    # Benchmark means, one of the three kinds of a run's means: see docs/measures.md.
    return "\n".join([f"{about}; benchmark means", head, *lines, *(f"All runs: {warning}" for warning in warnings)])


def _render_lines(row: Row, measures: tuple[str, ...], width: int, shared: list[str]) -> Iterator[str]:
    """Yield the line of a run, and notes that concern it alone."""
    run, final = row.run, row.final
    rank = f"{row.rank}{'=' * row.tied}" if row.rank and final else "–"
    head = f"{rank:>4}  {run.run_order:>3}  {run.label:{width}}"
    if not final:
        yield f"{head}  {run.status} {run.error_message}".rstrip()
        return
    values = [final.get(name) for name in measures]
    numbers = "  ".join("   –    " if value is None else f"{value:<8.4f}" for value in values)
    yield f"{head}  {numbers} {'–' if row.ms is None else f'{row.ms:.1f}'}"
    notes = [row.unranked, row.ann, *(warning for warning in run.warnings if warning not in shared)]
    yield from (f"{'':11}{note}" for note in notes if note)
