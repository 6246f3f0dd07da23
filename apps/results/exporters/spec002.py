"""SPEC-002: a run as the baseline file of the module search."""

import json
from collections.abc import Iterator
from datetime import datetime

from apps.benchmarks.evaluating import truth_of
from apps.benchmarks.models import Run
from apps.datasets.models import DatasetVersion
from apps.results.exporters.outcomes import Outcome, measured, outcomes_of
from apps.results.exporters.results_json import milliseconds_between
from apps.results.exporters.truths import names_of
from benchbench.files import spec002


def write(run: Run, version: DatasetVersion) -> Iterator[str]:
    """Relevant documents are the expected modules, by falling grade; an answer's version is what its query states."""
    evaluation = measured(run, version)
    grades = truth_of(run.benchmark, version).grades
    names = names_of({key for graded in grades.values() for key in graded}, run.benchmark)
    answers = []
    for outcome in outcomes_of(run, evaluation):
        relevant = sorted((-grade, names[key]) for key, grade in grades[outcome.query.pk].items() if grade > 0)
        answers.append(_answer(outcome, [name for _, name in relevant]))
    took = milliseconds_between(run.started_at, run.completed_at)
    content = spec002.baseline(
        answers,
        when=ended(run),
        search_mode=run.config.get("search_mode", "external"),
        seconds=None if took is None else took / 1000,
    )
    if version != run.benchmark.dataset_version:
        content["metadata"]["dataset_version"] = version.number
    yield json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def file_name(run: Run) -> str:
    return spec002.file_name(ended(run))


def ended(run: Run) -> datetime:
    return run.completed_at or run.created_at


def _answer(outcome: Outcome, expected: list[str]) -> spec002.Answer:
    query = outcome.query
    version = query.metadata.get("version") or query.filters.get("version")
    return spec002.Answer(
        query_id=int(query.key) if query.key.isdecimal() else query.key,
        query=query.text,
        version=None if version is None else str(version),
        category=query.category,
        difficulty=query.difficulty,
        expected=expected,
        returned=outcome.documents,
        milliseconds=outcome.result.total_ms if outcome.result else None,
        error=outcome.error or None,
    )
