"""Files as people have them, in a browser: each choice shows what it gives, or the remedy, before anything starts."""

import time
from pathlib import Path

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from apps.collections.models import Document
from apps.datasets.models import Dataset
from apps.operations.models import Operation
from apps.operations.working import wait
from apps.records.models import Benchmark
from apps.retrieval.models import Index
from tests.browser.messy import PAGES, QUEPID, pack, start
from tests.browser.reader import choose, outside
from tests.files.samples import write_excel, write_file

pytestmark = pytest.mark.thorough

TABLES = {
    "quepid.csv": "query,docid,rating\r\npear,docs/pears.md,2\r\n",
    "quepid_of_excel.csv": "\ufeffquery;docid;rating\r\npear;docs/pears.md;2\r\n",
    "detailed.csv": "Case Name,Query Text,Doc ID,Rating\nShop,pear,docs/pears.md,2\n",
    "excel.csv": "Query;Document;Rating;Comment\npear;docs/pears.md;2;good\n",
    "plain.csv": "query_text,document_id,grade\npear,docs/pears.md,2\n",
}
HALVES = {
    "queries.jsonl": '{"_id": "q1", "text": "pear"}\n',
    "qrels.tsv": "query-id\tcorpus-id\tscore\nq1\tdocs/pears.md\t2\n",
    "topics.txt": "q1\tpear\n",
    "qrels.txt": "q1 0 docs/pears.md 2\n",
    "corpus.jsonl": '{"_id": "d1", "title": "Pears", "text": "A pear."}\n',
}

TREC = {"mine/topics.txt": "q1\tpear\nq2\tplum\n", "mine/qrels.txt": "q1 0 docs/pears.md 2\nq2 0 docs/plums.md 1\n"}


def choose_files(page: Page, field: str, *files: Path) -> str:
    """Choose files, and return what the preview then says."""
    with page.expect_response("**/preview/"):
        page.set_input_files(f"[name={field}]", [str(file) for file in files])
    page.wait_for_selector("#preview:not(.htmx-request)")
    return page.inner_text("#preview")


def test_messy_files_are_shown_before_they_are_imported(page, manage, tmp_path):
    manage("manage.py", "worker")
    files = {name: write_file(tmp_path / name, content) for name, content in (TABLES | HALVES).items()}
    old = tmp_path / "old.csv"
    old.write_bytes("Frage;Dokument;Bewertung\nKäse;docs/pears.md;2\n".encode("cp1252"))
    handbook = pack(tmp_path / "handbook.zip", PAGES)

    page.goto(reverse("admin:new_evaluation"))
    assert page.locator("a[download]").get_attribute("href")
    for name in TABLES:
        assert "1 query with 1 judgment" in choose_files(page, "queries", files[name]), name
    assert "read as Windows-1252, line 2 as “Käse" in choose_files(page, "queries", old)
    for queries, judgments in (("queries.jsonl", "qrels.tsv"), ("topics.txt", "qrels.txt")):
        alone = choose_files(page, "queries", files[judgments])
        assert "choose both files at once on the page" in alone
        assert "1 query with 1 judgment" in choose_files(page, "queries", files[queries], files[judgments])
    assert "corpus.jsonl holds documents, not judged queries" in choose_files(page, "queries", files["corpus.jsonl"])

    page.set_input_files("[name=corpus]", str(files["queries.jsonl"]))
    page.click("button:has-text('Start')")
    page.wait_for_selector("text=Choose documents under Upload documents")
    assert not Dataset.objects.exists()

    odd = write_file(tmp_path / "paths.csv", "Wonach,Wo,Wie\npear,docs/pears.md,2\nplum,docs/plums.md,1\n")
    assert "has no column “text of the query”" in choose_files(page, "queries", odd)
    for column, value in {"Wonach": "query_text=Wonach", "Wo": "path=Wo", "Wie": "grade=Wie"}.items():
        with page.expect_response("**/preview/"):
            page.select_option(f"label:has-text('{column}') select[name=column]:has(option[value='={column}'])", value)
    page.wait_for_selector("#preview >> text=2 queries")
    page.set_input_files("[name=corpus]", str(handbook))
    page.fill("[name=encoder]", "keyword:pear,plum")
    page.click("button:has-text('Start')")
    page.wait_for_url("**/results/")
    page.wait_for_selector(".bb-verdict-sentence")
    benchmark = Benchmark.objects.get()
    assert (benchmark.mapping.mapped_count, benchmark.mapping.collection.name) == (2, "handbook")


