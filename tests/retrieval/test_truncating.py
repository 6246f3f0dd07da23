"""Search by the first dimensions of vectors."""

import numpy as np
import pytest

from apps.retrieval.search.exact import TruncatedView, TruncationError, truncated


def unit(rows: int, dimensions: int, *, seed: int) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(size=(rows, dimensions)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def test_it_ranks_by_the_cosine_of_the_first_dimensions() -> None:
    vectors, queries = unit(200, 16, seed=1), unit(3, 16, seed=2)
    cosines = [
        [float(v[:5] @ q[:5] / (np.linalg.norm(v[:5]) * np.linalg.norm(q[:5]))) for v in vectors.astype(float)]
        for q in queries.astype(float)
    ]
    found = TruncatedView(vectors, 5).nearest(queries, 7)
    for ranked, expected in zip(found, cosines, strict=True):
        assert ranked.ids.tolist() == np.argsort(expected)[::-1][:7].tolist()
        assert ranked.scores == pytest.approx(sorted(expected)[::-1][:7], abs=1e-6)


def test_a_mask_admits_chunks_before_they_are_ranked() -> None:
    vectors = unit(50, 8, seed=3)
    found = TruncatedView(vectors, 4).nearest(vectors[:1], 3, mask=np.arange(50) > 20)
    assert len(found[0]) == 3
    assert found[0].ids.min() > 20


def test_a_vector_is_the_same_bits_in_any_batch() -> None:
    vectors = unit(70_000, 8, seed=4)
    whole = truncated(vectors, 3, what="chunk")
    assert np.array_equal(whole[69_990:], truncated(vectors[69_990:], 3, what="chunk"))
    assert np.array_equal(whole[:1], truncated(vectors[:1], 3, what="chunk"))


def test_a_vector_without_a_direction_is_an_error_that_names_it() -> None:
    vectors = unit(4, 8, seed=5)
    vectors[2, :3] = 0
    with pytest.raises(TruncationError, match="The first 3 dimensions of the vector of chunk 2 are all zero"):
        truncated(vectors, 3, what="chunk")
