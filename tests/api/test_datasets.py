"""Datasets over HTTP: every field, every refusal."""

import io
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.datasets import uploading
from apps.datasets.models import Dataset
from tests.api.callers import Caller, Callers, assert_refused, done
from tests.api.test_isolation import UNKNOWN
from tests.factories import add_version, make_benchmark, make_collection, make_dataset, make_mapping

PATH = "/benchmark-datasets"


def questions(*keys: str, version: str = "") -> dict[str, Any]:
    """A file of schema 1.0 with a query for each key."""
    judged = [{"doc_ref": {"uri": "file:///a"}, "relevance_grade": 3}]
    return {
        "schema_version": "1.0",
        "metadata": {"version": version} if version else {},
        "queries": [{"query_key": key, "query_text": f"What is {key}?", "relevant_docs": judged} for key in keys],
    }


def owned(caller: Caller, name: str) -> Dataset:
    return make_dataset({"q": []}, name=name, owner=caller.user)


def test_upload_creates_a_dataset_and_returns_its_fields(callers: Callers) -> None:
    facts = done(callers.owner.upload(PATH, questions("a", "b"), name="support", description="Two."), 201)
    made = Dataset.objects.get()
    assert facts.pop("warnings") == []
    assert facts == {
        "created_at": facts["created_at"],
        "updated_at": facts["updated_at"],
        "id": str(made.pk),
        "name": "support",
        "description": "Two.",
        "owner_id": callers.owner.user.pk,
        "query_count": 2,
        "schema_version": "1.0",
    }
    assert facts["created_at"].endswith("Z")
    assert callers.owner.get(f"{PATH}/{made.pk}").json() == facts
    assert callers.owner.get(PATH).json() == {"datasets": [facts], "total": 1, "page": 1, "per_page": 50}


def test_a_log_of_queries_becomes_a_weighted_dataset(callers: Callers) -> None:
    options = {"name": "shop", "file_name": "log.csv", "sample": "1", "seed": 3}
    facts = done(callers.owner.upload(PATH, "query,count\nred,6\nblue,2\n,1\n", **options), 201)
    assert facts["query_count"] == 2
    assert "Left out: 1 query empty (1 search, 11.1 % of the demand)." in facts["warnings"]
    version = Dataset.objects.get().versions.get()
    assert sorted(version.queries.values_list("key", "weight")) == [("blue", 2.0), ("red", 6.0)]
    refused = callers.owner.upload(PATH, "query,docid,rating\na,1,0.5\n", name="q", file_name="q.csv")
    assert_refused(refused, 400, "invalid_dataset")


def test_one_dataset_is_in_memory_at_a_time(
    callers: Callers, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploading, "TURN_SECONDS", 0.05)
    with uploading.upload_turn():
        refused = callers.owner.upload(PATH, questions("a"), name="new")
        assert (refused.status_code, refused.json()["code"], refused["Retry-After"]) == (503, "busy", "5")
        upload = SimpleUploadedFile("a.csv", b"query_key,query_text,document_id,grade\nq,x,d,1\n")
        answer = admin_client.post("/admin/datasets/dataset/add/", {"file": upload})
        assert "upload yours again in a minute" in answer.content.decode()
    assert not Dataset.objects.exists()
    assert callers.owner.upload(PATH, questions("a"), name="new").status_code == 201


def test_upload_warns_of_suspicious_content(callers: Callers) -> None:
    content = questions("a", "b")
    content["queries"][1]["relevant_docs"] = []
    for status in (201, 200):
        answer = callers.owner.upload(PATH, content, name="support")
        assert answer.status_code == status
        assert answer.json()["warnings"] == ["Queries without a judgment: b."]


def test_it_says_how_much_a_file_states_twice(callers: Callers) -> None:
    content = questions("a")
    content["queries"][0]["relevant_docs"] = ["x", "x", {"doc_ref": {"uri": "x"}}]
    answer = callers.owner.upload(PATH, content, name="support")
    assert answer.json()["warnings"] == ["Also found: 2 duplicates."]


def test_upload_under_a_known_name_reports_its_effect(callers: Callers) -> None:
    def upload(*keys: str, version: str = "") -> Any:
        return callers.owner.upload(PATH, questions(*keys, version=version), name="support")

    first = upload("a", version="1")
    assert first.status_code == 201
    same = upload("a", version="1")
    assert (same.status_code, same.json()["id"]) == (200, first.json()["id"])
    assert_refused(upload("a", "b", version="1"), 409, "conflict", "bump the version")
    bumped = upload("a", "b", version="2")
    assert (bumped.status_code, bumped.json()["id"], bumped.json()["query_count"]) == (201, first.json()["id"], 2)


def test_format_is_detected_by_content_or_file_name(callers: Callers) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("queries.jsonl", '{"_id": "1", "text": "one?"}\n')
        archive.writestr("qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\td1\t1\n")
    beir = callers.owner.upload(PATH, packed.getvalue(), file_name="beir.zip", name="beir", split="test")
    assert (beir.status_code, beir.json()["query_count"]) == (201, 1)
    table = "query_key,query_text,doc_ref,grade\nq1,one?,file:///a,2\n"
    made = callers.owner.upload(PATH, table, file_name="table.csv", name="table", format="table")
    assert made.status_code == 201
    assert Dataset.objects.get(name="table").source_format == "table"


