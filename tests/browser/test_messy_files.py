"""Files as people have them, in a browser: each choice shows what it gives, or the remedy, before anything starts."""

import zipfile
from pathlib import Path

import pytest
from django.urls import reverse
from playwright.sync_api import Page

from apps.datasets.models import Dataset
from apps.records.models import Benchmark
from tests.files.samples import write_file

pytestmark = pytest.mark.thorough

PAGES = {"docs/pears.md": "# Pears\n\nA pear is a fruit.", "docs/plums.md": "# Plums\n\nA plum is blue."}
TABLES = {
    "quepid.csv": "\ufeffquery;docid;rating\r\npear;docs/pears.md;2\r\n",
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
    handbook = tmp_path / "handbook.zip"
    with zipfile.ZipFile(handbook, "w") as archive:
        for name, text in PAGES.items():
            archive.writestr(name, text)

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
    assert "has no column query_text" in choose_files(page, "queries", odd)
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
