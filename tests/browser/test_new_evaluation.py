"""A new user on the collection ADI, from the login to a verdict: how many clicks, how much time, and never lost."""

import time
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page

from apps.records.models import Benchmark

pytestmark = pytest.mark.thorough

WORDS = (
    "information,retrieval,systems,computer,indexing,library,documents,search,scientific,automatic,literature,language"
)
MAX_CLICKS, MAX_SECONDS = 12, 300


class Person:
    """Someone who uses a page by its links and buttons; each click, and each choice of a file, counts."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 1  # the login
        self.began = time.monotonic()

    def click(self, selector: str) -> None:
        self.clicks += 1
        self.page.click(selector)
        self.page.wait_for_selector(
            "main a.bb-button, main button, #content a.bb-button, #content button", state="attached"
        )

    def choose_file(self, field: str, file: Path) -> None:
        self.clicks += 1
        self.page.set_input_files(f"[name={field}]", str(file))


def pack_queries(source: Path, target: Path) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        for path in [source / "queries.jsonl", *sorted((source / "qrels").iterdir())]:
            archive.write(path, path.relative_to(source))
    return target


def test_new_user_reaches_a_verdict_on_adi(page, manage, shared_data, tmp_path):
    source = shared_data / "adi"
    if not source.is_dir():
        pytest.skip(f"There is no {source}: put the test collection ADI there.")
    manage("manage.py", "worker")
    person = Person(page)
    page.goto("/admin/")
    person.click("a:has-text('New evaluation')")
    person.choose_file("corpus", source / "corpus.jsonl")
    person.choose_file("queries", pack_queries(source, tmp_path / "adi.zip"))
    person.clicks += 1
    page.fill("[name=encoder]", f"keyword:{WORDS}")
    person.click("text=Does reranking pay?")
    person.click("button:has-text('Start')")
    page.wait_for_selector("text=35 queries")
    page.wait_for_url("**/results/")
    page.wait_for_selector('#board[data-active="false"]', state="attached")
    page.wait_for_selector(".bb-verdict-sentence")
    benchmark = Benchmark.objects.get()
    assert (benchmark.name, benchmark.status, benchmark.total_runs) == ("adi: Does reranking pay?", "completed", 6)
    assert benchmark.mapping.mapped_count == benchmark.mapping.total_count
    person.click("a:has-text('Clone')")
    page.wait_for_selector("#preview >> text=6 runs")
    assert person.clicks <= MAX_CLICKS
    assert time.monotonic() - person.began < MAX_SECONDS
