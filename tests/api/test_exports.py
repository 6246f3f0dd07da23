"""Results and datasets as files over HTTP: every format, and no file where there is an error."""

import io
import json
import zipfile
from typing import Any

import pytest

from apps.collections.models import Collection
from apps.datasets.formats.registry import FORMATS, WRITERS
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve_now
from apps.records.models import Benchmark, Run
from apps.results.exporting import EXPORTERS, export, name_file
from tests.api.addresses import UNKNOWN
from tests.api.bodies import JUDGED, mapped
from tests.api.callers import Callers, assert_refused, content
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


@pytest.mark.parametrize("name", sorted(set(EXPORTERS) - {"html", "strategy"}))  # large; a zip with the hour in it
def test_response_has_the_content_of_the_format(callers: Callers, exported: Benchmark, name: str) -> None:
    exporter = EXPORTERS[name]
    subject = exported if exporter.exports == "benchmark" else exported.runs.get(run_order=2)
    answer = callers.reader.get(path(subject), format=name)
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"] == f"{exporter.content_type}; charset=utf-8"
    assert name_file(subject, exporter).partition(".")[2] in answer["Content-Disposition"]
    if name != "spec-002":  # says when it was made
        text = b"".join(piece.encode() if isinstance(piece, str) else piece for piece in export(subject, name))
        assert content(answer) == text
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
        "label": "JSON, as in the API",
        "exports": "benchmark",
        "content_type": "application/json",
        "extension": "json",
        "marks_failures": True,
    }


@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        ({"format": "xml"}, "format", '"xml" is not a valid choice.'),
        ({"format": "csv-run"}, "format", '"csv-run" is not a valid choice.'),
        ({"format": "csv", "version": "7"}, "version", "has no values on version 7 of its dataset"),
        ({"format": ["csv", "json"]}, "format", "is given twice"),
    ],
)
def test_invalid_query_is_rejected_at_its_field(
    callers: Callers, exported: Benchmark, query: dict[str, Any], field: str, message: str
) -> None:
    assert_refused(callers.owner.get(path(exported), **query), 400, message=message, field=field)


def test_subject_without_results_returns_a_conflict(callers: Callers, exported: Benchmark) -> None:
    failed = exported.runs.get(run_order=4)
    Benchmark.objects.update(status="running")
    for subject, name in ((failed, "csv-run"), (exported, "latex")):
        assert_refused(callers.owner.get(path(subject), format=name), 409, "export")


def test_results_unsuitable_for_a_format_return_an_error(callers: Callers, exported: Benchmark) -> None:
    exported.mapping.collection.documents.filter(external_id="d1").update(external_id="my notes.md")
    answer = callers.owner.get(path(exported.runs.get(run_order=1)), format="trec-run")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/json")
    assert "has white space" in answer.json()["detail"]


def body_of(answer: Any) -> bytes:
    return b"".join(answer)


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators")
def test_it_downloads_a_version_in_a_format(callers: Callers) -> None:
    mapping, _ = mapped(callers.owner)
    path = f"/benchmark-datasets/{mapping.dataset_id}/export"
    answer = callers.owner.get(path, format="benchbench-json")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json; charset=utf-8")
    assert answer["Content-Disposition"] == 'attachment; filename="mine-v1.json"'
    assert [query["query_key"] for query in json.loads(body_of(answer))["queries"]] == list(JUDGED)
    assert json.loads(answer["Export-Warnings"]) == []
    resolve_now(mapping)
    packed = callers.owner.get(path, format="beir", version="1", mapping_id=str(mapping.pk))
    with zipfile.ZipFile(io.BytesIO(body_of(packed))) as archive:
        assert "corpus.jsonl" in archive.namelist()
    assert any("without a document in the collection" in message for message in json.loads(packed["Export-Warnings"]))


@pytest.mark.parametrize(
    ("query", "status", "field", "message"),
    [
        ({"format": "beir"}, 400, "format", "has no document_id"),
        ({"format": "benchbench-json", "version": "7"}, 400, "version", "has no version 7; its versions: 1"),
        ({"format": "benchbench-json", "mapping_id": str(UNKNOWN)}, 404, "", f"The mapping {UNKNOWN} does not exist."),
    ],
)
def test_invalid_dataset_export_is_rejected_at_its_field(
    callers: Callers, query: dict[str, str], status: int, field: str, message: str
) -> None:
    mapping, _ = mapped(callers.owner)
    answer = callers.owner.get(f"/benchmark-datasets/{mapping.dataset_id}/export", **query)
    assert_refused(answer, status, message=message, field=field)


def test_a_mapping_that_is_not_resolved_names_no_documents(callers: Callers) -> None:
    mapping, _ = mapped(callers.owner)
    path = f"/benchmark-datasets/{mapping.dataset_id}/export"
    answer = callers.owner.get(path, format="benchbench-json", mapping_id=str(mapping.pk))
    assert_refused(answer, 409, "mapping_not_resolved")


@pytest.mark.parametrize("format", ["beir", "trec"])
def test_mapping_documents_require_permission_to_view_them(callers: Callers, format: str) -> None:
    mapping, _ = mapped(callers.owner)
    resolve_now(mapping)
    path = f"/benchmark-datasets/{mapping.dataset_id}/export"
    Dataset.objects.update(owner=None)
    Mapping.objects.update(owner=None)
    query = {"format": format, "mapping_id": str(mapping.pk)}
    assert callers.other.get(path, **query).status_code == 403  # the collection is the owner's
    assert callers.other.get(path, format="benchbench-json").status_code == 200
    Collection.objects.update(owner=None)
    assert callers.other.get(path, **query).status_code == 200
    for codename in ("collection", "mapping"):
        permissions = callers.owner.user.user_permissions
        taken = permissions.filter(codename__in=[f"view_{codename}", f"change_{codename}"])
        before = list(taken)
        permissions.remove(*before)
        assert callers.owner.get(path, **query).status_code == 403
        permissions.add(*before)
    assert callers.owner.get(path, **query).status_code == 200


def test_it_lists_the_formats_of_datasets(callers: Callers) -> None:
    formats = callers.reader.get("/benchmark-datasets/formats").json()
    assert [one["name"] for one in formats["uploads"]] == list(FORMATS)
    assert [one["name"] for one in formats["exports"]] == list(WRITERS)
    assert formats["exports"][1] == {
        "name": "beir",
        "label": "BEIR directory",
        "content_type": "application/zip",
        "extension": "zip",
    }
