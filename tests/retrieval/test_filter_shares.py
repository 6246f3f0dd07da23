"""Filters that admit a share of the documents: the same documents in memory, in PostgreSQL and in stores."""

import numpy as np
import pytest
from django.db import connection

from apps.retrieval.filters import PLACES, SHARE_KEY, bound_places, filter_rows, find_place
from apps.retrieval.search.ann_indexes import AnnIndexError
from apps.retrieval.search.approximate import ApproximateView
from apps.retrieval.search.arms import make_arm
from apps.retrieval.search.exact import find_nearest
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.search.pgvector import explain
from benchbench.ir.planning.ann import Ann
from benchbench.ir.ranking import recall
from tests.retrieval.arms import WIDEST, require_installed
from tests.retrieval.random_vectors import COUNT

pytestmark = pytest.mark.django_db
SHARES = (1, 0.5, 0.1, 0.02)


def admitted(share):
    """Return the positions of the documents that a share admits, by definition."""
    return [n for n in range(COUNT) if find_place(f"d{n:03}") < share * PLACES]


def chunks_of(lists):
    return sorted({int(chunk) for one in lists for chunk in one.ids})


def test_places_are_fixed_and_spread_evenly():
    assert find_place("d000") == 1_950_528_944  # on every machine, in every version
    places = np.array([find_place(f"document {n}") for n in range(20_000)]) / PLACES
    assert np.histogram(places, 10, (0, 1))[0] == pytest.approx(np.full(10, 2000), rel=0.1)
    assert bound_places(1) == PLACES


SLOW = ("chromadb", "lancedb")  # to import
TEXTS = [pytest.param(text, marks=[pytest.mark.thorough] * text.startswith(SLOW)) for text in WIDEST.values()]


@pytest.mark.parametrize("text", ["exact", *TEXTS])
def test_every_store_admits_the_same_nested_documents(index, queries, text):
    require_installed(text)
    setting, opened = Ann.parse(text), open_index(index)
    if text != "exact":
        make_arm(index, setting, COUNT)
    earlier = set(range(COUNT))
    for share in SHARES:
        filters = [{SHARE_KEY: share}] * len(queries)
        if text == "exact":
            lists = [answer.ranked for answer in opened.find_answers(queries, COUNT, filters)]
        else:
            answer = opened.approximate(queries, COUNT, setting, filters)
            lists, notes = answer.lists, answer.notes
            assert not notes, "nothing was searched exactly instead"
        assert chunks_of(lists) == admitted(share)
        assert set(chunks_of(lists)) <= earlier
        earlier = set(chunks_of(lists))
    words = opened.search_words(["text"], COUNT, [{SHARE_KEY: 0.1}])
    assert chunks_of(words) == admitted(0.1)


def test_it_combines_with_the_own_filter_of_a_query(index, queries):
    red = set(filter_rows(index.collection.documents.all(), {"colour": "red"}).values_list("external_id", flat=True))
    both = [n for n in admitted(0.5) if f"d{n:03}" in red]
    filters = [{"colour": "red", SHARE_KEY: 0.5}] * len(queries)
    opened, setting = open_index(index), Ann.parse("hnsw(ef_search=400, iterative=strict)")
    make_arm(index, setting, COUNT, 0.5)
    assert chunks_of(answer.ranked for answer in opened.find_answers(queries, COUNT, filters)) == both
    assert chunks_of(opened.approximate(queries, COUNT, setting, filters).lists) == both


def test_mask_of_a_share_is_computed_once(index):
    opened = open_index(index)
    opened.prepare(share=0.5)
    before = opened.nbytes
    mask = opened._admission.build_mask({SHARE_KEY: 0.5})
    assert np.flatnonzero(mask).tolist() == admitted(0.5)
    assert opened._admission.build_mask({SHARE_KEY: 0.5}) is mask
    assert opened.nbytes == before


@pytest.mark.parametrize("positions", [slice(7, 9), slice(3, None, 2)])
@pytest.mark.parametrize("text", ["pgvector:exact", "hnsw(ef_search=400, iterative=strict)"])
def test_few_and_many_positions_are_searched_alike(index, queries, text, positions):
    setting, vectors = Ann.parse(text), np.asarray(open_index(index)._vectors)
    make_arm(index, setting, 10)
    mask = np.zeros(COUNT, bool)
    mask[positions] = True
    view = ApproximateView(index, vectors, setting, None)
    for hit, truth in zip(
        view.find_nearest(queries, 10, mask=mask), find_nearest(vectors, queries, 10, mask=mask), strict=True
    ):
        assert hit.ids.tolist() == truth.ids.tolist()
    assert not view.notes


def test_exact_search_equals_brute_force(index, queries):
    opened = open_index(index)
    vectors, rows = np.asarray(opened._vectors), admitted(0.1)
    for answer, query in zip(opened.find_answers(queries, 5, [{SHARE_KEY: 0.1}] * 20), queries, strict=True):
        scores = vectors[rows].astype(float) @ query.astype(float)
        best = np.array(rows)[np.argsort(-scores, kind="stable")[:5]]
        assert answer.ranked.ids.tolist() == best.tolist()
        assert answer.ranked.scores == pytest.approx(np.sort(scores)[::-1][:5], abs=1e-6)


@pytest.mark.parametrize(("iterative", "capped"), [("off", True), ("strict", False)])
def test_pgvector_keeps_the_few_results_it_found(index, queries, iterative, capped):
    share, setting = 0.1, Ann.parse(f"hnsw(ef_search=20, iterative={iterative})")
    make_arm(index, setting, 10, share)
    opened, mask = open_index(index), np.isin(np.arange(COUNT), admitted(share))
    answer = opened.approximate(queries, 10, setting, [{SHARE_KEY: share}] * len(queries))
    exact = find_nearest(np.asarray(opened._vectors), queries, 10, mask=mask)
    mean = np.mean([recall(one, truth, 10) for one, truth in zip(answer.lists, exact, strict=True)])
    assert bool(mean < 1) is capped
    assert (len(answer.notes["short"]) == len(queries)) is capped
    assert "searched_exactly" not in answer.notes


def test_plan_filters_within_the_index_scan(index):
    setting = Ann.parse("hnsw")
    make_arm(index, setting, 10)
    assert "chosen" not in explain(index, setting, 10)
    facts = explain(index, setting, 10, 0.01)
    assert facts["index_used"]
    assert f"Filter: (place < {bound_places(0.01)})" in facts["plan"]
    assert not facts["chosen"]["index_used"], "400 rows are compared faster than an index is read"
    with connection.cursor() as cursor:
        cursor.execute(f'ALTER TABLE "{index.vector_table}" DROP COLUMN place')
    with pytest.raises(AnnIndexError, match="make a new version of the index"):
        explain(index, setting, 10, 0.01)
