"""Files as people have them on New evaluation and the pages of uploads: a dataset, or a remedy that the page has."""

import io
import re
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.collections.models import Collection
from apps.datasets.models import Dataset, Query
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from tests.library import ENCODER

FORM, PREVIEW = "admin:new_evaluation", "admin:evaluation_preview"
CORPUS = '{"_id": "d1", "title": "Pear", "text": "A pear."}\n{"_id": "d2", "title": "Plum", "text": "A plum."}\n'
QUERIES = '{"_id": "q1", "text": "pear"}\n{"_id": "q2", "text": "plum"}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t1\n"
TABLE = "Query;Document;Rating;Comment\npear;d1;2;good\nplum;d2;1;better\n"
Files = dict[str, str | bytes]


def pack(files: Files) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def send(client: Client, page: str, queries: Files, corpus: Files | None = None, **fields: Any) -> Any:
    def upload(files: Files) -> list[SimpleUploadedFile]:
        return [SimpleUploadedFile(n, t if isinstance(t, bytes) else t.encode()) for n, t in files.items()]

    sent = {"queries": upload(queries), "corpus": upload(corpus or {"fruit.jsonl": CORPUS}), "question": "modes"}
    return client.post(reverse(page), sent | {"encoder": ENCODER} | fields)


@pytest.fixture
def staff(transactional_db: None, admin_client: Client) -> Client:
    return admin_client


MEANT: dict[str, Files] = {
    "two files of BEIR": {"queries.jsonl": QUERIES, "qrels.tsv": QRELS},
    "TREC judgments with topics": {"topics.txt": "q1\tpear\nq2\tplum\n", "qrels.txt": "q1 0 d1 2\nq2 0 d2 1\n"},
    "a zip of TREC": {"trec.zip": pack({"t/topics.txt": "q1\tpear\nq2\tplum\n", "t/qrels": "q1 0 d1 2\nq2 0 d2 1\n"})},
    "columns of Excel": {"judged.csv": TABLE},
    "Quepid as Excel saves it": {"case.csv": "\ufeffquery;docid;rating\r\npear;d1;2\r\nplum;d2;1\r\n"},
    "Windows-1252": {"judged.csv": "Frage;Dok;Note;Bewertung\npear;d1;ü;2\nplum;d2;;1\n".encode("cp1252")},
}


@pytest.mark.parametrize("name", MEANT)
def test_messy_queries_lead_to_an_evaluation(staff: Client, name: str) -> None:
    displayed = send(staff, PREVIEW, MEANT[name]).content.decode()
    assert "2 queries" in displayed
    assert not Dataset.objects.exists()
    response = send(staff, FORM, MEANT[name])
    assert response.status_code == 302, response.context["form"].errors
    mapping = Mapping.objects.get()
    assert (mapping.mapped_count, mapping.total_count) == (2, 2)
    assert Operation.objects.exists()


def test_preview_lets_choose_the_columns(staff: Client) -> None:
    table = "Wonach;Wo;Wie;Was\npear;d1;2;x\n"
    displayed = send(staff, PREVIEW, {"judged.csv": table}).content.decode()
    assert "has no column query_text, no grade, no doc_ref" in displayed
    assert re.findall(r'<option value="=(\w+)">', displayed) == ["Wonach", "Wo", "Wie", "Was"]
    chosen = ["query_text=Wonach", "document_id=Wo", "grade=Wie", "=Was"]
    displayed = send(staff, PREVIEW, {"judged.csv": table}, column=chosen).content.decode()
    assert "1 query" in displayed
    assert '<option value="grade=Wie" selected>' in displayed
    twice = send(staff, PREVIEW, {"judged.csv": table}, column=[*chosen[:3], "grade=Was"]).content.decode()
    assert "grade is chosen for two columns, &#x27;Wie&#x27; and &#x27;Was&#x27;" in twice
    assert '<option value="query_text=Wonach" selected>' in twice
    assert send(staff, FORM, {"judged.csv": table}, column=chosen).status_code == 302
    assert Query.objects.get().key == "pear"


