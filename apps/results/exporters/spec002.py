"""SPEC-002: a run as the baseline file of the module search."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db.models import Sum

from apps.datasets.models import DatasetVersion
from apps.datasets.versions import render_version
from apps.records.lists.reading import require_rankings
from apps.records.models import Benchmark, Run
from apps.records.models.timing import TIMINGS
from apps.results.exporters.outcomes import AT_ONCE, NOT_ASKED, Outcome, load_inputs, load_outcomes, require_evaluation
from benchbench import SOFTWARE
from benchbench.database.binary import batched
from benchbench.files import spec002
from benchbench.files.spec002 import LIMIT, Answer, build_detail, query_lines, render_closing, render_opening
from benchbench.local_files.placing import make_folder, write_file_pieces

INTEGER = re.compile(r"0|-?[1-9][0-9]{0,199}")  # text of an id that converts back to itself: 007 does not


def write(run: Run, version: DatasetVersion) -> Iterator[str]:
    yield render_text(build_content(run, version))


def render_text(content: Mapping[str, object]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def build_content(run: Run, version: DatasetVersion, *, limit: int = spec002.LIMIT) -> dict[str, object]:
    """Return the content of the file of a finished run.

    Raises ExportError without values on `version`, unless the run failed. In a failed run every query has its own
    error or the run's. The first `limit` documents of each query count, fewer if the run returned fewer chunks:
    recall@10 then covers only those.
    """
    require_rankings(run.benchmark)
    if run.status != Run.Status.FAILED:
        require_evaluation(run, version)
    limit = limit if run.is_external else min(limit, run.configuration.top_k)
    questions = Questions(run.benchmark, version)
    answers = [answer for some in batched(questions.query_ids, AT_ONCE) for answer in questions.load_answers(run, some)]
    durations = _sum_durations(run)
    content = spec002.build_baseline(
        answers,
        when=find_end(run),
        search_mode="external" if run.is_external else run.configuration.search_mode,
        seconds=round(sum(durations)) / 1000 if durations else None,
        limit=limit,
    )
    if version != run.benchmark.dataset_version:
        content["metadata"]["dataset_version"] = version.number
    content["metadata"]["software"] = SOFTWARE
    return content


def _sum_durations(run: Run) -> list[float]:
    """Return sums over the searches of a run, also failed ones; at a rate those of its stages, without waiting."""
    names = TIMINGS[:-1] if run.configuration.rate else TIMINGS[-1:]
    sums = run.query_results.aggregate(**{f"{name}_sum": Sum(name) for name in names})
    return [ms for ms in sums.values() if ms is not None]


def name_file(run: Run, version: DatasetVersion) -> str:
    """Return the file's name, which has the time of the queries on any dataset version."""
    return spec002.name_file(find_end(run))


def find_end(run: Run) -> datetime:
    return run.completed_at or run.created_at


class Questions:
    """The queries of a dataset version, in its order, with their expected modules.

    Relevant documents are the expected modules, in the order of the judgments. `version` comes from the query's
    metadata or filters.
    """

    def __init__(self, benchmark: Benchmark, version: DatasetVersion) -> None:
        self.inputs = load_inputs(benchmark, version)
        self.query_ids = [query.pk for query in self.inputs.queries]
        self.shared = benchmark.execution == Benchmark.Execution.SHARED

    def load_answers(self, run: Run, query_ids: Sequence[int]) -> list[spec002.Answer]:
        """Return the outcomes of some queries in a run; a query that failed or has no result has an `error`."""
        failed = run.error_message if run.status == Run.Status.FAILED else ""
        return [self._answer(outcome, failed) for outcome in load_outcomes(run, query_ids, None)]

    def _answer(self, outcome: Outcome, failed: str) -> spec002.Answer:
        query, milliseconds = outcome.query, outcome.costs.get("total_ms")
        version = query.metadata.get("version") or query.filters.get("version")
        error = (outcome.error if outcome.costs else "") or failed or outcome.error
        return spec002.Answer(
            query_id=int(query.key) if INTEGER.fullmatch(query.key) else query.key,
            query=query.text,
            version=list(map(str, version)) if isinstance(version, list) else render_version(version) or None,
            category=query.category,
            difficulty=query.difficulty,
            expected=list(dict.fromkeys(map(self.inputs.name_of, self.inputs.expected.get(query.pk, ())))),
            returned=[] if error else outcome.documents,
            milliseconds=milliseconds,
            error=error or None,
            shared=self.shared and milliseconds is not None,
        )


