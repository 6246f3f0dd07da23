"""Search of compressed vectors, in memory and in pgvector."""

import numpy as np
import pytest

from apps.retrieval.search import exact
from apps.retrieval.search.ann_indexes import AnnIndexError, make_ann_index
from apps.retrieval.search.pgvector import explain
from apps.retrieval.stores import STORES
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import ScoredList
from tests.retrieval.arms import Arm, index_of, unit


@pytest.fixture
def rows():
    return unit(300, 70, 0)


def test_rescoring_everything_is_exact_search(tmp_path, rows):
    mask = np.arange(300) % 2 == 1
    metadata = [{"odd": bool(odd)} for odd in mask]
    queries = unit(10, 70, 1)
    for precision in ("float32", "float16", "int8", "binary"):
        arm = Arm(tmp_path, f"compressed(dimensions=9, precision={precision}, rescore=300)", rows, metadata)
        assert arm.search(queries, 20) == exact.find_nearest(rows, queries, 20)
        assert arm.search(queries, 20, {"odd": True}) == exact.find_nearest(rows, queries, 20, mask=mask)


def test_without_rescoring_the_compressed_scores_decide(tmp_path, rows):
    arm = Arm(tmp_path, "compressed(precision=binary, rescore=0)", rows)
    query = unit(1, 70, 1)
    (hits,) = arm.search(query, 20)
    scores = 1 - 2 * ((rows > 0) != (query > 0)).sum(axis=1) / 70
    order = sorted(range(300), key=lambda position: (-scores[position], position))[:20]
    assert (hits.ids.tolist(), hits.scores.tolist()) == (order, scores[order].tolist())


def test_full_scores_rank_as_many_nominees_as_stated(tmp_path, rows):
    query = unit(1, 70, 1)
    arm = Arm(tmp_path, "compressed(precision=binary, rescore=0)", rows)
    nominees = np.sort(arm.search(query, 50)[0].ids)
    (hits,) = Arm(tmp_path, "compressed(precision=binary, rescore=50)", rows).search(query, 20)
    (expected,) = exact.find_nearest(rows[nominees], query, 20)
    assert hits == ScoredList(nominees[expected.ids], expected.scores)


def test_more_dimensions_than_there_are_is_refused():
    refused = STORES["memory"].describe_obstacle(Ann.parse("compressed(dimensions=71)"), 300, 70)
    assert refused == "its dimensions, 71, exceed the 70 of the vectors"


@pytest.mark.django_db(transaction=True)
def test_pgvector_indexes_of_fewer_dimensions_are_smaller():
    rows = unit(2000, 256, 0)
    index = index_of(rows, None)
    texts = ("hnsw", "hnsw(storage=halfvec)", "hnsw(dimensions=64)", "hnsw(dimensions=64, storage=binary)")
    created = [make_ann_index(index, Ann.parse(text)) for text in texts]
    sizes = [one.bytes for one in created]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 2 * sizes[2]
    assert len({one.name for one in created}) == 4
    assert explain(index, Ann.parse("hnsw(dimensions=64, storage=binary, rescore=500)"), 500)["index_used"]
    with pytest.raises(AnnIndexError, match="give at most 256 dimensions"):
        make_ann_index(index, Ann.parse("hnsw(dimensions=257)"))
