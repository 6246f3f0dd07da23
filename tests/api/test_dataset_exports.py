"""Datasets as files over HTTP."""

import io
import json
import zipfile
from typing import Any

import pytest

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.datasets.readers.formats import FORMATS
from apps.datasets.writers import WRITERS
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve_now
from tests.api.callers import Callers
from tests.api.test_isolation import UNKNOWN
from tests.api.test_mappings import JUDGED, mapped


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
    assert any("without a document in the collection" in told for told in json.loads(packed["Export-Warnings"]))


@pytest.mark.parametrize(
    ("query", "status", "field", "told"),
    [
        ({}, 400, "format", "This field is required."),
        ({"format": "xls"}, 400, "format", "is not a valid choice."),
        ({"format": "beir"}, 400, "format", "has no document_id"),
        ({"format": "csv", "version": "7"}, 400, "version", "has no version 7; there is 1"),
        ({"format": "csv", "version": "0"}, 400, "version", "greater than or equal to 1."),
        ({"format": "csv", "mapping_id": "x"}, 400, "mapping_id", "Must be a valid UUID."),
        ({"format": "csv", "mapping_id": str(UNKNOWN)}, 404, "", "There is no mapping"),
    ],
)
def test_it_names_what_is_wrong_with_an_export(
    callers: Callers, query: dict[str, str], status: int, field: str, told: str
) -> None:
    mapping, _ = mapped(callers.owner)
    answer = callers.owner.get(f"/benchmark-datasets/{mapping.dataset_id}/export", **query)
    assert answer.status_code == status, answer.content
    assert told in answer.json()["detail"]
    assert set(answer.json().get("errors", {})) == ({field} if field else set())


def test_a_mapping_that_is_not_resolved_names_no_documents(callers: Callers) -> None:
    mapping, _ = mapped(callers.owner)
    path = f"/benchmark-datasets/{mapping.dataset_id}/export"
    answer = callers.owner.get(path, format="csv", mapping_id=str(mapping.pk))
    assert (answer.status_code, answer.json()["code"]) == (409, "mapping_not_resolved")


@pytest.mark.parametrize("format", ["beir", "csv"])
def test_the_documents_of_a_mapping_are_for_whoever_may_view_them(callers: Callers, format: str) -> None:
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


def test_it_lists_the_formats(callers: Callers) -> None:
    formats = callers.reader.get("/benchmark-datasets/formats").json()
    assert [one["name"] for one in formats["uploads"]] == list(FORMATS)
    assert [one["name"] for one in formats["exports"]] == list(WRITERS)
    assert formats["exports"][1] == {
        "name": "beir",
        "label": "BEIR directory",
        "content_type": "application/zip",
        "extension": "zip",
    }
