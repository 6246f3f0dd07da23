"""Results as files over HTTP: every format, as `export_results` writes it, and no file where there is an error."""

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from apps.benchmarks.models import Benchmark, Run
from apps.results.exporting import EXPORTERS, export, file_name
from tests.api.callers import Callers
from tests.results.exported import make_exported


@pytest.fixture
def exported(callers: Callers) -> Benchmark:
    benchmark = make_exported()
    benchmark.owner = callers.owner.user
    benchmark.save()
    return benchmark


def path(subject: Benchmark | Run) -> str:
    if isinstance(subject, Run):
        return f"/benchmarks/{subject.benchmark_id}/runs/{subject.pk}/export"
    return f"/benchmarks/{subject.pk}/export"


def content(answer: Any) -> bytes:
    async def read() -> bytes:
        return b"".join([part async for part in answer.streaming_content])

    return async_to_sync(read)()


@pytest.mark.parametrize("name", sorted(set(EXPORTERS) - {"html", "strategy"}))  # large; a zip with the hour in it
def test_it_answers_what_the_format_is(callers: Callers, exported: Benchmark, name: str) -> None:
    exporter = EXPORTERS[name]
    subject = exported if exporter.exports == "benchmark" else exported.runs.get(run_order=2)
    answer = callers.reader.get(path(subject), format=name)
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"] == f"{exporter.content_type}; charset=utf-8"
    assert file_name(subject, exporter).partition(".")[2] in answer["Content-Disposition"]
    if name != "spec-002":  # says when it was made
        whole = "".join(piece if isinstance(piece, str) else piece.decode() for piece in export(subject, name))
        assert content(answer).decode() == whole
    lost = json.loads(answer["Export-Warnings"])
    assert [one.partition(" and ")[0] for one in lost] == (
        [] if exporter.marks_failures else ["1 query of the run failed"]
    )


def test_a_directory_is_a_zip(callers: Callers, exported: Benchmark) -> None:
    answer = callers.owner.get(path(exported), format="strategy")
    assert answer["Content-Type"].startswith("application/zip")
    assert content(answer)[:2] == b"PK"


def test_it_lists_the_formats(callers: Callers) -> None:
    formats = callers.reader.get("/export-formats").json()["formats"]
    assert [one["name"] for one in formats] == list(EXPORTERS)
    assert formats[0] == {
        "name": "json",
        "label": "JSON, as the API has it",
        "exports": "benchmark",
        "content_type": "application/json",
        "extension": "json",
        "marks_failures": True,
    }


@pytest.mark.parametrize(
    ("query", "field", "told"),
    [
        ({}, "format", "This field is required."),
        ({"format": "xml"}, "format", '"xml" is not a valid choice.'),
        ({"format": "csv-run"}, "format", '"csv-run" is not a valid choice.'),
        ({"format": "csv", "version": "7"}, "version", "has no values on version 7 of its dataset"),
        ({"format": "csv", "version": "9" * 15}, "version", "less than or equal to"),
        ({"format": "csv", "version": "x"}, "version", "A valid integer is required."),
        ({"format": ["csv", "json"]}, "format", "is given twice"),
    ],
)
def test_it_names_what_is_wrong(
    callers: Callers, exported: Benchmark, query: dict[str, Any], field: str, told: str
) -> None:
    answer = callers.owner.get(path(exported), **query)
    assert answer.status_code == 400, answer.content
    assert told in answer.json()["detail"]
    assert set(answer.json()["errors"]) == {field}


def test_what_has_no_results_is_a_conflict(callers: Callers, exported: Benchmark) -> None:
    failed = exported.runs.get(run_order=4)
    Benchmark.objects.update(status="running")
    for subject, name in ((failed, "csv-run"), (exported, "latex")):
        answer = callers.owner.get(path(subject), format=name)
        assert (answer.status_code, answer.json()["code"]) == (409, "export")


def test_results_that_do_not_fit_a_format_are_an_error_and_no_file(callers: Callers, exported: Benchmark) -> None:
    exported.mapping.collection.documents.filter(external_id="d1").update(external_id="my notes.md")
    answer = callers.owner.get(path(exported.runs.get(run_order=1)), format="trec-run")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/json")
    assert "has white space" in answer.json()["detail"]


def test_others_and_other_places_have_none(callers: Callers, exported: Benchmark) -> None:
    run = exported.runs.get(run_order=1)
    for subject, name in ((exported, "csv"), (run, "csv-run")):
        statuses = [getattr(callers, who).get(path(subject), format=name).status_code for who in callers.NAMES]
        assert statuses == [401, 403, 403, 403, 200, 200, 200]
    other = make_exported_elsewhere(exported)
    assert callers.owner.get(f"/benchmarks/{other.pk}/runs/{run.pk}/export", format="csv-run").status_code == 404


def make_exported_elsewhere(benchmark: Benchmark) -> Benchmark:
    return Benchmark.objects.create(
        name="other", mapping=benchmark.mapping, dataset_version=benchmark.dataset_version, matrix={}
    )
