"""Search of compressed vectors against plain NumPy: every precision, fewer dimensions, ties, filters and blocks."""

import numpy as np
import pytest

from benchbench.ir import compression
from benchbench.ir.compression import Form, TruncationError

PRECISIONS = ("float32", "float16", "int8", "binary")


def make_units(count, dimension, seed):
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


VECTORS = np.repeat(make_units(400, 70, 0), 2, axis=0)  # each twice, so that all scores tie
QUERIES = make_units(20, 70, 1)


def score_plainly(precision, dimensions, query):
    """The scores of all vectors, as the documentation defines them."""
    cut = slice(dimensions or None)
    rows, query = VECTORS[:, cut].astype(np.float64), query[cut].astype(np.float64)
    if dimensions:
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        query /= np.linalg.norm(query)
    match precision:
        case "binary":
            return 1 - 2 * ((rows > 0) != (query > 0)).sum(axis=1) / rows.shape[1]
        case "float32" | "float16":
            rows = rows.astype(precision).astype(np.float64)
        case "int8":
            steps = np.abs(rows).max(axis=0) / 127
            rows = np.rint(rows / steps) * steps
    return rows @ query


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("dimensions", [0, 33])
@pytest.mark.parametrize("is_filtered", [False, True])
def test_scan_finds_what_plain_numpy_finds(monkeypatch, precision, dimensions, is_filtered):
    form = Form.learn(VECTORS, precision, dimensions)
    codes = np.concatenate(list(form.encode(VECTORS)))
    assert (codes.dtype, codes.shape[1]) == form.layout
    mask = np.arange(len(VECTORS)) % 3 > 0 if is_filtered else None
    for query in QUERIES:
        plain = score_plainly(precision, dimensions, query)
        prepared = form.prepare(query)
        hits = []
        for block_bytes in (2**20, 999):  # of all rows, and of a few
            monkeypatch.setattr(compression, "BLOCK_BYTES", block_bytes)
            hits.append(form.find_best(codes, prepared, 51, mask))
        assert hits[0].tolist() == hits[1].tolist()
        assert form.score(codes[hits[0]], prepared) == pytest.approx(plain[hits[0]], abs=1e-14)
        admitted = np.arange(len(VECTORS)) if mask is None else np.flatnonzero(mask)
        expected = sorted(admitted.tolist(), key=lambda position: (-round(plain[position], 13), position))[:51]
        assert hits[0].tolist() == expected


def test_scores_do_not_depend_on_the_batch():
    for precision in PRECISIONS:
        form = Form.learn(VECTORS, precision, 0)
        codes = np.concatenate(list(form.encode(VECTORS)))
        prepared = form.prepare(QUERIES[0])
        alone = [form.score(codes[[index]], prepared)[0] for index in range(100)]
        assert form.score(codes[:100], prepared).tolist() == alone


def test_codes_have_the_stated_sizes():
    sizes = [next(Form.learn(VECTORS, name, 64).encode(VECTORS)).nbytes / len(VECTORS) for name in PRECISIONS]
    assert sizes == [256, 128, 64, 8]


def test_a_dimension_of_zeros_is_kept():
    vectors = np.array([[1, 0], [-1, 0]], np.float32)
    form = Form.learn(vectors, "int8", 0)
    assert next(form.encode(vectors)).tolist() == [[127, 0], [-127, 0]]


def test_zero_vector_is_named_by_its_position(monkeypatch):
    monkeypatch.setattr(compression, "ROWS_AT_ONCE", 2)
    vectors = np.array([[1, 0], [1, 0], [1, 0], [0, 1]], np.float32)
    with pytest.raises(TruncationError, match="The first 1 dimensions of the vector of chunk 3 are all zero"):
        Form.learn(vectors, "int8", 1)
