"""Datasets over HTTP: every field, every refusal."""

import io
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.datasets import uploading
from apps.datasets.models import Dataset
from tests.api.addresses import UNKNOWN
from tests.api.bodies import DATASETS, questions
from tests.api.callers import ROOT, Caller, Callers, assert_refused, checked_json
from tests.factories import add_version, make_benchmark, make_collection, make_dataset, make_mapping


def owned(caller: Caller, name: str) -> Dataset:
    return make_dataset({"q": []}, name=name, owner=caller.user)


def test_upload_creates_a_dataset_and_returns_its_fields(callers: Callers) -> None:
    facts = checked_json(callers.owner.upload(DATASETS, questions("a", "b"), name="support", description="Two."), 201)
    dataset = Dataset.objects.get()
    assert facts.pop("warnings") == []
    assert facts == {
        "created_at": facts["created_at"],
        "updated_at": facts["updated_at"],
        "id": str(dataset.pk),
        "name": "support",
        "description": "Two.",
        "tags": [],
        "owner_id": callers.owner.user.pk,
        "query_count": 2,
        "schema_version": "1.0",
    }
    assert facts["created_at"].endswith("Z")
    assert callers.owner.get(f"{DATASETS}/{dataset.pk}").json() == facts
    assert callers.owner.get(DATASETS).json() == {"datasets": [facts], "total": 1, "page": 1, "per_page": 50}


def test_a_log_of_queries_becomes_a_weighted_dataset(callers: Callers) -> None:
    options = {"name": "shop", "file_name": "log.csv", "sample": "1", "seed": 3}
    facts = checked_json(callers.owner.upload(DATASETS, "query,count\nred,6\nblue,2\n,1\n", **options), 201)
    assert facts["query_count"] == 2
    assert "Left out: 1 query empty (1 search, 11.1 % of the demand)." in facts["warnings"]
    version = Dataset.objects.get().versions.get()
    assert sorted(version.queries.values_list("key", "weight")) == [("blue", 2.0), ("red", 6.0)]
    refused = callers.owner.upload(DATASETS, "query,docid,rating\na,1,0.5\n", name="q", file_name="q.csv")
    assert_refused(refused, 400, "invalid_dataset")


def test_several_files_and_columns_are_read(callers: Callers) -> None:
    halves = {"topics.txt": b"q1\tred\n", "grades.csv": b"query_id;was;Rating;x\nq1;d1;2;y\n"}
    files = [SimpleUploadedFile(name, content) for name, content in halves.items()]
    fields = {"name": "two", "columns": ["document_id=was", "=x"], "file": files}
    facts = checked_json(callers.owner.client.post(ROOT + DATASETS, fields), 201)
    assert (facts["query_count"], facts["warnings"]) == (1, [])
    refused = callers.owner.upload(DATASETS, "query,was,grade\nred,d1,1\n", name="q", file_name="q.csv")
    assert_refused(refused, 400, "invalid_dataset", field="columns")


def test_one_dataset_is_in_memory_at_a_time(
    callers: Callers, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploading, "TURN_SECONDS", 0.05)
    with uploading.upload_turn():
        refused = callers.owner.upload(DATASETS, questions("a"), name="new")
        assert (refused.status_code, refused.json()["code"], refused["Retry-After"]) == (503, "busy", "5")
        upload = SimpleUploadedFile("a.csv", b"query_key,query_text,document_id,grade\nq,x,d,1\n")
        answer = admin_client.post("/admin/datasets/dataset/add/", {"file": upload})
        assert "upload yours again in a minute" in answer.content.decode()
    assert not Dataset.objects.exists()
    assert callers.owner.upload(DATASETS, questions("a"), name="new").status_code == 201


def test_upload_warns_of_suspicious_content(callers: Callers) -> None:
    content = questions("a", "b")
    content["queries"][1]["relevant_docs"] = []
    for status in (201, 200):
        answer = callers.owner.upload(DATASETS, content, name="support")
        assert answer.status_code == status
        assert answer.json()["warnings"] == ["Queries without a judgment: b."]


def test_it_says_how_much_a_file_states_twice(callers: Callers) -> None:
    content = questions("a")
    content["queries"][0]["relevant_docs"] = ["x", "x", {"doc_ref": {"uri": "x"}}]
    answer = callers.owner.upload(DATASETS, content, name="support")
    assert answer.json()["warnings"] == ["Also found: 2 duplicates."]


def test_upload_under_a_known_name_reports_its_effect(callers: Callers) -> None:
    def upload(*keys: str, version: str = "") -> Any:
        return callers.owner.upload(DATASETS, questions(*keys, version=version), name="support")

    first = upload("a", version="1")
    assert first.status_code == 201
    same = upload("a", version="1")
    assert (same.status_code, same.json()["id"]) == (200, first.json()["id"])
    assert_refused(upload("a", "b", version="1"), 409, "conflict", "state a new version")
    bumped = upload("a", "b", version="2")
    assert (bumped.status_code, bumped.json()["id"], bumped.json()["query_count"]) == (201, first.json()["id"], 2)


def test_format_is_detected_by_content_or_file_name(callers: Callers) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("queries.jsonl", '{"_id": "1", "text": "one?"}\n')
        archive.writestr("qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\td1\t1\n")
    beir = callers.owner.upload(DATASETS, packed.getvalue(), file_name="beir.zip", name="beir", split="test")
    assert (beir.status_code, beir.json()["query_count"]) == (201, 1)
    table = "query_key,query_text,doc_ref,grade\nq1,one?,file:///a,2\n"
    created = callers.owner.upload(DATASETS, table, file_name="table.csv", name="table", format="table")
    assert created.status_code == 201
    assert Dataset.objects.get(name="table").source_format == "table"