@pytest.mark.parametrize(
    ("fields", "content", "field", "told"),
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
    callers: Callers, fields: dict[str, Any], content: Any, field: str, told: str
) -> None:
    assert_refused(callers.owner.upload(PATH, content, **fields), 400, told=told, field=field)
    assert not Dataset.objects.exists()


def test_file_in_any_format_becomes_the_requested_version(callers: Callers) -> None:
    """CSV has no place for a version."""
    rows = "query_key,query_text,doc_ref,grade\nq1,What is red?,apple,{}\n"
    made = callers.owner.upload(PATH, rows.format(1), file_name="q.csv", name="fruit").json()
    assert callers.owner.upload(PATH, rows.format(2), file_name="q.csv", name="fruit").status_code == 409
    stated = {"dataset_id": made["id"], "version": "2026-11"}
    answer = callers.owner.upload(PATH, rows.format(2), file_name="q.csv", **stated)
    assert (answer.status_code, answer.json()["id"]) == (201, made["id"]), answer.content
    versions = Dataset.objects.get().versions.order_by("number")
    assert [(version.number, version.label) for version in versions] == [(1, ""), (2, "2026-11")]
    assert callers.owner.upload(PATH, rows.format(2), file_name="q.csv", **stated).status_code == 200
    assert callers.owner.upload(PATH, rows.format(3), file_name="q.csv", **stated).status_code == 409
    assert callers.owner.upload(PATH, rows.format(3), file_name="q.csv", name="other", **stated).status_code == 400
    assert callers.other.upload(PATH, rows.format(3), file_name="q.csv", dataset_id=made["id"]).status_code == 403
    assert Dataset.objects.get().versions.count() == 2


def test_it_refuses_a_file_that_is_too_large(callers: Callers, settings: Any) -> None:
    settings.BENCHMARK_DATASET_MAX_UPLOAD_BYTES = 1000
    for size in (1001, 3_000_000):  # found when it is read, and from Content-Length before
        answer = callers.owner.upload(PATH, b" " * size, name="n")
        assert_refused(answer, 413, "too_large", "1,000 bytes (BENCHMARK_DATASET_MAX_UPLOAD_BYTES)")


def test_refusals_have_the_error_shape(callers: Callers) -> None:
    dataset, owner = owned(callers.owner, "mine"), callers.owner
    assert_refused(owner.post(PATH, questions("a")), 415, "unsupported_media_type")
    assert_refused(callers.anonymous.get(PATH), 401, "not_authenticated")
    assert_refused(callers.other.get(f"{PATH}/{dataset.pk}"), 403, "permission_denied")
    assert_refused(callers.reader.delete(f"{PATH}/{dataset.pk}"), 403, "insufficient_scope")
    assert_refused(owner.get(f"{PATH}/{UNKNOWN}"), 404, "not_found")
    assert_refused(owner.delete(PATH), 405, "method_not_allowed")
    deleted = owner.delete(f"{PATH}/{dataset.pk}")
    assert (deleted.status_code, deleted.content) == (204, b"")


def test_list_pages_contain_only_visible_datasets(callers: Callers) -> None:
    for number in range(5):
        owned(callers.owner, f"mine {number}")
    owned(callers.other, "theirs")
    make_dataset(name="everybody's")

    def names(**query: Any) -> list[str]:
        return [row["name"] for row in callers.owner.get(PATH, **query).json()["datasets"]]

    assert names() == ["everybody's", "mine 4", "mine 3", "mine 2", "mine 1", "mine 0"]
    assert names(page=2, per_page=4) == ["mine 1", "mine 0"]
    past = callers.owner.get(PATH, page=3, per_page=4).json()
    assert past == {"datasets": [], "total": 6, "page": 3, "per_page": 4}
    assert callers.overseer.get(PATH).json()["total"] == 7


def test_the_count_is_that_of_the_newest_frozen_version(callers: Callers) -> None:
    made = owned(callers.owner, "mine")
    made.versions.update(query_count=3)
    add_version(made, frozen=False)
    assert callers.owner.get(f"{PATH}/{made.pk}").json()["query_count"] == 3


def test_deleting_a_dataset_deletes_mappings_but_never_results(callers: Callers) -> None:
    used, unused = owned(callers.owner, "used"), owned(callers.owner, "unused")
    make_benchmark(make_mapping(used, make_collection("shelf"), name="used"))
    make_mapping(unused, make_collection())
    assert_refused(callers.owner.delete(f"{PATH}/{used.pk}"), 409, "conflict", "is used by the benchmark")
    assert callers.owner.delete(f"{PATH}/{unused.pk}").status_code == 204
    assert callers.owner.get(f"{PATH}/{unused.pk}").status_code == 404