def test_second_dataset_waits_for_the_same_index(page, manage, tmp_path):
    page.goto(reverse("admin:new_evaluation"))
    page.set_input_files("[name=corpus]", str(pack(tmp_path / "handbook.zip", PAGES)))
    page.set_input_files("[name=queries]", str(write_file(tmp_path / "quepid.csv", QUEPID)))
    start(page, "keyword:pear,plum")
    page.wait_for_url("**/evaluate/*-*/")
    page.goto(reverse("admin:new_evaluation"))
    choose(page, "collection", "handbook")
    trec = pack(tmp_path / "trec.zip", TREC)
    assert "2 queries with 2 judgments" in choose_files(page, "queries", trec)
    start(page, "keyword:pear,plum")
    page.wait_for_url("**/evaluate/*-*/")
    expect(page.get_by_text("queued").first).to_be_visible()
    manage("manage.py", "worker")
    page.wait_for_url("**/results/")
    page.wait_for_selector(".bb-verdict-sentence")
    outside(lambda: [wait(operation) for operation in Operation.objects.filter(kind="benchmark")])
    assert {one.mapping.dataset.name for one in Benchmark.objects.filter(status="completed")} == {"quepid", "trec"}
    assert Index.objects.count() == 1


def test_swapped_files_are_named_and_swapped_back(page, manage, tmp_path):
    manage("manage.py", "worker")
    documents, queries = pack(tmp_path / "handbook.zip", PAGES), tmp_path / "quepid.csv"
    write_file(queries, QUEPID)
    page.goto(reverse("admin:new_evaluation"))
    page.set_input_files("[name=corpus]", str(queries))
    page.set_input_files("[name=queries]", str(documents))
    start(page, "keyword:pear,plum")
    expect(page.locator("#form_faults")).to_contain_text("handbook holds documents, not judged queries")
    page.get_by_label("Upload documents").set_input_files(str(documents))
    page.get_by_label("Upload judged queries").set_input_files(str(queries))
    page.click("button:has-text('Start')")
    page.wait_for_url("**/results/")
    page.wait_for_selector(".bb-verdict-sentence")