REFUSED: dict[str, tuple[Files, Files, str]] = {
    "both swapped": (
        {"corpus.jsonl": CORPUS},
        {"queries.jsonl": QUERIES},
        "corpus.jsonl holds documents, not judged queries",
    ),
    "a zip of pages": (
        {"pages.zip": pack({"a.md": "# A"})},
        {"judged.csv": TABLE},
        "pages holds documents, not judged queries",
    ),
    "documents among the queries": (
        {"corpus.jsonl": CORPUS.replace('"title": "Pear", ', "").replace('"title": "Plum", ', ""), "qrels.tsv": QRELS},
        {"queries.jsonl": QUERIES},
        "corpus.jsonl holds the documents that qrels.tsv, line 2 judges",
    ),
    "a table as documents": ({"judged.csv": TABLE}, {"judged.csv": TABLE}, "judged.csv holds judged queries, not doc"),
    "a dataset as documents": (
        {"judged.csv": TABLE},
        {"data.zip": pack({"d/topics.txt": "q1\tpear\n", "d/qrels.txt": "q1 0 d1 1\n"})},
        "qrels.txt holds judgments, not documents",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_swapped_files_are_named_with_their_fields(staff: Client, name: str) -> None:
    queries, corpus, sentence = REFUSED[name]
    page = send(staff, FORM, queries, corpus).content.decode()
    assert sentence in page
    assert "Choose documents under Upload documents, and judged queries under Upload judged queries." in page
    assert not Collection.objects.exists()


def test_errors_name_fields_of_the_page(staff: Client) -> None:
    alone = send(staff, FORM, {"qrels.txt": "q1 0 d1 1\n"}).context["form"]
    assert "choose both files at once on the page" in str(alone.errors["queries"])
    fraction = send(staff, FORM, {"case.csv": "query,docid,rating\npear,d1,0.7\n"}).context["form"]
    assert "Grade factor on the page" in str(fraction.errors["grade_factor"])
    assert fraction["grade_factor"].label == "Grade factor"
    assert not Dataset.objects.exists()


@pytest.mark.parametrize("path", ["docs/guide/a.md", "guide/a.md"])
def test_folder_of_a_zip_stays_where_needed(staff: Client, path: str) -> None:
    pages = {"handbook.zip": pack({"docs/guide/a.md": "# Pear\n\nA pear.", "docs/b.md": "# Plum"})}
    response = send(staff, FORM, {"paths.csv": f"query,path,grade\npear,{path},1\n"}, pages)
    assert response.status_code == 302
    assert Mapping.objects.get().mapped_count == 1
    assert Collection.objects.get().name == "handbook"


def test_file_names_are_named_and_read_as_such_next(staff: Client) -> None:
    pages = {"pages.zip": pack({"a/pear.txt": "A pear.", "b/plum.txt": "A plum."})}
    table = {"judged.csv": "Query;Document;Rating\nWas ist das?;pear.txt;2\n"}
    page = send(staff, FORM, table, pages)
    assert "A document has this file name: choose “file name of the document” (file_name)" in page.content.decode()
    assert not Dataset.objects.exists()
    assert not Mapping.objects.exists()
    form = page.context["form"]
    assert [form["collection"].value(), form["dataset"].value()] == [str(Collection.objects.get().pk), ""]
    columns = ["query_text=Query", "file_name=Document", "grade=Rating"]
    assert send(staff, FORM, table, pages, column=columns).status_code == 302
    assert Mapping.objects.get().mapped_count == 1
    assert Dataset.objects.get().name == "judged"


def test_unmatched_judgments_show_an_id_of_each_side(staff: Client) -> None:
    page = send(staff, FORM, {"judged.csv": TABLE.replace("d1", "x1").replace("d2", "x2")}).content.decode()
    assert "No document has the document_id &#x27;x1&#x27;." in page
    assert "The first document there has the document_id &#x27;d1&#x27;." in page
