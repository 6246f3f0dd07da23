"""Words and queries that lexical search does not read: a warning with number, example and remedy, everywhere."""

import pytest
from django.test import Client
from django.urls import reverse

from apps.execution.defining.previewing import preview
from apps.mappings.models import Mapping
from apps.records.models import Benchmark, QueryResult, Run
from apps.retrieval.search.word_stats import WordStats
from benchbench.site.panels import change_url
from tests.created import run_benchmark
from tests.library import ENCODER
from tests.unread import import_texts, read_as_english

pytestmark = pytest.mark.django_db(transaction=True)
GERMAN = (
    "Das Buch ist mit einem Band über die Geschichte der Stadt erschienen",
    "Die Katze schläft auf der warmen Fensterbank und wartet auf den Abend",
    "Wir haben gestern im Garten ein neues Beet mit Tomaten angelegt",
)


def run(mapping: Mapping, **matrix: object) -> Benchmark:
    return run_benchmark(mapping, name="words", matrix={"search_modes": ["sparse"], **matrix})


def list_warnings(benchmark: Benchmark) -> list[str]:
    return [warning for each in benchmark.runs.order_by("run_order") for warning in each.warnings]


def test_texts_in_another_language_are_named(admin_client: Client) -> None:
    mapping = import_texts(list(GERMAN), ["Katze"])
    index = read_as_english()
    sentence = (
        '3 of 3 sampled chunks of the index "words" look German, and BM25 reads their words as English: search by '
        "bm25(language=german), or import the documents with their language."
    )
    assert preview(mapping, {"search_modes": ["sparse"]}).warnings == [sentence]
    lexical = ["bm25", "bm25(language=de)", "fts"]
    warned = {each.configuration.lexical: each.warnings for each in run(mapping, lexical=lexical).runs.all()}
    of_fts = sentence.replace("BM25", "full text").replace("bm25(", "fts(")
    assert warned == {"bm25": [sentence], "bm25(language=german)": [], "fts": [of_fts]}
    page = admin_client.get(reverse("admin:retrieval_index_change", args=[index.pk])).content.decode()
    assert "look German, and BM25 reads their words as English" in page


def test_the_first_chunks_do_not_decide_the_language() -> None:
    positions = sorted(range(1100), key="d{}".format)
    is_german = {number: position < 400 for position, number in enumerate(positions)}
    texts = [GERMAN[0] if is_german[number] else "A band played in the warm garden" for number in range(1100)]
    import_texts(texts, ["band"])
    index = read_as_english()
    assert index.lexical_index is not None
    stats = WordStats.from_dict(index.lexical_index.stats)
    assert stats is not None
    assert (stats.guessed, stats.sampled) == ("english", 100)
    assert 55 <= stats.agreeing <= 75


def test_clauses_taken_for_words_are_named() -> None:
    texts = ["图书馆在工作日晚上八点以前开放", "包裹三个工作日内送达", "请把面粉和黄油混合以后放进烤箱"]
    mapping = import_texts(texts, ["工作日"])
    assert list_warnings(run(mapping)) == []
    full_text = list_warnings(run(mapping, lexical=["fts"]))[-1]
    assert "and full text reads their words alone, in lower case: search by bm25(language=chinese)" in full_text
    unknown, warning = list_warnings(run(mapping, lexical=["bm25(words=plain)"]))
    assert "1 query with no word that occurs in the collection, such as q0 “工作日”" in unknown
    assert warning.startswith('100.0 % of the words that BM25 reads of the index "words" are unusually short or long')
    assert "such as “" in warning


def test_chunks_without_words_are_named() -> None:
    mapping = import_texts(["apple pear", "the", "plum", "of it"], ["apple"])
    assert list_warnings(run(mapping)) == [
        '2 of 4 chunks of the index "words" have no word that BM25 reads, such as one of the document "d1": check the '
        "texts of the documents, and their language."
    ]


def test_queries_without_words_are_named() -> None:
    texts = ["to be or not to be", "apple", "pear"]
    mapping = import_texts(texts[1:], ["To be or not to be", "apple", "C", "zebra"], encoder=ENCODER)
    (nothing, unknown) = list_warnings(run(mapping))
    assert nothing.startswith(
        "Lexical search found nothing for 2 queries with no word left, such as q0 “To be or not "
        "to be”. Keep stop words and one-letter words by bm25(words=unicode, stop=none)"
    )
    assert unknown.startswith(
        "Lexical search found nothing for 1 query with no word that occurs in the collection, such as q3 “zebra”."
    )
    hybrid = list_warnings(run(mapping, search_modes=["hybrid"]))
    assert [nothing, unknown] == [warning for warning in hybrid if warning.startswith("Lexical search")]
    full_text = list_warnings(run(mapping, lexical=["fts"]))
    assert "1 query with no word left" in full_text[0], "PostgreSQL keeps the letter C"
    assert "2 queries with no word that occurs" in full_text[1]


def test_queries_that_a_threshold_empties_are_named() -> None:
    mapping = import_texts(["apple pear", "pear plum", "fig"], ["apple", "zebra", "fig"], encoder=ENCODER)
    benchmark = run(mapping, search_modes=["dense", "sparse"], score_thresholds=[None, 0.99])
    warned = {
        (each.configuration.search_mode, each.configuration.score_threshold): [
            warning for warning in each.warnings if warning.startswith("The threshold")
        ]
        for each in benchmark.runs.all()
    }
    (dense,) = warned.pop(("dense", 0.99))
    assert dense == (
        "The threshold 0.99 removed all results of 2 queries, such as q0 “apple”. It is held against cosine "
        "similarity: lower score_thresholds, or leave it out."
    )
    assert not any(warned.values()), "the best chunk of a lexical list reaches every threshold"


def test_a_ranking_shows_terms_and_explains_nothing(admin_client: Client) -> None:
    mapping = import_texts(["red apple", "pear"], ["The apples", "to be", "zebra", "pear"], encoder=ENCODER)
    benchmark = run(mapping, search_modes=["sparse", "dense"], score_thresholds=[None, 0.99])

    def read(run: Run, key: str) -> tuple[object, str, list[list[str]]]:
        result = QueryResult.objects.get(run=run, query__key=key)
        context = admin_client.get(change_url(result)).context
        return context["terms"], context["nothing"], [terms for _, _, terms in context["hits"]]

    by_setting = {
        (one.configuration.search_mode, one.configuration.score_threshold): one for one in benchmark.runs.all()
    }
    sparse, dense = by_setting["sparse", None], by_setting["dense", 0.99]
    assert read(sparse, "q0") == (["appl"], "", [["red", "appl"]])
    assert read(sparse, "q1")[:2] == (
        [],
        "No word of the query is left: the analyzer drops stop words, and perhaps words of one letter.",
    )
    assert read(sparse, "q2")[:2] == (["zebra"], "None of its words occurs in the collection.")
    assert read(dense, "q3")[:2] == (None, "")
    assert read(dense, "q2")[:2] == (None, "The threshold 0.99 removed all results.")
    page = admin_client.get(change_url(QueryResult.objects.get(run=sparse, query__key="q1"))).content.decode()
    assert "none, so lexical search finds nothing" in page
