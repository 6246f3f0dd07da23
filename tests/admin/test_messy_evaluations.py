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


CORPORA: dict[str, Files] = {
    "a catalogue": {"shop.csv": "sku,product_name,description\nd1,Pear,A pear.\nd2,Plum,A plum.\n"},
    "Windows-1252": {"obst.csv": "id;Titel;Inhalt\nd1;Pear;A pear.\nd2;Plum;Für dich.\n".encode("cp1252")},
    "a list in JSON": {"docs.json": '[{"id": "d1", "body": "A pear."}, {"id": "d2", "body": "A plum."}]'},
    "a zipped dump": {"dump.zip": pack({"a/dump.json": '{"_id": "d1", "_source": {"text": "A pear."}}\n' * 2})},
}


@pytest.mark.parametrize("name", CORPORA)
def test_messy_documents_lead_to_an_evaluation(staff: Client, name: str) -> None:
    response = send(staff, FORM, {"judged.csv": TABLE}, CORPORA[name])
    assert response.status_code == 302, response.context["form"].errors
    assert Collection.objects.get().name == next(iter(CORPORA[name])).partition(".")[0]
    assert "the text is its column “" in staff.get(response["Location"]).content.decode()


def test_preview_lets_choose_the_columns(staff: Client) -> None:
    table = "Wonach;Wo;Wie;Was\npear;d1;2;x\n"
    displayed = send(staff, PREVIEW, {"judged.csv": table}).content.decode()
    assert "has no column “text of the query”, no grade, no “document, as a uri or JSON”" in displayed
    assert re.findall(r'<option value="=(\w+)" selected>', displayed) == ["Wonach", "Wo", "Wie", "Was"]
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
    "both tables swapped": (
        {"shop.csv": "sku,name,description\nd1,Pear,A green fruit.\n"},
        {"judged.csv": TABLE},
        "judged.csv holds judged queries, not documents",
    ),
    "a zip of pages": (
        {"pages.zip": pack({"a.md": "# A"})},
        {"judged.csv": TABLE},
        "pages holds documents, not judged queries",
    ),
    "a zip of texts": (
        {"shop.zip": pack({f"{name}.txt": f"About {name}." for name in ("chains", "lights", "tyres")})},
        {"judged.csv": TABLE},
        "shop holds documents, not judged queries",
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
    assert "under Grade factor" in str(fraction.errors["grade_factor"])
    assert fraction["grade_factor"].label == "Grade factor"
    assert not Dataset.objects.exists()


@pytest.mark.parametrize("path", ["docs/guide/a.md", "guide/a.md"])
def test_folder_of_a_zip_stays_where_needed(staff: Client, path: str) -> None:
    pages = {"handbook.zip": pack({"docs/guide/a.md": "# Pear\n\nA pear.", "docs/b.md": "# Plum"})}
    response = send(staff, FORM, {"paths.csv": f"query,path,grade\npear,{path},1\n"}, pages)
    assert response.status_code == 302
    assert Mapping.objects.get().mapped_count == 1
    assert Collection.objects.get().name == "handbook"


READ_ANEW: dict[str, tuple[list[str], str]] = {
    "file names": (["pear.txt", "plum.txt"], "read as file names: 2 of 2 match"),
    "titles": (["The pear", "The plum"], "read as titles: 2 of 2 match"),
    "another case": (["A%20b/PEAR.txt", "./c/Plum.TXT"], "read as ids in another spelling: 2 of 2 match"),
    "paths elsewhere": (
        ["C:\\x\\pear.txt", "https://example.org/plum.txt"],
        "read as paths that end with a file name: ",
    ),
    "other endings": (["pear.pdf", "plum.pdf"], "read as file names with other endings: 2 of 2 match"),
    "some as written": (["c/plum.txt", "pear.txt", "fig.txt"], "read as file names: 2 of 3 match"),
    "most": (["pear.txt", "plum.txt", "fig.txt"], "read as file names: 2 of 3 match"),
}


@pytest.mark.parametrize("name", READ_ANEW)
def test_references_are_read_as_what_matches(staff: Client, name: str) -> None:
    references, sentence = READ_ANEW[name]
    pages = {"a b/pear.txt": "A pear.", "c/plum.txt": "A plum."}
    if name == "titles":
        pages = {"1.md": "# The pear", "2.md": "# The plum"}
    rows = "".join(f"Was ist das?;{reference};2;x\n" for reference in references)
    sent = {"judged.csv": f"Query;Document;Rating;Comment\n{rows}"}, {"pages.zip": pack({**pages})}
    for _ in range(2):  # the same files are the same dataset
        page = staff.get(send(staff, FORM, *sent).url, follow=True)
        assert sentence in page.content.decode()
    mapping = Mapping.objects.get()
    assert (mapping.mapped_count, mapping.total_count) == (2, len(references))
    assert (mapping.dataset.name, sentence in mapping.dataset.description) == ("judged", True)
    previewed = send(staff, PREVIEW, sent[0], collection=str(mapping.collection_id)).content.decode()
    assert sentence in previewed
    assert "It becomes" not in previewed


IDS: dict[str, tuple[list[str], list[str], str]] = {
    "zeros removed": (["123", "77"], ["00123", "00077"], "read as numbers without leading zeros: 2 of 2 match"),
    "decimals added": (["123.0", "77.0"], ["123", "77"], "read as numbers without leading zeros: 2 of 2 match"),
    "schemes": (["http://x.org/a/", "www.x.org/b"], ["https://x.org/a", "https://x.org/b"], "ids in another spelling"),
    "endings": (["d1.txt", "d2.txt"], ["d1", "d2"], "read as ids without folders and endings: 2 of 2 match"),
    "folders": (["d1", "d2"], ["docs/d1", "docs/d2"], "read as ids without folders and endings: 2 of 2 match"),
    "white space": (["d1 ", " d2"], ["d1", "d2"], "read as ids in another spelling: 2 of 2 match"),
}


@pytest.mark.parametrize("name", IDS)
def test_ids_that_programs_changed_match_with_a_note(staff: Client, name: str) -> None:
    references, ids, sentence = IDS[name]
    corpus = "".join(f'{{"_id": "{id}", "text": "A pear."}}\n' for id in ids)
    table = "Query;Document;Rating\n" + "".join(f"q;{reference};2\n" for reference in references)
    page = staff.get(send(staff, FORM, {"judged.csv": table}, {"fruit.jsonl": corpus}).url, follow=True)
    assert sentence in page.content.decode()
    mapping = Mapping.objects.get()
    assert (mapping.mapped_count, mapping.total_count) == (2, 2)


def test_numbers_that_zeros_tell_apart_stay_unread(staff: Client) -> None:
    corpus = "".join(f'{{"_id": "{id}", "text": "A pear."}}\n' for id in ("00123", "0123"))
    table: Files = {"judged.csv": "Query;Document;Rating\nq;123;2\n"}
    page = send(staff, FORM, table, {"fruit.jsonl": corpus}).content.decode()
    assert "No document has the document_id &#x27;123&#x27;." in page


def test_several_readings_ask_for_a_choice(staff: Client) -> None:
    pages = {"p.zip": pack({"x/pear.md": "# plum.md", "y/plum.md": "# pear.md"})}
    table = {"judged.csv": "Query;Document;Rating\nq;pear.md;2\n"}
    page = send(staff, FORM, table, pages).content.decode()
    assert "Read as file names or as titles, judgments match documents of" in page
    assert "choose what their column holds, under Columns" in page
    assert not Dataset.objects.exists()
    columns = ["query_text=Query", "file_name=Document", "grade=Rating"]
    assert send(staff, FORM, table, pages, column=columns).status_code == 302
    assert Mapping.objects.get().mapped_count == 1


def test_grades_of_one_document_ask_for_one(staff: Client) -> None:
    table = {"judged.csv": "Query;Document;Rating\nq;PEAR.txt;2\nq;pear.TXT;1\n"}
    page = send(staff, FORM, table, {"p.zip": pack({"x/pear.txt": "A pear."})}).content.decode()
    assert "keep one of the two judgments" in page
    assert not Dataset.objects.exists()


def test_dataset_of_file_names_names_the_remedy(staff: Client) -> None:
    table = {"judged.csv": "Query;Document;Rating\nq;pear.txt;2\n"}
    upload = SimpleUploadedFile("judged.csv", table["judged.csv"].encode())
    assert staff.post(reverse("admin:datasets_dataset_add"), {"file": upload}).status_code == 302
    pages = {"p.zip": pack({"x/pear.txt": "A pear.", "y/b.txt": "B"})}
    page = send(staff, FORM, {}, pages, dataset=str(Dataset.objects.get().pk)).content.decode()
    assert "As file names, 1 of 1 match: upload the queries with this collection" in page
    assert "or import them with their column as file_name, under Columns" in page
    assert "--column" not in page


def test_refused_files_stay_on_their_page(staff: Client) -> None:
    files = {"queries": SimpleUploadedFile("judged.csv", TABLE.replace("d1", "x1").replace("d2", "x2").encode())}
    files["corpus"] = SimpleUploadedFile("fruit.jsonl", CORPUS.encode())
    fields = {"question": "modes", "encoder": ENCODER}
    answer = staff.post(reverse(FORM), files | fields, headers={"HX-Request": "true"}).content.decode()
    assert "No document has the document_id &#x27;x1&#x27;." in answer
    assert 'id="error_queries" role="alert" hx-swap-oob="true"' in answer
    assert "exists and stays" in answer
    assert "<form" not in answer


@pytest.mark.parametrize("name", ["PAGES.ZIP", "pages.zip"])
def test_documents_of_programs_are_named(staff: Client, name: str) -> None:
    pages = {name: pack({"pear.txt": "A pear.", "old/plum.docx": "PK", "fig.pdf": "%PDF-1"})}
    table: Files = {"judged.csv": "Query;Document;Rating\nq;pear.txt;2\n"}
    unread = "Not read: fig.pdf, old/plum.docx. Save them as .txt, .md or .html to search them."
    assert unread in staff.get(send(staff, FORM, table, pages).url, follow=True).content.decode()
    assert Collection.objects.get().name == name[:5]
    only = {name: pack({"old/plum.docx": "PK"})}
    refused = send(staff, FORM, table, only).content.decode()
    assert "holds no document: looked for files that end in" in refused
    assert "plum.docx. Save them as .txt, .md or .html" in refused
    upload = SimpleUploadedFile(name, pages[name])
    response = staff.post(reverse("admin:collections_collection_add"), {"name": "shop", "file": upload}, follow=True)
    assert unread in response.content.decode()
    pdf = send(staff, FORM, table, {"a.pdf": b"%PDF-1.4"}).content.decode()
    assert "a.pdf is a PDF, which is not read: save its text as .txt, .md or .html" in pdf


def test_unmatched_judgments_show_an_id_of_each_side(staff: Client) -> None:
    page = send(staff, FORM, {"judged.csv": TABLE.replace("d1", "x1").replace("d2", "x2")}).content.decode()
    assert "No document has the document_id &#x27;x1&#x27;." in page
    assert "The first document there has the document_id &#x27;d1&#x27;." in page


def test_preview_counts_judged_ids_of_the_chosen_collection(staff: Client) -> None:
    send(staff, FORM, {"judged.csv": TABLE})
    collection, dataset = Collection.objects.get().pk, Dataset.objects.get().pk
    table, half = {"a.csv": TABLE}, {"a.csv": TABLE.replace("d1", "x1")}
    answers = [send(staff, PREVIEW, rows, collection=collection).text for rows in (table, half)]
    assert "2 of 2 judged ids are of documents in &quot;fruit&quot;." in answers[0]
    assert "1 of 2 judged ids are of documents" in answers[1]
    assert "2 of 2 judged ids" in send(staff, PREVIEW, {}, collection=collection, dataset=dataset).text
    none = send(staff, PREVIEW, {"a.csv": TABLE.replace("d1", "x1").replace("d2", "x2")}, collection=collection).text
    assert "None of the 2 judged ids is of a document in &quot;fruit&quot;. The first: " in none
    assert "No document has the document_id &#x27;x1&#x27;." in none
    assert "The first document there has the document_id &#x27;d1&#x27;." in none
    assert "judged ids" not in send(staff, PREVIEW, table).text
