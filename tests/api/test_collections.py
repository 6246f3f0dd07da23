"""Collections and their documents over HTTP: every field, every refusal."""

import gzip
import io
import json
import zipfile
from hashlib import sha256
from typing import Any

import pytest

from apps.collections.importing import create_collection
from apps.collections.models import Collection, Document
from tests.api.bodies import CORPUS, owned_collection, record
from tests.api.callers import Callers, assert_refused, checked_json
from tests.factories import make_dataset, make_mapping

PATH = "/collections"
FAQ = "Nr,Question,Answer,Kind,Mood\n7,When?,In May.,fruit,x\n"
DID: dict[str, Any] = {
    "created": 0,
    "updated": 0,
    "unchanged": 0,
    "removed": 0,
    "duplicates": 0,
    "empty": 0,
    "notes": [],
    "warnings": [],
}


def packed(**files: str) -> bytes:
    """A zip of files whose names are given with two underscores for a dot."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", ".").replace("_in_", "/"), text)
    return content.getvalue()


def test_post_creates_an_empty_collection_and_returns_its_fields(callers: Callers) -> None:
    facts = checked_json(callers.owner.post(PATH, {"name": "library", "description": "Of May."}), 201)
    collection = Collection.objects.get()
    assert facts == {
        "created_at": facts["created_at"],
        "updated_at": facts["updated_at"],
        "id": str(collection.pk),
        "name": "library",
        "description": "Of May.",
        "kind": "documents",
        "owner_id": callers.owner.user.pk,
        "document_count": 0,
        "fingerprint": "",
        "language": "",
        "language_agreeing": None,
        "language_sampled": None,
    }
    assert callers.owner.get(f"{PATH}/{collection.pk}").json() == facts
    assert callers.owner.get(PATH).json() == {"collections": [facts], "total": 1, "page": 1, "per_page": 50}
    assert_refused(callers.owner.post(PATH, {"name": "library"}), 409, field="name")


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz", "corpus.zip", "é" * 250 + ".jsonl"])
def test_it_makes_a_collection_of_a_corpus(callers: Callers, name: str) -> None:
    content = {"z": gzip.compress(CORPUS.encode()), "p": packed(a_in_corpus__jsonl=CORPUS)}.get(name[-1], CORPUS)
    facts = checked_json(callers.owner.upload(PATH, content, file_name=name, name="fruit", description="Two."), 201)
    assert (facts["document_count"], facts["description"]) == (2, "Two.")
    assert list(Document.objects.values_list("external_id", "title", "text")) == [
        ("d1", "Red", "apple"),
        ("d2", "", "plum"),
    ]


@pytest.mark.parametrize("prefix", ["", "https://docs.example.org/"])
def test_zip_uris_reveal_nothing_of_the_server(callers: Callers, prefix: str) -> None:
    content = packed(a_in_one__md="# One\n1", a_in_b_in_two__html="<title>Two</title>2")
    checked_json(callers.owner.upload(PATH, content, file_name="docs.zip", name="docs", uri_prefix=prefix), 201)
    assert list(Document.objects.values_list("external_id", "uri", "title")) == [
        ("b/two.html", f"{prefix}b/two.html", "Two"),
        ("one.md", f"{prefix}one.md", "One"),
    ]


def test_sectioned_documents_of_a_zip_keep_their_sections(callers: Callers) -> None:
    sections = [{"id": "s1", "heading": "Why", "level": 1, "content": "Because.", "subsections": []}]
    content = packed(
        documents_in_a__json=json.dumps({"id": "a", "title": "A", "sections": sections}),
        documents_in_a__md="# Why\n\nBecause.",
    )
    checked_json(callers.owner.upload(PATH, content, file_name="documents.zip", name="manual"), 201)
    assert Document.objects.get().sections.get().section_id == "s1"


@pytest.mark.parametrize(
    ("file_name", "content", "status", "message"),
    [
        (
            "corpus.txt",
            CORPUS,
            400,
            "its name must end in .jsonl, .ndjson, .json, .csv, .tsv, .xlsx, .xlsm, .zip, or .gz.",
        ),
        ("corpus.jsonl", "\n", 400, "The source has no documents to import."),
        ("corpus.jsonl.gz", CORPUS, 400, "corpus.jsonl.gz"),
        ("docs.zip", CORPUS, 400, "docs.zip cannot be unpacked"),
        ("docs.zip", packed(a__pdf="x"), 400, "docs holds no document: looked for files that end in"),
        ("docs.zip", packed(a__md="x" * 3000), 400, "unpacks to more bytes than are allowed"),
        ("corpus.jsonl.gz", gzip.compress(b" " * 3000, mtime=0), 400, "unpacks to more than the allowed 2,000 bytes"),
        ("corpus.jsonl", " " * 2001, 413, "2,000 bytes (BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES)"),
    ],
)
def test_invalid_file_is_rejected_with_a_reason(
    callers: Callers, settings: Any, file_name: str, content: Any, status: int, message: str
) -> None:
    settings.BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES = 2000
    answer = callers.owner.upload(PATH, content, file_name=file_name, name="fruit")
    assert_refused(answer, status, message=message)
    assert "/tmp" not in answer.json()["detail"]
    assert not Collection.objects.exists()


def test_columns_of_a_table_are_chosen(callers: Callers) -> None:
    fields = {"file_name": "faq.csv", "name": "faq", "columns": ["id=Nr", "text=Answer", "=Mood"]}
    created = checked_json(callers.owner.upload(PATH, FAQ, **fields), 201)
    [document] = Document.objects.all()
    assert (document.external_id, document.text, document.metadata) == ("7", "In May.", {"Kind": "fruit"})
    answer = callers.owner.upload(f"{PATH}/{created['id']}/documents", FAQ, file_name="faq.csv", columns=["id=Nr"])
    assert checked_json(answer, 200)["updated"] == 1
    assert Document.objects.get().metadata == {"Kind": "fruit", "Mood": "x"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["id=Nr", "text=None"], "faq.csv has no column 'None': it has Nr, Question, Answer, Kind, Mood."),
        (["id=Nr", "id=Mood"], "The id is chosen for two columns, 'Nr' and 'Mood': choose one."),
        (["id=Nr", "text=Nr"], "The column 'Nr' is chosen for 'id' and 'text': choose one."),
        (["grade=Nr"], "'grade' is not a field of documents: choose one of id, text, title, uri, metadata."),
        (["Nr"], '"Nr" is not field=column'),
        (["=Nr"], "faq.csv, line 2 has no column of the documents' ids: it has Nr, Question, Answer, Kind, Mood."),
    ],
)
def test_bad_choice_of_columns_is_refused(callers: Callers, columns: list[str], message: str) -> None:
    answer = callers.owner.upload(PATH, FAQ, file_name="faq.csv", name="faq", columns=columns)
    assert_refused(answer, 400, message=message, field="columns")
    texts = callers.owner.upload(PATH, packed(a__md="x"), file_name="a.zip", name="faq", columns=["id=a"])
    assert_refused(texts, 400, message="a is not a table: leave the columns out.", field="columns")
    assert not Collection.objects.exists()


def test_invalid_name_is_rejected_with_a_reason(callers: Callers) -> None:
    assert_refused(callers.owner.post(PATH, {"name": "a\nb"}), 400, message="printable", field="name")
    assert_refused(callers.owner.post(PATH, {"name": "a\0"}), 400, message="holds a character that cannot be stored")
    assert not Collection.objects.exists()


def test_collection_can_be_renamed_except_to_a_taken_name(callers: Callers) -> None:
    created = owned_collection(callers.owner)
    owned_collection(callers.owner, "taken")
    path = f"{PATH}/{created.pk}"
    changed = callers.owner.patch(path, {"name": "new", "description": "Better."})
    assert (changed.status_code, changed.json()["name"], changed.json()["description"]) == (200, "new", "Better.")
    assert callers.owner.patch(path, {"description": ""}).json()["name"] == "new"
    assert_refused(callers.owner.patch(path, {"name": "taken"}), 409, "conflict")
    for body in ({"name": " "}, {"name": None}, {"owner_id": 1}, []):
        assert callers.owner.patch(path, body).status_code == 400


def test_only_unused_collections_can_be_deleted(callers: Callers) -> None:
    used, unused = owned_collection(callers.owner, "used"), owned_collection(callers.owner, "unused", [{}])
    make_mapping(make_dataset(), used)
    assert_refused(callers.owner.delete(f"{PATH}/{used.pk}"), 409, "conflict", "is used by the mapping")
    assert callers.owner.delete(f"{PATH}/{unused.pk}").status_code == 204
    assert callers.owner.get(f"{PATH}/{unused.pk}").status_code == 404


def test_documents_are_added_and_brought_up_to_date(callers: Callers) -> None:
    path = f"{PATH}/{owned_collection(callers.owner).pk}/documents"

    def post(*documents: Any, **more: Any) -> dict[str, Any]:
        report: dict[str, Any] = checked_json(callers.owner.post(path, {"documents": documents, **more}), 200)
        return report

    assert post(record("a"), record("b"), record("b")) == DID | {"created": 2, "duplicates": 1, "document_count": 2}
    assert post(record("a"), record("b", "pear")) == DID | {"unchanged": 1, "updated": 1, "document_count": 2}
    assert post(record("c"), remove_missing=True) == DID | {"created": 1, "removed": 2, "document_count": 1}
    assert post(record("c", " ")) == DID | {"updated": 1, "empty": 1, "document_count": 1}
    answer = callers.owner.upload(path, CORPUS, file_name="corpus.jsonl", remove_missing="true")
    assert answer.json() == DID | {"created": 2, "removed": 1, "document_count": 2}
    answer = callers.owner.upload(path, CORPUS, file_name="corpus.jsonl")
    assert answer.json() == DID | {"unchanged": 2, "document_count": 2}


def test_document_detail_is_full_and_list_is_short(callers: Callers) -> None:
    created = owned_collection(callers.owner)
    path = f"{PATH}/{created.pk}/documents"
    section = {"section_id": "s", "heading": "", "level": 2, "start": 0, "end": 5}
    declared = record(" a ", " apple", title="A", uri="u", file_name="a.md", metadata={"n": [1]}, sections=[section])
    assert callers.owner.post(path, {"documents": [declared, record("b")]}).status_code == 200
    listed = callers.owner.get(path, external_id=" a ").json()
    assert listed["total"] == 1
    assert [row["external_id"] for row in callers.owner.get(path).json()["documents"]] == [" a ", "b"]
    answer = callers.owner.get(f"{path}/{listed['documents'][0]['id']}").json()
    assert {key: answer[key] for key in declared} == declared
    assert answer["content_hash"] == sha256(b"A\n apple").hexdigest()
    assert set(answer) == set(listed["documents"][0]) | {"text", "metadata", "removed_at", "sections"}


def test_removed_document_is_unlisted_but_still_readable(callers: Callers) -> None:
    path = f"{PATH}/{owned_collection(callers.owner).pk}/documents"
    callers.owner.post(path, {"documents": [record("a")]})
    callers.owner.post(path, {"documents": [record("b")], "remove_missing": True})
    assert callers.owner.get(path, external_id="a").json()["total"] == 0
    answer = callers.owner.get(f"{path}/{Document.objects.get(external_id='a').uuid}").json()
    assert answer["removed_at"].endswith("Z")


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([record("a"), record("a", "pear")], "documents[1]) occurs before with other content"),
        ([record(" ")], "documents[0]"),
        ([record("a", sections=[{"section_id": "s", "start": 0, "end": 2**40}])], "documents[0].sections[0].end"),
        ([record("a", "\ud800")], ""),
        ([record("a", metadata={"\0": 1})], ""),
        ([record("a", metadata={"a": "\udfff"})], ""),
        ([record("a", content_hash="é" * 65)], ""),
        ([record("a", sections=[{"section_id": "s", "start": -1, "end": 10**299}])], ""),
    ],
)
def test_it_names_the_document_that_is_wrong(callers: Callers, documents: Any, message: str) -> None:
    path = f"{PATH}/{owned_collection(callers.owner).pk}/documents"
    assert_refused(callers.owner.post(path, {"documents": documents}), 400, message=message)
    assert not Document.objects.exists()


def test_the_ids_of_external_runs_take_no_documents(callers: Callers) -> None:
    collection = create_collection("stub", owner=callers.owner.user, kind=Collection.Kind.EXTERNAL)
    assert_refused(
        callers.owner.post(f"{PATH}/{collection.pk}/documents", {"documents": [record("a")]}), 409, "conflict"
    )
