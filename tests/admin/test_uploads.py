"""What a person uploads in the browser, and what the page says when it is not right."""

import gzip
import io
import json
import zipfile
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.collections.models import Collection
from apps.datasets.editing.drafts import discard_draft
from apps.datasets.models import Dataset, Judgment
from benchbench.site.panels import change_url
from tests.drafts import set_judgment
from tests.factories import make_collection
from tests.files.samples import write_dataset

DATASET = "admin:datasets_dataset_add"
COLLECTION = "admin:collections_collection_add"
CORPUS = "\n".join(
    json.dumps({"_id": f"d{number}", "title": f"Pear {number}", "text": "A pear is no apple."}) for number in range(3)
)


def dataset(**changes: Any) -> dict[str, Any]:
    query = {
        "query_key": "q1",
        "query_text": "What is a pear?",
        "relevant_docs": [{"doc_ref": {"document_id": "d1"}, "relevance_grade": 3}],
        **changes,
    }
    return {"schema_version": "1.0", "metadata": {"name": "Fruit"}, "queries": [query]}


def upload(client: Client, page: str, file_name: str, content: bytes, **fields: str) -> Any:
    return client.post(reverse(page), {"file": SimpleUploadedFile(file_name, content), **fields}, follow=True)


def error_at(response: Any, field: str) -> str:
    assert response.status_code == 200
    return " ".join(response.context["form"].errors[field])


def test_uploaded_dataset_belongs_to_user_and_page_counts_it(client_of_ada: Client, ada: User) -> None:
    response = upload(client_of_ada, DATASET, "fruit.json", json.dumps(dataset()).encode(), description="By hand.")
    created = Dataset.objects.get()
    assert (created.name, created.owner, created.description) == ("Fruit", ada, "By hand.")
    assert Judgment.objects.get().grade == 3
    assert "Imported 1 query with 1 judgment as Fruit v1" in response.content.decode()
    again = upload(client_of_ada, DATASET, "fruit.json", json.dumps(dataset()).encode()).content.decode()
    assert "Fruit v1 holds exactly this already: nothing was changed." in again
    assert "Imported" not in again


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "JSON"),
        (json.dumps(dataset(relevant_docs=[{"doc_ref": "d1", "relevance_grade": 2.9}])).encode(), "relevance_grade"),
        (json.dumps(dataset(query_text="")).encode(), "query_text"),
        (json.dumps({**dataset(), "schema_version": "9"}).encode(), "schema_version"),
    ],
)
def test_dataset_error_is_shown_at_the_file(client_of_ada: Client, content: bytes, message: str) -> None:
    response = upload(client_of_ada, DATASET, "fruit.json", content)
    assert message in error_at(response, "file")
    assert not Dataset.objects.exists()


def test_unknown_file_key_is_not_confused_with_form_fields(client_of_ada: Client) -> None:
    stray = json.dumps({**dataset(), "name": "Fruit"}).encode()
    assert "unknown key 'name'" in error_at(upload(client_of_ada, DATASET, "fruit.json", stray), "file")
    assert "column" in error_at(upload(client_of_ada, DATASET, "f.csv", b"query_key\n1", columns="grade=x"), "columns")


def test_collection_warns_of_empty_documents_and_rejects_query_files(client_of_ada: Client) -> None:
    content = CORPUS.encode() + b'\n{"_id": "d9", "title": "Pear 9", "text": " "}'
    refused = upload(client_of_ada, COLLECTION, "queries.jsonl", content, name="Fruit")
    assert "queries.jsonl holds queries, not documents" in error_at(refused, "file")
    page = upload(client_of_ada, COLLECTION, "corpus.jsonl", content, name="Fruit").content.decode()
    assert "Imported 4 documents." in page
    assert "1 document without a text: only a title is searched." in page


def test_a_file_that_is_too_large_is_not_read(client_of_ada: Client, settings: Any) -> None:
    settings.BENCHMARK_DATASET_MAX_UPLOAD_BYTES = settings.BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES = 100
    assert "the limit is 100\u00a0bytes" in error_at(upload(client_of_ada, DATASET, "fruit.json", b"x" * 101), "file")
    assert "the limit is 100\u00a0bytes" in error_at(
        upload(client_of_ada, COLLECTION, "c.jsonl", b"x" * 101, name="Fruit"), "file"
    )


