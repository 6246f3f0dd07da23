"""Approximate search by pgvector's indexes, held against exact search over a few hundred random vectors."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from django.db import connection

from apps.retrieval.deleting import delete_index
from apps.retrieval.search.ann_indexes import AnnIndexError, check_ann, find_ann_index, make_ann_index, name_ann_index
from apps.retrieval.search.approximate import ApproximateView
from apps.retrieval.search.arms import make_arm
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.search.pgvector import explain
from apps.retrieval.search.vectors import VectorsError
from benchbench.ir.planning.ann import Ann
from benchbench.ir.ranking import recall
from tests.chance import check_chance
from tests.retrieval.opened import dense
from tests.retrieval.random_vectors import COUNT, DIMENSION

pytestmark = pytest.mark.django_db

SETTINGS = [
    "hnsw(ef_search=400)",
    "hnsw(ef_search=400, storage=halfvec)",
    "hnsw(ef_search=400, storage=binary)",
    "ivfflat(lists=10, probes=10)",
    "ivfflat(lists=10, probes=10, storage=halfvec)",
    "ivfflat(lists=10, probes=10, storage=binary)",
]


def recalls(index, queries, text, depth, filters=None):
    """Build what `text` needs, and return the mean recall and the notes of a search."""
    setting, opened = Ann.parse(text), open_index(index)
    make_arm(index, setting, depth)
    neighbours = opened.approximate(queries, depth, setting, filters)
    pairs = zip(neighbours.lists, dense(opened, queries, depth, filters), strict=True)
    return np.mean([recall(one, another, depth) for one, another in pairs]), Counter(
        {name: len(set(places)) for name, places in neighbours.notes.items()}
    )


class TestSearching:
    @pytest.mark.parametrize("text", ["pgvector:exact", *(text for text in SETTINGS if "binary" not in text)])
    def test_unlimited_approximate_search_equals_exact_search(self, index, queries, text):
        setting, opened = Ann.parse(text), open_index(index)
        make_arm(index, setting, 20)
        neighbours = opened.approximate(queries, 20, setting)
        assert neighbours.lists == dense(opened, queries, 20)  # to the bit, scores and order
        assert not neighbours.notes
        assert all(cost > 0 for cost in neighbours.costs)

    @pytest.mark.parametrize("text", [text for text in SETTINGS if "binary" in text])
    def test_binary_finds_more_the_more_candidates_it_may_nominate(self, index, queries, text):
        few, many = (recalls(index, queries, text, depth)[0] for depth in (20, COUNT))
        check_chance(f"nearest by signs, {Ann.parse(text).method}", few)
        assert many == 1

    def test_a_narrow_search_misses_some(self, index, queries):
        narrow, notes = recalls(index, queries, "hnsw(ef_search=5)", 20)
        assert notes == {"short": len(queries)}
        check_chance("nearest of five", narrow)  # it returns no more than it holds
        check_chance("nearest in one list of ten", recalls(index, queries, "ivfflat(lists=10, probes=1)", 20)[0])

    def test_scanning_on_fills_the_list(self, index, queries):
        strict, _ = recalls(index, queries, "hnsw(ef_search=5, iterative=strict)", 20)
        check_chance("nearest by scanning on", strict)

    @pytest.mark.parametrize("text", SETTINGS)
    def test_answers_are_repeatable_and_independent_of_the_batch(self, index, queries, text):
        setting, opened = Ann.parse(text), open_index(index)
        make_ann_index(index, setting)
        first = opened.approximate(queries, 10, setting).lists
        assert opened.approximate(queries, 10, setting).lists == first
        assert [opened.approximate(query[None], 10, setting).lists[0] for query in queries] == first


class TestFilters:
    @pytest.mark.parametrize("text", ["pgvector:exact", *SETTINGS])
    def test_they_apply_before_ranking(self, index, queries, text):
        filters = [{"colour": "red"}, {}] * 10
        _, notes = recalls(index, queries, text, 15, filters)
        result = open_index(index).approximate(queries, 15, Ann.parse(text), filters).lists
        assert all(len(one) == 15 and not (one.ids % 10).any() for one in result[::2])
        assert any((one.ids % 10).any() for one in result[1::2])
        assert not notes["without_index"]

    def test_filter_leaving_too_few_falls_back_to_exact_search(self, index, queries):
        filters, setting, opened = [{"colour": "red"}] * len(queries), Ann.parse("hnsw(ef_search=5)"), open_index(index)
        make_arm(index, setting, 15)
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL hnsw.max_scan_tuples = 1")  # gives up at once
        hits, truth = opened.approximate(queries, 15, setting, filters), dense(opened, queries, 15, filters)
        exactly = hits.notes["searched_exactly"]
        check_chance("queries that gave up at once", len(exactly))
        assert [hits.lists[number] for number in exactly] == [truth[number] for number in exactly]
        assert all(len(one) == 15 and not (one.ids % 10).any() for one in hits.lists)

    def test_graph_that_is_hardly_scanned_always_falls_back(self, index, queries):
        filters = [{"colour": "red"}] * len(queries)
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL hnsw.max_scan_tuples = 1")
        share, notes = recalls(index, queries, "hnsw(m=2, ef_construction=4, ef_search=1)", 40, filters)
        assert (share, notes) == (1, {"searched_exactly": len(queries)})

    def test_fewer_results_are_accepted_when_no_more_exist(self, index, queries):
        share, notes = recalls(index, queries, "hnsw(ef_search=400)", 100, [{"colour": "red"}] * len(queries))
        assert (share, notes) == (1, {})

    def test_metadata_that_changed_since_decides(self, index, queries):
        index.collection.documents.filter(external_id__in=["d000", "d010"]).update(metadata={"colour": "blue"})
        assert recalls(index, queries, "hnsw(ef_search=400)", COUNT, [{"colour": "red"}] * len(queries)) == (1, {})
        (first, *_) = open_index(index).approximate(queries, COUNT, Ann.parse("hnsw"), [{"colour": "red"}] * 20).lists
        assert sorted(first.ids) == list(range(20, COUNT, 10))
        assert recalls(index, queries, "hnsw", 5, [{"colour": "blue"}] * 20) == (1, {"searched_exactly": 20})


class TestTheIndexes:
    def test_settings_that_differ_in_searching_only_share_one(self, index):
        name = name_ann_index(index, Ann.parse("hnsw"))
        assert name_ann_index(index, Ann.parse("hnsw(ef_search=7, iterative=strict)")) == name
        assert name == f"{index.vector_table}_hnsw_16_64_vector"
        assert len(name_ann_index(index, Ann.parse("hnsw(m=100, ef_construction=1000, storage=halfvec)"))) <= 63

    def test_it_is_built_once(self, index):
        first = make_ann_index(index, Ann.parse("hnsw"))
        assert first.bytes > 0
        assert first.build_seconds > 0
        assert make_ann_index(index, Ann.parse("hnsw(ef_search=100)")) == first

    @pytest.mark.django_db(transaction=True)
    def test_of_two_workers_one_builds_and_the_other_waits(self, index):
        def make(_):
            try:
                return make_ann_index(index, Ann.parse("hnsw(m=32)"))
            finally:
                connection.close()

        with ThreadPoolExecutor(2) as workers:
            one, second = workers.map(make, range(2))
        assert one == second

    def test_of_several_each_search_uses_its_own(self, index):
        settings = [*map(Ann.parse, SETTINGS), Ann.parse("hnsw(m=8)"), Ann.parse("hnsw(m=8, ef_construction=20)")]
        assert len({make_ann_index(index, setting).name for setting in settings}) == len(settings)
        for setting in settings:
            answer = explain(index, setting, 10)
            assert answer["index_used"]
            assert f"Index Scan using {name_ann_index(index, setting)} on" in answer["plan"]

    def test_the_plan_comes_with_the_settings_read_back(self, index):
        setting = Ann.parse("hnsw(ef_search=77, iterative=strict, storage=binary)")
        make_ann_index(index, setting)
        answer = explain(index, setting, 10)
        scan = {"hnsw.ef_search": "77", "hnsw.iterative_scan": "strict_order"}
        assert answer["settings"] == {"enable_seqscan": "off", "enable_sort": "off", **scan}
        assert "<~> '…'" in answer["plan"]
        assert len(answer["plan"]) < 600

    def test_a_search_without_its_index_is_noted(self, index, queries):
        setting = Ann.parse("hnsw")
        assert not explain(index, setting, 10)["index_used"]
        neighbours = open_index(index).approximate(queries, 10, setting)
        assert neighbours.notes == {"without_index": list(range(len(queries)))}
        assert neighbours.lists == dense(open_index(index), queries, 10)

    def test_they_go_with_their_table(self, index):
        name = make_ann_index(index, Ann.parse("hnsw")).name
        assert find_ann_index(name)
        delete_index(index)
        assert find_ann_index(name) is None

    def test_more_dimensions_than_pgvector_indexes_are_refused(self, index):
        index.dimension = 3072
        check_ann(index, Ann.parse("exact"))
        check_ann(index, Ann.parse("hnsw(storage=halfvec)"))
        with pytest.raises(AnnIndexError, match=r"3,072 dimensions .* 2,000 with storage=vector, 4,000 with"):
            make_ann_index(index, Ann.parse("hnsw"))


def test_table_with_more_vectors_than_its_index_is_rejected(index, queries):
    setting = Ann.parse("hnsw(ef_search=400)")
    make_ann_index(index, setting)
    fewer = np.zeros((COUNT // 2, DIMENSION), np.float32)
    with pytest.raises(VectorsError, match=r'The table of the index "random" does not hold one vector for each'):
        ApproximateView(index, fewer, setting, {}).find_nearest(queries, COUNT)
