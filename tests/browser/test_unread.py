"""Warnings of what was not read, on the pages of an index, a benchmark, its runs, a query and a comparison."""

from pathlib import Path

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from apps.mappings.models import Mapping
from apps.records.models import Benchmark, QueryResult, Run
from apps.retrieval.models import Index
from benchbench.site.panels import change_url
from tests.browser.reader import outside
from tests.created import run_benchmark
from tests.site import results_url
from tests.tiny_models import WINDOW, save_encoder
from tests.unread import import_texts, read_as_english

pytestmark = pytest.mark.thorough
CHINESE = ["图书馆在工作日晚上八点以前开放", "包裹三个工作日内送达", "请把面粉和黄油混合以后放进烤箱"]
CUT = f"reads {WINDOW} tokens of a text"
OF_WORDS = (
    "have no word that BM25 reads",
    "are unusually short or long",
    "look Chinese, and BM25 reads their words as",
)
DUPLICATES, TIES = "have the text of another one", "positions have the score of a neighbour"
OF_QUERIES = ("with no word left", "with no word that occurs in the collection")


@pytest.fixture
def mapping(site: str, tmp_path: Path) -> Mapping:
    def make() -> Mapping:
        encoder = str(save_encoder(tmp_path))
        long = "apple " * (WINDOW + 8)
        mapping = import_texts([*CHINESE * 6, long, "the", "of it"], ["to be", "zebra", "apple"], encoder=encoder)
        read_as_english("bm25(words=plain)")
        return mapping

    return outside(make)


def expect_all(page: Page, *sentences: str) -> None:
    for sentence in sentences:
        expect(page.locator("#main-content")).to_contain_text(sentence, timeout=30_000)


def test_every_warning_is_seen_where_people_look(page: Page, mapping: Mapping) -> None:
    page.goto(change_url(Index.objects.get()))
    expect_all(page, CUT, *OF_WORDS)
    page.goto(f"{reverse('admin:benchmarks_benchmark_add')}?mapping={mapping.pk}")
    page.wait_for_selector("#preview >> text=3 runs")
    expect_all(page, CUT, *OF_WORDS, DUPLICATES)

    def run() -> Benchmark:
        matrix = {"search_modes": ["dense", "sparse"], "score_thresholds": [None, 1.0]}
        return run_benchmark(mapping, name="unread", matrix=matrix)

    benchmark = outside(run)
    page.goto(results_url(benchmark))
    expect_all(page, CUT, *OF_WORDS, *OF_QUERIES, DUPLICATES, TIES, "The threshold 1.0 removed all results of")
    runs = {(one.configuration.search_mode, one.configuration.score_threshold): one for one in benchmark.runs.all()}
    page.goto(change_url(runs["sparse", None]))
    expect_all(page, *OF_WORDS, *OF_QUERIES, DUPLICATES)
    page.goto(change_url(runs["dense", None]))
    expect_all(page, CUT, DUPLICATES, TIES)
    page.goto(change_url(runs["dense", 1.0]))
    expect_all(page, CUT, "The threshold 1.0 removed all results of")
    page.goto(f"{reverse('admin:run_compare')}?{'&'.join(f'run={one.pk}' for one in runs.values())}")
    expect_all(page, CUT, *OF_WORDS, *OF_QUERIES, DUPLICATES, TIES)
    for key, sentence in (("q0", "No word of the query is left"), ("q1", "None of its words occurs in the collection")):
        page.goto(change_url(find(runs["sparse", None], key)))
        expect_all(page, sentence)
    page.goto(change_url(find(runs["dense", 1.0], "q0")))
    expect_all(page, "The threshold 1.0 removed all results")


def find(run: Run, key: str) -> QueryResult:
    return QueryResult.objects.get(run=run, query__key=key)