class Console:
    """Report of a benchmark's queries while it runs: run after run, queries in the dataset's order.

    `write` gets one line at a time. Of each query the first `limit` documents are reported.
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
        self.count = 0  # reported queries of the first of these runs
        source = source or str(benchmark.dataset_version)
        self._print(render_opening(benchmark.name, source=source, queries=len(self.questions.query_ids)))

    def poll(self, *, ended: bool = False) -> None:
        """Report the queries that have ended since, up to the first unfinished one in order; all of them if `ended`."""
        while self.runs:
            for answer in self._take_next(ended):
                if self.count == 0 and self.benchmark.total_runs > 1:
                    self._print(_render_heading(self.runs[0], self.benchmark))
                self.count += 1
                details = build_detail(answer, limit=self.limit)
                self._print(query_lines(details, self.count, len(self.questions.query_ids), noun=self.noun))
            if self.count < len(self.questions.query_ids):
                if ended:
                    continue
                return
            self.runs.pop(0)
            self.count = 0

    def _take_next(self, ended: bool) -> list[Answer]:
        """Return the finished answers from the next query on. A failed query may still be repeated."""
        answers = self.questions.load_answers(self.runs[0], self.questions.query_ids[self.count : self.count + AT_ONCE])
        if ended:
            return answers
        once = self.benchmark.runs_per_query == 1
        open_ends = (n for n, answer in enumerate(answers) if answer.error == NOT_ASKED or (answer.error and not once))
        return answers[: next(open_ends, len(answers))]

    def close(self, paths: dict[UUID, Path]) -> None:
        """Report the rest, and the totals of every run; `paths` are the baseline files by run id."""
        self.poll(ended=True)
        for run in self.benchmark.runs.order_by("run_order"):
            if self.benchmark.total_runs > 1:
                self._print(_render_heading(run, self.benchmark))
            if run.status == Run.Status.COMPLETED:
                content = build_content(run, self.benchmark.dataset_version, limit=self.limit)
                self._print(render_closing(content, written_to=str(paths.get(run.pk, ""))))
                if self.benchmark.means_name:
                    name = self.benchmark.means_name
                    self._print([f"These totals count every query alike; the benchmark's means are {name}."])
            else:
                self._print([f"The run {run.status}{f': {run.error_message}' if run.error_message else '.'}"])

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)


def write_baselines(benchmark: Benchmark, folder: Path, *, limit: int = LIMIT) -> dict[Any, Path]:
    """Write the baseline file of every run that completed or failed; return the paths by run id.

    Creates the folder. Several runs get a subfolder each, `run-2`, because the prescribed file names have only seconds.
    Raises ExportError and OutputError.
    """
    paths = {}
    ended = (Run.Status.COMPLETED, Run.Status.FAILED)
    for run in benchmark.runs.filter(status__in=ended).order_by("run_order"):
        target = folder / f"run-{run.run_order}" if benchmark.total_runs > 1 else folder
        make_folder(target)
        content = build_content(run, benchmark.dataset_version, limit=limit)
        paths[run.pk] = target / name_file(run, benchmark.dataset_version)
        write_file_pieces([render_text(content)], paths[run.pk])
    return paths


def _render_heading(run: Run, benchmark: Benchmark) -> list[str]:
    return [f"Run {run.run_order} of {benchmark.total_runs}: {run.label}", ""]