def test_another_content_under_a_frozen_name_is_refused(client_of_ada: Client) -> None:
    upload(client_of_ada, DATASET, "fruit.json", json.dumps(dataset()).encode())
    response = upload(client_of_ada, DATASET, "fruit.json", json.dumps(dataset(query_text="Other?")).encode())
    assert "state a new version, such as 2, or choose another name." in error_at(response, "version")


def test_form_accepts_the_next_version_of_a_dataset(client_of_ada: Client, ada: User, make_staff: Any) -> None:

    def table(grade: int) -> bytes:
        return f"query_key,query_text,uri,grade\nq1,red,u,{grade}\n".encode()

    def report(grade: int, **fields: Any) -> str:
        file = SimpleUploadedFile("fruit.csv", table(grade))
        return client_of_ada.post(reverse("admin:dataset_preview"), {"file": file, **fields}).content.decode()

    upload(client_of_ada, DATASET, "fruit.csv", table(1))
    created = Dataset.objects.get()
    assert f"?dataset={created.pk}" in client_of_ada.get(change_url(created)).content.decode()
    assert "Next version of" in client_of_ada.get(reverse(DATASET), {"dataset": created.pk}).content.decode()
    taken = report(2)
    assert taken.count("state a new version, such as 2") == 1, "as it is refused when it is imported"
    assert all(words in taken for words in ("<strong>1 query</strong>", "Import as version 2", "#field_version"))
    assert ">Import</button>" not in taken
    bumped = report(2, version="2")
    assert "It becomes version 2 (2) of the dataset" in bumped
    assert ">Import</button>" in bumped
    assert "fruit v1 holds exactly this: importing it changes nothing." in report(1, dataset=created.pk)
    assert "It becomes version 2 of the dataset &quot;fruit&quot;." in report(2, dataset=created.pk)

    upload(client_of_ada, DATASET, "renamed.csv", table(2), dataset=created.pk)
    upload(client_of_ada, DATASET, "fruit.csv", table(3), version="2026-11")
    versions = created.versions.order_by("number").values_list("number", "label")
    assert list(versions) == [(1, ""), (2, ""), (3, "2026-11")]
    assert [row.grade for row in Judgment.objects.order_by("since")] == [1, 2, 3]
    refused = upload(client_of_ada, DATASET, "fruit.csv", table(0), dataset=created.pk, version="2026-11")
    assert 'states version "2026-11"' in error_at(refused, "version")
    labelled = upload(client_of_ada, DATASET, "fruit.csv", table(0), dataset=created.pk, name="Other")
    assert "leave out the other name" in error_at(labelled, "name")
    set_judgment(created, "q1", {"uri": "u"}, 5)
    drafted = upload(client_of_ada, DATASET, "fruit.csv", table(0), dataset=created.pk)
    assert "has a draft with edits" in error_at(drafted, "file")
    discard_draft(created)
    Dataset.objects.update(owner=make_staff("grace"))
    hidden = upload(client_of_ada, DATASET, "fruit.csv", table(0), dataset=created.pk)
    assert "Select a valid choice" in error_at(hidden, "dataset")
    Dataset.objects.update(owner=None)
    ada.user_permissions.remove(Permission.objects.get(codename="change_dataset"))
    theirs = upload(client_of_ada, DATASET, "fruit.csv", table(0), dataset=created.pk)
    assert "You may not change" in error_at(theirs, "dataset")
    assert created.versions.count() == 3


def test_the_next_version_may_be_a_beir_directory(client_of_ada: Client, tmp_path: Path) -> None:
    for grade in (1, 2):
        with zipfile.ZipFile(tmp_path / "fruit.zip", "w") as archive:
            archive.writestr("fruit/queries.jsonl", json.dumps({"_id": "q1", "text": "red"}))
            archive.writestr("fruit/qrels/test.tsv", f"query-id\tcorpus-id\tscore\nq1\td1\t{grade}\n")
        fields = {"dataset": Dataset.objects.get().pk} if grade == 2 else {"name": "Fruit"}
        upload(client_of_ada, DATASET, "fruit.zip", (tmp_path / "fruit.zip").read_bytes(), **fields)
    assert Dataset.objects.get().versions.count() == 2


