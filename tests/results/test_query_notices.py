"""Notices of what concerns one query, on its page and on that of its rankings: each with its remedy."""

from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from apps.datasets.models import Query
from apps.records.models import Benchmark, QueryResult
from apps.retrieval.indexing import create_index
from benchbench.site.panels import change_url
from tests.created import build, run_benchmark
from tests.site import text_of
from tests.tiny_models import WINDOW, save_cross_encoder, save_encoder
from tests.unread import import_texts

pytestmark = pytest.mark.django_db(transaction=True)
LONG = "apple " * (WINDOW + 8)
TEXTS = ["apple", "apple", "plum", "cherry fig", "fig", "grape", "kiwi", "lemon", "lime", "mango"]
CUT = "The encoder does not read the end of this query. Shorten it, or use an encoder with a longer window."
RERANKED = "does not read the end of some texts together with this query. Build an index with smaller chunks"
DUPLICATE = (
    "1 judged text has an unjudged duplicate: d0 is judged and d1 is not, so finding it gains nothing. Use "
    "identical_texts: judged, “Documents with identical texts”, or judge the duplicates."
)
TIES = "100.0 % of the first 20 positions have the score of a neighbour: external ids decide their order"


def read(client: Client, row: object, query: str = "") -> str:
    return " ".join(unescape(text_of(client.get(f"{change_url(row)}{query}"))).split())


def find(benchmark: Benchmark, key: str, mode: str) -> QueryResult:
    return QueryResult.objects.get(run__benchmark=benchmark, run__config__search_mode=mode, query__key=key)


def list_seen(page: str) -> list[str]:
    return [notice for notice in (CUT, RERANKED, DUPLICATE, TIES) if notice in page]


def test_pages_of_a_query_show_what_concerns_it(admin_client: Client, tmp_path: Path) -> None:
    mapping = import_texts(TEXTS, ["apple", LONG], encoder=str(save_encoder(tmp_path)))
    benchmark = run_benchmark(mapping, name="b", matrix={"search_modes": ["dense", "sparse"]})
    seen = {
        (key, mode): list_seen(read(admin_client, find(benchmark, key, mode)))
        for key in ("q0", "q1")
        for mode in ("dense", "sparse")
    }
    assert seen["q1", "dense"][:2] == [CUT, DUPLICATE]
    assert [CUT in notices for notices in seen.values()] == [False, False, True, False]
    assert seen["q0", "sparse"] == [DUPLICATE, TIES]
    page = read(admin_client, Query.objects.get(key="q1"), f"?benchmark={benchmark.pk}")
    assert f": {CUT}" in page
    assert DUPLICATE in page
    assert CUT not in read(admin_client, Query.objects.get(key="q0"), f"?benchmark={benchmark.pk}")


def test_judging_duplicates_alike_ends_their_notice(admin_client: Client) -> None:
    mapping = import_texts(TEXTS, ["apple"])
    benchmark = run_benchmark(mapping, name="b", matrix={"search_modes": ["sparse"]}, identical_texts="judged")
    assert DUPLICATE not in read(admin_client, benchmark.runs.get().query_results.get())


def test_reranker_that_cuts_a_query_is_named(admin_client: Client, tmp_path: Path) -> None:
    model = str(save_cross_encoder(tmp_path))
    mapping = import_texts([LONG, *TEXTS[2:]], ["apple", "grape"])
    matrix = {"search_modes": ["sparse"], "use_reranker": [True], "rerankers": [model]}
    benchmark = run_benchmark(mapping, name="b", matrix=matrix)
    assert RERANKED in read(admin_client, find(benchmark, "q0", "sparse"))
    assert RERANKED not in read(admin_client, find(benchmark, "q1", "sparse"))


def test_index_without_bm25_counts_its_empty_texts(admin_client: Client, tmp_path: Path) -> None:
    mapping = import_texts(["apple", "", "plum", ""], ["apple"], encoder=str(save_encoder(tmp_path)))
    words = mapping.collection.indexes.get()
    sentence = '2 of 4 chunks of the index "alone" have no text, such as one of the document "d1"'
    index = build(create_index(mapping.collection, name="alone", encoder=words.encoder, lexical=False))
    assert sentence in read(admin_client, index)
    assert "have no text" not in read(admin_client, words), "its count of chunks without words has them"
    matrix = {"indexes": ["alone"], "search_modes": ["dense"]}
    assert sentence in " ".join(run_benchmark(mapping, name="b", matrix=matrix).runs.get().warnings)
