"""SPEC-002: a run as the baseline file of the module search."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db.models import Sum

from apps.benchmarks.models import Benchmark, Run
from apps.datasets.models import DatasetVersion
from apps.datasets.versions import version_text
from apps.results.exporters.outcomes import AT_ONCE, NOT_ASKED, Outcome, measured, outcomes_at
from apps.results.exporters.strategy_searches import asked_of
from benchbench.database.binary import batched
from benchbench.files import spec002
from benchbench.files.spec002 import LIMIT, Answer, closing, detail, opening, query_lines
from benchbench.local_files.placing import make_folder, place_pieces

INTEGER = re.compile(r"0|-?[1-9][0-9]{0,199}")  # an id as text, which names it again: 007 does not


def write(run: Run, version: DatasetVersion) -> Iterator[str]:
    yield text_of(content_of(run, version))


def text_of(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def content_of(run: Run, version: DatasetVersion, *, limit: int = spec002.LIMIT) -> dict[str, Any]:
    """Return what the file of a run holds that has ended; raise an ExportError for one without values on `version`.

    Of a run that failed every query has its error, or the run's.

    Of each query the first `limit` documents that it returned are looked at; the file states fewer where the run kept
    fewer chunks: its recall@10 is then of so many.
    """
    if run.status != Run.Status.FAILED:
        measured(run, version)
    limit = min(limit, run.config.get("top_k") or limit)
    questions = Questions(run.benchmark, version)
    answers = [answer for some in batched(questions.query_ids, AT_ONCE) for answer in questions.answers(run, some)]
    took = run.query_results.aggregate(ms=Sum("total_ms"))["ms"]  # of those that failed too
    content = spec002.baseline(
        answers,
        when=ended(run),
        search_mode=run.config.get("search_mode", "external"),
        seconds=None if took is None else round(took) / 1000,
        limit=limit,
    )
    if version != run.benchmark.dataset_version:
        content["metadata"]["dataset_version"] = version.number
    return content


def file_name(run: Run, version: DatasetVersion) -> str:
    """The name tells when the queries were asked, whatever version they are measured on."""
    return spec002.file_name(ended(run))


def ended(run: Run) -> datetime:
    return run.completed_at or run.created_at


class Questions:
    """The queries of a dataset version, in its order, and what is expected of each.

    Relevant documents are the expected modules, in the order in which they are stated; `version` is what the query
    states of it.
    """

    def __init__(self, benchmark: Benchmark, version: DatasetVersion) -> None:
        self.asked = asked_of(benchmark, version)
        self.query_ids = [query.pk for query in self.asked.queries]
        self.shared = benchmark.execution == Benchmark.Execution.SHARED

    def answers(self, run: Run, query_ids: Sequence[int]) -> list[spec002.Answer]:
        """Return what became of some queries in a run; one that has no result, or a failed one, says so in `error`."""
        failed = run.error_message if run.status == Run.Status.FAILED else ""
        return [self._answer(outcome, failed) for outcome in outcomes_at(run, query_ids, None)]

    def _answer(self, outcome: Outcome, failed: str) -> spec002.Answer:
        query, result = outcome.query, outcome.result
        version = query.metadata.get("version") or query.filters.get("version")
        error = (result.error if result else "") or failed or outcome.error
        return spec002.Answer(
            query_id=int(query.key) if INTEGER.fullmatch(query.key) else query.key,
            query=query.text,
            version=list(map(str, version)) if isinstance(version, list) else version_text(version) or None,
            category=query.category,
            difficulty=query.difficulty,
            expected=list(dict.fromkeys(map(self.asked.name_of, self.asked.expected.get(query.pk, ())))),
            returned=[] if error else outcome.documents,
            milliseconds=result.total_ms if result else None,
            error=error or None,
            shared=self.shared and result is not None and result.total_ms is not None,
        )


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
        expects_modules = benchmark.dataset_version.dataset.source_format == "module-queries"
        self.noun = "module" if expects_modules else "document"
        self.runs = list(benchmark.runs.order_by("run_order"))
        self.told = 0  # queries of the first of these runs
        source = source or str(benchmark.dataset_version)
        self._tell(opening(benchmark.name, source=source, queries=len(self.questions.query_ids)))

    def poll(self, *, ended: bool = False) -> None:
        """Tell of the queries that have ended since, as far as the one that is next in order; of all, once `ended`."""
        while self.runs:
            for answer in self._next(ended):
                if self.told == 0 and self.benchmark.total_runs > 1:
                    self._tell(_heading(self.runs[0], self.benchmark))
                self.told += 1
                shown = detail(answer, limit=self.limit)
                self._tell(query_lines(shown, self.told, len(self.questions.query_ids), noun=self.noun))
            if self.told < len(self.questions.query_ids):
                if ended:
                    continue
                return
            self.runs.pop(0)
            self.told = 0

    def _next(self, ended: bool) -> list[Answer]:
        """The answers from the next query on, of which none is missing. One that failed may yet be repeated."""
        answers = self.questions.answers(self.runs[0], self.questions.query_ids[self.told : self.told + AT_ONCE])
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


def _heading(run: Run, benchmark: Benchmark) -> list[str]:
    return [f"Run {run.run_order} of {benchmark.total_runs}: {run.label}", ""]