@pytest.mark.parametrize(
    ("fields", "content", "field", "message"),
    [
        ({}, questions("a"), "name", "This field is required without dataset_id."),
        ({"name": "a\nb"}, questions("a"), "name", "needs a name of printable characters"),
        ({"name": ["a", "b"]}, questions("a"), "name", "name is given twice"),
        ({"name": "n"}, "{", "", "is not JSON"),
        ({"name": "n"}, questions("a", "a"), "queries[1].query_key", "as in queries[0]"),
        ({"name": "n"}, questions(*map(str, range(1001))), "queries", "1,000"),
    ],
)
def test_invalid_upload_is_rejected_with_a_reason(
    callers: Callers, fields: dict[str, Any], content: Any, field: str, message: str
) -> None:
    assert_refused(callers.owner.upload(DATASETS, content, **fields), 400, message=message, field=field)
    assert not Dataset.objects.exists()


def test_file_in_any_format_becomes_the_requested_version(callers: Callers) -> None:
    """CSV has no place for a version."""
    rows = "query_key,query_text,doc_ref,grade\nq1,What is red?,apple,{}\n"
    created = callers.owner.upload(DATASETS, rows.format(1), file_name="q.csv", name="fruit").json()
    assert callers.owner.upload(DATASETS, rows.format(2), file_name="q.csv", name="fruit").status_code == 409
    fields = {"dataset_id": created["id"], "version": "2026-11"}
    answer = callers.owner.upload(DATASETS, rows.format(2), file_name="q.csv", **fields)
    assert (answer.status_code, answer.json()["id"]) == (201, created["id"]), answer.content
    versions = Dataset.objects.get().versions.order_by("number")
    assert [(version.number, version.label) for version in versions] == [(1, ""), (2, "2026-11")]
    assert callers.owner.upload(DATASETS, rows.format(2), file_name="q.csv", **fields).status_code == 200
    assert callers.owner.upload(DATASETS, rows.format(3), file_name="q.csv", **fields).status_code == 409
    assert callers.owner.upload(DATASETS, rows.format(3), file_name="q.csv", name="other", **fields).status_code == 400
    assert (
        callers.other.upload(DATASETS, rows.format(3), file_name="q.csv", dataset_id=created["id"]).status_code == 403
    )
    assert Dataset.objects.get().versions.count() == 2


def test_it_refuses_a_file_that_is_too_large(callers: Callers, settings: Any) -> None:
    settings.BENCHMARK_DATASET_MAX_UPLOAD_BYTES = 1000
    for size in (1001, 3_000_000):  # found when it is read, and from Content-Length before
        answer = callers.owner.upload(DATASETS, b" " * size, name="n")
        assert_refused(answer, 413, "too_large", "1,000 bytes (BENCHMARK_DATASET_MAX_UPLOAD_BYTES)")


def test_refusals_have_the_error_shape(callers: Callers) -> None:
    dataset, owner = owned(callers.owner, "mine"), callers.owner
    assert_refused(owner.post(DATASETS, questions("a")), 415, "unsupported_media_type")
    assert_refused(callers.anonymous.get(DATASETS), 401, "not_authenticated")
    assert_refused(callers.other.get(f"{DATASETS}/{dataset.pk}"), 403, "permission_denied")
    assert_refused(callers.reader.delete(f"{DATASETS}/{dataset.pk}"), 403, "insufficient_scope")
    assert_refused(owner.get(f"{DATASETS}/{UNKNOWN}"), 404, "not_found")
    assert_refused(owner.delete(DATASETS), 405, "method_not_allowed")
    deleted = owner.delete(f"{DATASETS}/{dataset.pk}")
    assert (deleted.status_code, deleted.content) == (204, b"")


def test_list_pages_contain_only_visible_datasets(callers: Callers) -> None:
    for number in range(5):
        owned(callers.owner, f"mine {number}")
    owned(callers.other, "theirs")
    make_dataset(name="everybody's")

    def names(**query: Any) -> list[str]:
        return [row["name"] for row in callers.owner.get(DATASETS, **query).json()["datasets"]]

    assert names() == ["everybody's", "mine 4", "mine 3", "mine 2", "mine 1", "mine 0"]
    assert names(page=2, per_page=4) == ["mine 1", "mine 0"]
    past = callers.owner.get(DATASETS, page=3, per_page=4).json()
    assert past == {"datasets": [], "total": 6, "page": 3, "per_page": 4}
    assert callers.overseer.get(DATASETS).json()["total"] == 7


def test_the_count_is_that_of_the_newest_frozen_version(callers: Callers) -> None:
    created = owned(callers.owner, "mine")
    created.versions.update(query_count=3)
    add_version(created, frozen=False)
    assert callers.owner.get(f"{DATASETS}/{created.pk}").json()["query_count"] == 3


def test_deleting_a_dataset_deletes_mappings_but_never_results(callers: Callers) -> None:
    used, unused = owned(callers.owner, "used"), owned(callers.owner, "unused")
    make_benchmark(make_mapping(used, make_collection("shelf"), name="used"))
    make_mapping(unused, make_collection())
    assert_refused(callers.owner.delete(f"{DATASETS}/{used.pk}"), 409, "conflict", "is used by the benchmark")
    assert callers.owner.delete(f"{DATASETS}/{unused.pk}").status_code == 204
    assert callers.owner.get(f"{DATASETS}/{unused.pk}").status_code == 404
