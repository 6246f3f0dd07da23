"""Search by the first dimensions of vectors."""

import numpy as np
import pytest

from apps.retrieval.search import exact
from apps.retrieval.search.exact import TruncatedView, find_nearest
from benchbench.ir.compression import TruncationError, truncate
from benchbench.ir.ranking import RankingError
from tests.retrieval.random_vectors import unit


def test_it_orders_as_float64_products_do():
    vectors, queries = unit(500), unit(5, seed=1)
    for query, hit in zip(queries, find_nearest(vectors, queries, 20), strict=True):
        products = vectors.astype(float) @ query.astype(float)
        assert hit.ids.tolist() == np.argsort(-products, kind="stable")[:20].tolist()
        assert hit.scores == pytest.approx(products[hit.ids], abs=1e-12)


@pytest.mark.parametrize("bytes_at_once", [1, 4 * 500 * 7, 2**26])
def test_blocks_and_batches_do_not_show_in_a_ranking(monkeypatch, bytes_at_once):
    vectors, queries = unit(500), unit(40, seed=1)
    vectors[250:] = vectors[:250]  # ties at every rank
    alone = [find_nearest(vectors, query[None], 30)[0] for query in queries]
    monkeypatch.setattr(exact.BUDGET, "size", bytes_at_once)
    assert find_nearest(vectors, queries, 30) == alone


def test_a_mask_admits_rows_before_they_are_ranked():
    vectors, queries = unit(100), unit(3, seed=1)
    nearest = find_nearest(vectors, queries, 100)
    for mask in (np.arange(100) % 7 == 3, np.arange(100) > 60):  # apart, and side by side
        for masked, ranked in zip(find_nearest(vectors, queries, 5, mask=mask), nearest, strict=True):
            assert masked.ids.tolist() == [row for row in ranked.ids if mask[row]][:5]


def test_a_mask_that_admits_nothing_finds_nothing():
    assert [len(hit) for hit in find_nearest(unit(10), unit(2), 5, mask=np.zeros(10, bool))] == [0, 0]


@pytest.mark.parametrize("bytes_at_once", [4 * 500 * 7, 2**26])
def test_ranking_does_not_depend_on_the_product_backend(monkeypatch, bytes_at_once):
    monkeypatch.setattr(exact.BUDGET, "size", bytes_at_once)
    vectors, queries = unit(500), unit(40, seed=1)
    vectors[250:] = vectors[:250]  # ties at every rank
    assert find_nearest(vectors, queries, 30, device="cpu") == find_nearest(vectors, queries, 30)
    assert find_nearest(vectors, queries, 600, device="cpu") == find_nearest(vectors, queries, 600)
    assert find_nearest(vectors[:0], queries, 5, device="cpu") == find_nearest(vectors[:0], queries, 5)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_nan_vectors_are_rejected(device):
    vectors = unit(50)
    vectors[7] = np.nan
    with pytest.raises(RankingError, match="not a number"):
        find_nearest(vectors, unit(2, seed=1), 5, device=device)


def test_it_ranks_by_the_cosine_of_the_first_dimensions():
    vectors, queries = unit(200, 16, 1), unit(3, 16, 2)
    cosines = [
        [float(v[:5] @ q[:5] / (np.linalg.norm(v[:5]) * np.linalg.norm(q[:5]))) for v in vectors.astype(float)]
        for q in queries.astype(float)
    ]
    for ranked, expected in zip(TruncatedView(vectors, 5).find_nearest(queries, 7), cosines, strict=True):
        assert ranked.ids.tolist() == np.argsort(expected)[::-1][:7].tolist()
        assert ranked.scores == pytest.approx(sorted(expected)[::-1][:7], abs=1e-6)


def test_a_mask_admits_chunks_before_they_are_ranked():
    vectors = unit(50, 8, 3)
    nearest = TruncatedView(vectors, 4).find_nearest(vectors[:1], 3, mask=np.arange(50) > 20)
    assert len(nearest[0]) == 3
    assert nearest[0].ids.min() > 20


def test_a_vector_is_the_same_bits_in_any_batch():
    vectors = unit(70_000, 8, 4)
    complete = truncate(vectors, 3, kind="chunk")
    assert np.array_equal(complete[69_990:], truncate(vectors[69_990:], 3, kind="chunk"))
    assert np.array_equal(complete[:1], truncate(vectors[:1], 3, kind="chunk"))


def test_vector_truncated_to_zero_is_an_error_naming_it():
    vectors = unit(4, 8, 5)
    vectors[2, :3] = 0
    with pytest.raises(TruncationError, match="The first 3 dimensions of the vector of chunk 2 are all zero"):
        truncate(vectors, 3, kind="chunk")