def preview(client: Client, file_name: str, content: bytes, **fields: str) -> str:
    response = client.post(reverse("admin:dataset_preview"), {"file": SimpleUploadedFile(file_name, content), **fields})
    assert response.status_code == 200
    assert not Dataset.objects.exists()
    return response.content.decode()


def test_dataset_preview_shows_the_import_and_stores_nothing(client_of_ada: Client) -> None:
    page = preview(
        client_of_ada,
        "fruit.csv",
        b"query_key,query_text,uri,grade,mood\nq1,red <b>,u,2,x\nq1,,u,2,x\n",
        columns="=mood",
    )
    assert "1 query" in page
    assert "read as Table (CSV, workbook, JSON)" in page
    assert "Judgments by grade: 1 of grade 2." in page
    assert "Duplicates: 1." in page
    assert "red &lt;b&gt;" in page
    assert ">Import</button>" in page


def test_invalid_dataset_preview_shows_errors_and_no_import_button(client_of_ada: Client) -> None:
    page = preview(client_of_ada, "fruit.csv", b"query_key,query_text,uri,grade\nq1,red,u,high\n")
    assert "fruit.csv, line 2, has the grade" in page
    assert ">Import</button>" not in page
    table = b"query_key,query_text,uri,grade,mood\nq1,red,u,1,x\n"
    assert "Columns that are not read: mood." in preview(client_of_ada, "fruit.csv", table)
    assert "is not a field of a table" in preview(client_of_ada, "a.csv", b"query_key,uri\n1,u\n", columns="x=uri")
    assert "is not field=column" in preview(client_of_ada, "a.csv", b"query_key,uri\n1,u\n", columns="x")
    assert "Choose files" in client_of_ada.post(reverse("admin:dataset_preview")).content.decode()


def test_errors_of_a_table_use_words_of_the_selects(client_of_ada: Client) -> None:
    page = preview(client_of_ada, "a.csv", b"topic,document_id,rating,mood\nred,d1,2,x\n,d2,1,x\n", column="=topic")
    sentence = page.partition("a.csv")[2].partition("<")[0]
    assert "has no column “text of the query”: it has topic, document_id" in sentence, sentence
    assert "query_" not in sentence
    table = b"topic,query_text,document_id,rating\n,red,d1,2\n"
    assert "line 2, has no “id of the query”" in preview(client_of_ada, "a.csv", table, column="query_key=topic")
    written = preview(client_of_ada, "a.csv", table, columns="query_key=topic")
    assert "line 2, has no query_key" in written, "who writes the names of fields reads them"


def test_a_directory_is_uploaded_as_a_zip(client_of_ada: Client, tmp_path: Path) -> None:
    write_dataset(tmp_path / "golden")
    with zipfile.ZipFile(tmp_path / "golden.zip", "w") as archive:
        for file in (tmp_path / "golden").iterdir():
            archive.write(file, f"golden/{file.name}")
    content = (tmp_path / "golden.zip").read_bytes()
    assert "3 queries" in preview(client_of_ada, "golden.zip", content)
    assert "1 query" in preview(client_of_ada, "golden.zip", content, split="train")
    upload(client_of_ada, DATASET, "golden.zip", content)
    assert Dataset.objects.get().source_format == "flowbaby"


def test_an_import_shows_its_warnings(client_of_ada: Client) -> None:
    table = b"query_key,query_text,uri,grade\nq1,red,u,1\nq1,red,u,1\nq2,blue,,\n"
    page = upload(client_of_ada, DATASET, "fruit.csv", table, format="table").content.decode()
    assert "(1 duplicate)" in page
    assert "Queries without a judgment: q2." in page


