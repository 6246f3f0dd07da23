"""The console of SPEC-002: a line for each query as it ends, the totals, the baseline files."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from apps.benchmarks.models import Benchmark, Run
from apps.results.exporters.outcomes import AT_ONCE, NOT_ASKED
from apps.results.exporters.spec002 import Questions, content_of, file_name, text_of
from benchbench.files.spec002 import LIMIT, Answer, closing, detail, opening, query_lines
from benchbench.local_files.placing import make_folder, place_pieces


class Console:
    """Tells what becomes of the queries of a benchmark, run after run, each run's queries in the dataset's order.

    `write` gets one line at a time. Of each query the first `limit` documents that it returned are looked at.
    """

    def __init__(
        self, benchmark: Benchmark, write: Callable[[str], object], *, limit: int = LIMIT, source: str = ""
    ) -> None:
        self.benchmark = benchmark
        self.write = write
        self.limit = limit
        self.questions = Questions(benchmark, benchmark.dataset_version)
        self.noun = noun_of(benchmark)
        self.runs = list(benchmark.runs.order_by("run_order"))
        self.told = 0  # queries of the first of these runs
        lines = opening(
            benchmark.name,
            source=source or str(benchmark.dataset_version),
            queries=len(self.questions.query_ids),
        )
        self._tell(lines)

    def poll(self, *, ended: bool = False) -> None:
        """Tell of the queries that have ended since, as far as the one that is next in order; of all, once `ended`."""
        while self.runs:
            for answer in self._next(ended):
                if self.told == 0 and self.benchmark.total_runs > 1:
                    self._tell(_heading(self.runs[0], self.benchmark))
                self.told += 1
                lines = query_lines(
                    detail(answer, limit=self.limit), self.told, len(self.questions.query_ids), noun=self.noun
                )
                self._tell(lines)
            if self.told < len(self.questions.query_ids):
                if ended:
                    continue
                return
            self.runs.pop(0)
            self.told = 0

    def _next(self, ended: bool) -> list[Answer]:
        """The answers from the next query on, of which none is missing. One that failed may yet be repeated."""
        query_ids = self.questions.query_ids[self.told : self.told + AT_ONCE]
        answers = self.questions.answers(self.runs[0], query_ids)
        if ended:
            return answers
        once = self.benchmark.runs_per_query == 1
        open_ends = (n for n, answer in enumerate(answers) if answer.error == NOT_ASKED or (answer.error and not once))
        return answers[: next(open_ends, len(answers))]

    def close(self, paths: dict[Any, Path]) -> None:
        """Tell the rest, and the totals of every run; `paths` are the baseline files, by the id of their run."""
        self.poll(ended=True)
        for run in self.benchmark.runs.order_by("run_order"):
            if self.benchmark.total_runs > 1:
                self._tell(_heading(run, self.benchmark))
            if run.status == Run.Status.COMPLETED:
                content = content_of(run, self.benchmark.dataset_version, limit=self.limit)
                self._tell(closing(content, written_to=str(paths.get(run.pk, ""))))
            else:
                self._tell([f"The run {run.status}{f': {run.error_message}' if run.error_message else '.'}"])

    def _tell(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)


def write_baselines(benchmark: Benchmark, folder: Path, *, limit: int = LIMIT) -> dict[Any, Path]:
    """Write the baseline file of every run that completed or failed, and return where each is, by the id of its run.

    The folder is made. Of several runs each has its own within it, `run-2`: the prescribed names tell only seconds.
    Raises ExportError and OutputError.
    """
    paths = {}
    ended = (Run.Status.COMPLETED, Run.Status.FAILED)
    for run in benchmark.runs.filter(status__in=ended).order_by("run_order"):
        place = folder / f"run-{run.run_order}" if benchmark.total_runs > 1 else folder
        make_folder(place)
        content = content_of(run, benchmark.dataset_version, limit=limit)
        paths[run.pk] = place / file_name(run, benchmark.dataset_version)
        place_pieces([text_of(content)], paths[run.pk])
    return paths


def noun_of(benchmark: Benchmark) -> str:
    """Return what the queries of a benchmark expect."""
    return "module" if benchmark.dataset_version.dataset.source_format == "module-queries" else "document"


def _heading(run: Run, benchmark: Benchmark) -> list[str]:
    return [f"Run {run.run_order} of {benchmark.total_runs}: {run.label}", ""]
