"""The contract of a vector store: every member of the registry passes."""

import numpy as np
import pytest

from apps.retrieval.stores import STORES, StoreError, get_store
from benchbench.ir.records import ScoredList

pytestmark = pytest.mark.django_db

COLLECTION = "vectors_of_a_test"
EAST, NORTH, WEST = [1, 0], [0, 1], [-1, 0]


def vectors(*rows):
    matrix = np.array(rows, np.float32).reshape(len(rows), -1)
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


@pytest.fixture(params=STORES)
def store(request):
    store = get_store(request.param)
    assert store.backend_name == request.param
    store.create_collection(COLLECTION, 2)
    yield store
    store.delete_collection(COLLECTION)
    store.close()


class TestAVectorStore:
    def test_it_finds_the_nearest_first(self, store):
        store.insert(COLLECTION, np.array([0, 1, 2]), vectors(WEST, NORTH, [1, 1]))
        east, north = store.search(COLLECTION, vectors(EAST, NORTH), 3)
        assert east.ids.tolist() == [2, 1, 0]
        assert east.scores == pytest.approx([0.5**0.5, 0, -1], abs=1e-7)
        assert north.ids.tolist() == [1, 2, 0]

    def test_it_returns_no_more_than_top_k_and_no_more_than_there_is(self, store):
        store.insert(COLLECTION, np.array([0, 1, 2]), vectors(EAST, NORTH, WEST))
        assert [len(store.search(COLLECTION, vectors(EAST), k)[0]) for k in (1, 2, 50)] == [1, 2, 3]

    def test_equal_vectors_rank_by_id_in_whatever_order_they_came(self, store):
        store.insert(COLLECTION, np.array([7, 3]), vectors(EAST, EAST))
        store.insert(COLLECTION, np.array([5, 1]), vectors(EAST, WEST))
        assert store.search(COLLECTION, vectors(EAST), 2)[0].ids.tolist() == [3, 5]
        assert store.search(COLLECTION, vectors(EAST), 4)[0].ids.tolist() == [3, 5, 7, 1]

    def test_nothing_is_found_in_an_empty_collection_or_for_no_query(self, store):
        assert store.search(COLLECTION, vectors(EAST, NORTH), 5) == [ScoredList.empty(), ScoredList.empty()]
        store.insert(COLLECTION, np.array([0]), vectors(EAST))
        assert store.search(COLLECTION, np.empty((0, 2), np.float32), 5) == []

    def test_it_answers_the_same_twice_and_alone_as_in_a_batch(self, store):
        random = np.random.default_rng(0).standard_normal((300, 2)).astype(np.float32)
        store.insert(COLLECTION, np.arange(300), vectors(*random))
        queries = vectors(*random[:20])
        first = store.search(COLLECTION, queries, 10)
        assert store.search(COLLECTION, queries, 10) == first
        assert [store.search(COLLECTION, query[None], 10)[0] for query in queries] == first

    def test_a_filter_applies_before_ranking(self, store):
        metadata = [{"version": 7}, {"version": 8, "lang": "en"}, {"version": 8, "lang": "de"}, {}]
        store.insert(COLLECTION, np.arange(4), vectors(EAST, [1, 1], NORTH, EAST), metadata)
        found = {
            str(filter): store.search(COLLECTION, vectors(EAST), 1, filter)[0].ids.tolist()
            for filter in ({"version": 8}, {"version": 8, "lang": "de"}, {"version": "8"}, {"lang": "fr"}, {})
        }
        assert found == {
            "{'version': 8}": [1],
            "{'version': 8, 'lang': 'de'}": [2],
            "{'version': '8'}": [],
            "{'lang': 'fr'}": [],
            "{}": [0],
        }

    def test_a_filter_compares_values_as_json_does(self, store):
        values = [True, 1, 1.0, None, [1, 2], [1]]
        store.insert(COLLECTION, np.arange(6), vectors(*[EAST] * 6), [{"it's": value} for value in values])

        def passing(value):
            return store.search(COLLECTION, vectors(EAST), 6, {"it's": value})[0].ids.tolist()

        assert [passing(value) for value in (True, 1, None)] == [[0], [1, 2, 4, 5], [3]], (
            "a list has each of its values"
        )
        assert [passing(value) for value in ([1], [2, True], [[1, 2]], [])] == [[1, 2, 4, 5], [0, 4], [4], []]

    def test_vectors_without_metadata_pass_no_filter(self, store):
        store.insert(COLLECTION, np.array([0]), vectors(EAST))
        assert store.search(COLLECTION, vectors(EAST), 1, {"version": 8})[0].ids.tolist() == []

    def test_it_counts(self, store):
        assert store.count(COLLECTION) == 0
        store.insert(COLLECTION, np.arange(2), vectors(EAST, WEST))
        store.insert(COLLECTION, np.empty(0, np.int64), np.empty((0, 2), np.float32))
        assert store.count(COLLECTION) == 2

    def test_a_deleted_collection_is_gone_and_its_name_free(self, store):
        store.insert(COLLECTION, np.array([0]), vectors(EAST))
        store.delete_collection(COLLECTION)
        store.delete_collection(COLLECTION)
        assert store.count(COLLECTION) == 0
        store.create_collection(COLLECTION, 3)
        assert store.count(COLLECTION) == 0

    def test_a_name_is_taken_once(self, store):
        with pytest.raises(StoreError, match="exists already"):
            store.create_collection(COLLECTION, 2)


def test_an_unknown_store_is_named_with_those_there_are():
    with pytest.raises(StoreError, match="no vector store 'chroma'; there are pgvector, memory"):
        get_store("chroma")


class TestPgVectorStore:
    def test_what_is_read_back_is_what_was_written_to_the_bit(self):
        store = get_store("pgvector")
        random = np.random.default_rng(0).standard_normal((5000, 7)).astype(np.float32)
        store.create_collection(COLLECTION, 7)
        store.insert(COLLECTION, np.arange(4999, -1, -1), random[::-1])
        parts = list(store.read(COLLECTION, 7))
        assert np.concatenate([ids for ids, _ in parts]).tolist() == list(range(5000))
        assert np.array_equal(np.concatenate([rows for _, rows in parts]), random)
        assert store.ids(COLLECTION).tolist() == list(range(5000))

    def test_it_says_how_many_dimensions_fit(self):
        with pytest.raises(StoreError, match="1 to 16,000 dimensions; these have 20,000"):
            get_store("pgvector").create_collection(COLLECTION, 20_000)