@pytest.mark.parametrize("packed", [False, True])
def test_a_corpus_becomes_a_collection(client_of_ada: Client, ada: User, packed: bool) -> None:
    content = gzip.compress(CORPUS.encode()) if packed else CORPUS.encode()
    response = upload(client_of_ada, COLLECTION, "corpus.jsonl.gz" if packed else "corpus.jsonl", content, name="Fruit")
    collection = Collection.objects.get()
    assert (collection.name, collection.owner, collection.document_count) == ("Fruit", ada, 3)
    assert "Imported 3 documents" in response.content.decode()
    assert "Build an index" in response.content.decode()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.txt", CORPUS.encode(), ".jsonl"),
        ("corpus.jsonl", b'{"_id": "d1"}', "line 1"),
        ("corpus.jsonl", CORPUS.encode() + b'\n{"_id": "d9", "text": 7}', "line 4"),
    ],
)
def test_corpus_error_is_shown_at_the_file(client_of_ada: Client, name: str, content: bytes, message: str) -> None:
    assert message in error_at(upload(client_of_ada, COLLECTION, name, content, name="Fruit"), "file")
    assert not Collection.objects.exists()


def test_own_collection_name_cannot_be_reused(client_of_ada: Client, ada: User) -> None:
    Collection.objects.create(name="Fruit", owner=ada)
    make_collection("Vegetables")
    response = upload(client_of_ada, COLLECTION, "corpus.jsonl", CORPUS.encode(), name="Fruit")
    assert "choose another name" in error_at(response, "name")


def test_a_collection_without_a_name_gets_the_files(client_of_ada: Client, ada: User) -> None:
    file = {"file": SimpleUploadedFile("Fruit of May.jsonl", CORPUS.encode())}
    assert "the collection “Fruit of May”" in client_of_ada.post(reverse("admin:collection_preview"), file).text
    response = upload(client_of_ada, COLLECTION, "Fruit of May.jsonl.gz", gzip.compress(CORPUS.encode()), name="")
    assert Collection.objects.get(owner=ada).name == "Fruit of May", response
    again = upload(client_of_ada, COLLECTION, "Fruit of May.jsonl", CORPUS.encode(), name="")
    assert "choose another name" in error_at(again, "name")
    file = {"file": SimpleUploadedFile("Fruit of May.jsonl", CORPUS.encode())}
    assert "Name it Fruit of May (2)" in client_of_ada.post(reverse("admin:collection_preview"), file).text


def test_an_errors_text_is_escaped(client_of_ada: Client) -> None:
    content = json.dumps({**dataset(), "schema_version": "<script>alert(1)</script>"}).encode()
    page = upload(client_of_ada, DATASET, "fruit.json", content).content.decode()
    assert "<script>alert(1)" not in page


def zipped(files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"notes.bin": "\0"},
        {"a/topics.json": "{}"},
        {"ground_truth.json": "[]", "docs/a.md": "x"},
        {"queries.jsonl": "{", "corpus.jsonl": "{"},
        {"corpus.jsonl": '{"_id": "d"}', "queries.jsonl": '{"_id": "q", "text": "x"}', "qrels/none.csv": ""},
        {"qrels.txt": "1 0"},
    ],
    ids=lambda files: next(iter(files), "empty"),
)
@pytest.mark.parametrize("page", [DATASET, COLLECTION])
@pytest.mark.parametrize("format", ["", "beir", "trec", "flowbaby"])
def test_refusals_do_not_name_the_folders_of_the_server(
    client_of_ada: Client, files: dict[str, str], page: str, format: str
) -> None:
    response = upload(client_of_ada, page, "data.zip", zipped(files), name="n", format=format, split="dev")
    text = response.content.decode()
    assert "benchbench-scratch" not in text
    assert gettempdir() + "/" not in text


def test_options_are_folded_until_they_matter(client_of_ada: Client, ada: User) -> None:
    upload(client_of_ada, DATASET, "fruit.json", json.dumps(dataset()).encode())
    page, fold, is_open = reverse(DATASET), '<details class="bb-rest" >', '<details class="bb-rest" open>'
    assert fold in client_of_ada.get(page).text
    assert is_open in client_of_ada.get(page, {"dataset": str(Dataset.objects.get().pk)}).text
    assert is_open in upload(client_of_ada, DATASET, "fruit.csv", b"query\n1", columns="x").text
