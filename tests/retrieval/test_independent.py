"""Rankings of vectors against an independent float64 computation."""

import numpy as np
import pytest

from apps.retrieval.search.exact import find_nearest
from tests.retrieval.arms import Arm
from tests.retrieval.independent import as_stored, find_swaps, read_vectors, score, to_unit_length

DEPTH = 100
SETTINGS = [
    (precision, dimensions) for precision in ("float32", "float16", "int8", "binary") for dimensions in (0, 64, 256)
]


def ids_of(lists):
    return np.array([ranked.ids for ranked in lists])


@pytest.fixture
def coarse():
    """Vectors whose numbers were stored as float16, so that many lie halfway between two steps, each of them twice."""
    drawn = np.random.default_rng(5).standard_normal((1000, 300)).astype(np.float16)
    return to_unit_length(np.repeat(drawn[:900], 2, axis=0)), to_unit_length(drawn[900:])


@pytest.fixture
def scifact(shared_data):
    return read_vectors(shared_data / "scifact" / "minilm.npz")


def check(tmp_path, documents, queries):
    """Search unit vectors, rounded to float32 as an index holds them, exactly and compressed without rescoring."""
    rows, questions = documents.astype(np.float32), queries.astype(np.float32)
    exact = ids_of(find_nearest(rows, questions, DEPTH))
    assert list(find_swaps(exact, score(as_stored(documents), as_stored(queries)))) == []
    yield exact
    for precision, dimensions in SETTINGS:
        options = f"precision={precision}, rescore=0" + (f", dimensions={dimensions}" if dimensions else "")
        result = ids_of(Arm(tmp_path, f"compressed({options})", rows).search(questions, DEPTH))
        scores = score(as_stored(documents), as_stored(queries), precision=precision, dimensions=dimensions)
        assert list(find_swaps(result, scores)) == [], options
        yield result


def test_coarse_vectors_rank_as_computed_independently(tmp_path, coarse):
    for rankings in check(tmp_path, *coarse):
        assert (rankings[:, ::2] + 1 == rankings[:, 1::2]).all()  # twins are together, by position


@pytest.mark.thorough
def test_scifact_ranks_as_computed_independently(tmp_path, scifact):
    assert len(list(check(tmp_path, scifact.document_vectors, scifact.query_vectors))) == 1 + len(SETTINGS)


@pytest.mark.thorough
def test_rounding_to_float32_swaps_only_near_ties(scifact):
    """The vectors of the file, not rounded to float32, order two documents of one query otherwise."""
    result = ids_of(
        find_nearest(scifact.document_vectors.astype(np.float32), scifact.query_vectors.astype(np.float32), DEPTH)
    )
    swaps = dict(find_swaps(result, score(scifact.document_vectors, scifact.query_vectors, precision="float64")))
    assert {scifact.queries[number] for number in swaps} == {"1368"}
    assert max(swaps.values()) < 2e-9


def test_the_check_finds_wrong_rankings():
    scores = np.array([[0.3, 0.2, 0.2, 0.1]])
    assert list(find_swaps(np.array([[0, 1, 2]]), scores)) == []
    assert list(find_swaps(np.array([[0, 3]]), scores)) == [(0, pytest.approx(0.1))]
    assert list(find_swaps(np.array([[1, 0]]), scores)) == [(0, pytest.approx(0.1))]