class Stranger:
    """Someone who uses pages by what they show; each click, choice in a list and choice of a file counts."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks, self.began = page, 1, time.monotonic()  # the login

    def click(self, selector: str) -> None:
        self.clicks += 1
        self.page.click(selector)

    def choose_files(self, field: str, *files: Path) -> None:
        self.clicks += 1
        self.page.set_input_files(f"[name={field}]", [str(file) for file in files])

    def select(self, selector: str, value: str) -> None:
        self.clicks += 2  # the list and the choice
        self.page.select_option(selector, value)


TEXTS = {"Fruit/Äpfel/a.txt": "Pears are sweet.", "Fruit/b b.txt": "Plums are blue.", "Fruit/c.txt": "Figs grow."}
ODD = "Wonach;Wo;Wie;Rem\r\npear;fruit/%C3%84pfel/A.TXT;2;x\r\nplum;FRUIT/B B.txt;1;\r\n"
SHEET = "\ufeffQuery;Document;Rating;Comment\r\n"


def test_stranger_reaches_a_verdict_from_excel(page, manage, tmp_path):
    manage("manage.py", "worker")
    texts = pack(tmp_path / "texts.zip", TEXTS)
    rows = [["Query", "Document", "Rating", "Comment"], ["pear", "a.txt", 2, "good"], ["plum", "b b.txt", 1]]
    sheet = write_excel(tmp_path / "sheet.xlsx", {"Sheet1": rows})
    page.goto("/admin/")
    stranger = Stranger(page)
    stranger.click("a:has-text('New evaluation')")
    stranger.choose_files("queries", sheet)
    page.wait_for_selector("#preview >> text=2 queries with 2 judgments")
    assert page.inner_text("#preview li:first-child") == "pear 1 judgment: a.txt, grade 2", "its key is its text"
    stranger.choose_files("corpus", texts)
    stranger.clicks += 1
    page.fill("[name=encoder]", "keyword:pear,plum,fig")
    stranger.click("button:has-text('Start')")
    page.wait_for_url("**/results/")
    page.wait_for_selector(".bb-verdict-sentence")
    page.wait_for_selector("#board >> text=read as file names: 2 of 2 match")
    assert Benchmark.objects.get().mapping.mapped_count == 2
    assert stranger.clicks <= 12
    assert time.monotonic() - stranger.began < 300


def test_refused_files_and_columns_stay_chosen(page, manage, tmp_path):
    manage("manage.py", "worker")
    texts = pack(tmp_path / "texts.zip", TEXTS)
    sheet = write_file(
        tmp_path / "sheet.csv", "Wonach;Wo;Wie;Rem\r\npear;fruit/%C3%84pfel/A.TXT;2;x\r\nplum;FRUIT/B B.txt;1;\r\n"
    )
    page.goto(reverse("admin:new_evaluation"))
    stranger = Stranger(page)
    stranger.choose_files("corpus", texts)
    stranger.choose_files("queries", sheet)
    for column, name in {"Wonach": "query_text", "Wo": "document_id"}.items():
        with page.expect_response("**/preview/"):
            stranger.select(f"select[name=column]:has(option[value='={column}'])", f"{name}={column}")
    stranger.clicks += 1
    page.fill("[name=encoder]", "keyword:pear,plum,fig")
    stranger.click("button:has-text('Start')")
    page.wait_for_selector("#form_faults >> text=sheet.csv has no column grade")
    assert page.input_value("[name=queries]").endswith("sheet.csv")
    with page.expect_response("**/preview/"):
        stranger.select("select[name=column]:has(option[value='=Wie'])", "grade=Wie")
    stranger.click("button:has-text('Start')")
    page.wait_for_url("**/results/")
    page.wait_for_selector(".bb-verdict-sentence")
    assert Benchmark.objects.get().mapping.mapped_count == 2
    assert stranger.clicks <= 14, "two more for a refusal"


def test_changed_file_is_asked_for_again(page, tmp_path):
    sheet = write_file(tmp_path / "sheet.csv", SHEET + "pear;a.txt;2;good\r\n")
    page.goto(reverse("admin:new_evaluation"))
    page.evaluate("() => { console.error = () => {}; }")  # htmx reports what is not sent
    page.route("**/evaluate/", lambda route: route.abort("failed"))
    page.set_input_files("[name=queries]", str(sheet))
    page.click("button:has-text('Start')")
    page.wait_for_selector("#form_faults >> text=The form was not sent. Choose files again that were changed since")


FAQ = "Frage,Antworttext,Nr\nWhen?,In May.,7\nWhere?,At home.,8\n"


def choose_column(page: Page, section: str, column: str, value: str) -> None:
    with page.expect_response("**/admin/**"):
        page.select_option(f"{section} label:has-text('{column}') select:has(option[value='={column}'])", value)
    page.wait_for_selector(f"{section}:not(.htmx-request)")


def test_columns_of_documents_are_chosen_in_the_preview(page, tmp_path):
    faq = write_file(tmp_path / "faq.csv", FAQ)
    shop = write_file(tmp_path / "shop.csv", "sku,product_name,description\n1,Pear,A green fruit.\n")
    page.goto(reverse("admin:collections_collection_add"))
    assert "the text is its column “description”" in choose_files(page, "file", shop)
    assert "no column of the documents' ids" in choose_files(page, "file", faq)
    for column, value in {"Frage": "title=Frage", "Antworttext": "text=Antworttext", "Nr": "id=Nr"}.items():
        choose_column(page, "#preview", column, value)
    assert "2 documents" in page.inner_text("#preview")
    page.click("button:has-text('Upload and import')")
    page.wait_for_selector("text=Imported 2 documents.")
    assert "the text is its column “Antworttext”" in page.inner_text("#about")
    document = Document.objects.get(external_id="7")
    assert (document.title, document.text) == ("When?", "In May.")


def test_new_evaluation_lets_choose_columns_of_documents(page, manage, tmp_path):
    faq = write_file(tmp_path / "faq.csv", FAQ)
    judged = write_file(tmp_path / "judged.csv", "query,document,grade\nmay,7,1\n")
    page.goto(reverse("admin:new_evaluation"))
    assert "1 query with 1 judgment" in choose_files(page, "queries", judged)
    with page.expect_response("**/evaluate/documents/"):
        page.set_input_files("[name=corpus]", str(faq))
    page.wait_for_selector("#documents_preview >> text=no column of the documents' ids")
    for column, value in {"Antworttext": "text=Antworttext", "Nr": "id=Nr"}.items():
        choose_column(page, "#documents_preview", column, value)
    page.wait_for_selector("#documents_preview >> text=2 documents")
    assert page.locator("#preview select[name=column]").count() == 3, "those of the queries stay"
    page.fill("[name=encoder]", "keyword:may,home")
    page.click("button:has-text('Start')")
    page.wait_for_url("**/evaluate/*-*/")
    assert Document.objects.get(external_id="7").text == "In May."
