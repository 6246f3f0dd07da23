"""A benchmark as a document: leaderboard and verdict as text, Markdown and LaTeX, all from one `Story`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from django.template.loader import render_to_string

from apps.datasets.models import DatasetVersion
from apps.execution.running.timing import mark_shared
from apps.records.finding import describe_warnings
from apps.records.measuring.alternatives import choose_alternatives
from apps.records.models import Benchmark, Run
from apps.verdicts.comparing import MOST_RUNS, RunComparison, compare_runs
from apps.verdicts.configurations import build_labels, list_shared
from apps.verdicts.coverage import describe_coverage, name_judged
from apps.verdicts.describing import pick_strongest
from apps.verdicts.expected import find_board_selection
from apps.verdicts.ranked_runs import Leaderboard, Row, load_leaderboard, select_measures
from apps.verdicts.sentences import build_verdict
from benchbench import SOFTWARE
from benchbench.decimals import counted, format_share
from benchbench.errors import BenchbenchError
from benchbench.ir.demand import name_mean


@dataclass(frozen=True, slots=True)
class Line:
    """One run. `label` has what distinguishes its configuration from those of the other runs."""

    story: "Story"
    row: Row
    label: str

    @property
    def full_name(self) -> str:
        """The label with all settings; "" if `label` has them."""
        return self.row.run.label if self.row.run.label != self.label else ""

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
    def rank(self) -> str:
        """The rank, or the range of ranks that the significant differences leave open; a dash without one."""
        return self.story.rank_ranges.get(self.row.run.pk) or str(self.row.rank or "–")

    @property
    def judged(self) -> float | None:
        """The judged share of the documents that the primary measure reads."""
        return self.row.final.get(name_judged(self.story.board.primary))

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

    software = SOFTWARE

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

    @cached_property
    def rank_ranges(self) -> dict[UUID, str]:
        """The range of ranks of each run whose rank is one, if the verdict is on all completed runs."""
        comparison, _ = self.compared
        completed = sum(run.status == Run.Status.COMPLETED for run in self.board.runs)
        if comparison is None or not comparison.is_tested or len(comparison.runs) < completed:
            return {}
        return {run.pk: ranks for run, ranks in comparison.list_rank_ranges()}

    @property
    def notes(self) -> list[str]:
        """The basis of the verdict, and differences other than the configuration."""
        comparison, _ = self.compared
        board, original = self.board, self.benchmark.dataset_version
        sentences = build_verdict(comparison) if comparison else None
        notes = [f"Means are {board.means_name}: Σ weight × value / Σ weight."] if board.means_name else []
        notes += [f"Policies: {self.benchmark.identity_note}."] if self.benchmark.identity_note else []
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
        if unsearched := board.evaluation.unsearched_queries if board.evaluation else 0:
            notes.append(f"{counted(unsearched, 'query')} of {board.version} had not been searched, and is left out.")
        failed = sum(run.failed_queries > 0 for run in board.runs)
        if failed and not sentences:  # its warnings would cover this
            notes.append(f"{failed} of the runs failed on some queries, which their means leave out.")
        if board.evaluation and board.evaluation.unresolved_count:
            lost = board.evaluation
            notes.append(
                f"{lost.unresolved_count:,} judgments are unresolved, with {format_share(lost.unresolved_share)} of "
                "the ideal gain: their documents were not found in the collection."
            )
        uneven, few_judged = describe_coverage(board)
        notes += [uneven or few_judged] if uneven or few_judged else []
        return [*notes, *describe_warnings(board.runs, build_labels(board.runs))]


def load_story(benchmark: Benchmark, version: DatasetVersion | None, *, omitted: str = "") -> Story:
    """Return a benchmark for readers without the measure `omitted`; its values are on `version`, its own by default."""
    board = load_leaderboard(benchmark, version=version)
    measures = [board.primary, *select_measures(benchmark, benchmark.primary_k)]
    return Story(benchmark, board, [name for name in measures if name != omitted])


def write_markdown(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """Write a comment on a pull request; equal results give equal texts."""
    yield render_to_string("results/export.md", {"story": load_story(benchmark, version)})


def write_latex(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """Write a `table` that needs no package; its caption describes the test.

    The best run is bold; a dagger marks significantly worse runs.
    """
    yield render_to_string("results/export.tex", {"story": load_story(benchmark, version)})


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
    warnings = describe_warnings(runs, [run.label for run in runs])
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
        notes = [row.unranked, row.ann]
        lines += [f"{'':11}{note}" for note in notes if note]
    selection = find_board_selection(story.board)
    first = [story.verdict, selection.caveat, ""] if selection else []
    return "\n".join([*first, *lines, *warnings])


def _align(cells: Sequence[str], names: Sequence[str]) -> str:
    return " ".join(f"{cell:{max(9, len(name))}}" for cell, name in zip(cells, names, strict=True)).rstrip()
