"""Compressed vectors: fewer dimensions, at a lower precision, searched block by block."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchbench.errors import BenchbenchError
from benchbench.ir.ranking import RESCORE_BAND, score_pairs, top
from benchbench.ir.records import Mask, Positions, Scores, Vectors

ROWS_AT_ONCE = 2**14
Kind = Literal["chunk", "query"]
Values = NDArray[np.float64]


class TruncationError(BenchbenchError):
    """A vector is zero in all compared dimensions."""

    code = "truncation"


class QueryTruncationError(TruncationError):
    """A query's vector is zero in all compared dimensions. Others of its batch may be valid."""


def truncate(vectors: Vectors, dimensions: int, *, kind: Kind) -> Vectors:
    """Return the first `dimensions` of each vector (n, d), scaled to length 1 and rounded to float32: (n, dimensions).

    Lengths are computed from float64 squares, row by row, so that the bits do not depend on the batch. Raises
    TruncationError.
    """
    unit_vectors = np.empty((len(vectors), dimensions), np.float32)
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        unit_vectors[rows] = _scale(vectors[rows], dimensions, kind=kind, first=start)
    return unit_vectors


def _scale(vectors: Vectors, dimensions: int, *, kind: Kind, first: int = 0) -> Values:
    """Return the same in float64. `first` is the position of the first vector."""
    rows = vectors[:, :dimensions].astype(np.float64, order="C")
    lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    if not lengths.all():
        row = first + int(np.argmin(lengths))
        error, owner = (QueryTruncationError, "the query") if kind == "query" else (TruncationError, f"chunk {row}")
        raise error(
            f"The first {dimensions} dimensions of the vector of {owner} are all zero: compare more dimensions."
        )
    return np.asarray(rows / lengths[:, None])


Codes = NDArray[Any]
BLOCK_BYTES = 2**20  # of the decoded rows of a block, which then stay in the cache: others took 2 to 8 times as long


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A form of vectors of some length: their first `dimensions`, scaled to length 1 if fewer, at a `precision`.

    Each number is rounded once, from float64. int8 counts steps, 127 of which are the greatest absolute value of the
    dimension: `steps`, (d,) for every vector length d, is 1 for other precisions. binary has one bit for each
    dimension, set if the number is positive, in 64-bit words.
    """

    precision: str
    dimensions: int
    steps: Values

    @classmethod
    def learn(cls, vectors: Vectors, precision: str, dimensions: int) -> "Form":
        """Return the form for `vectors` (n, d), n > 0; 0 dimensions mean all. Raises TruncationError."""
        form = cls(precision, dimensions, np.ones(vectors.shape[1]))
        if precision == "int8":
            greatest = np.zeros(form.width)
            for block in form._cut(vectors):
                np.maximum(greatest, np.abs(block).max(axis=0), out=greatest)
            form.steps[: form.width] = np.where(greatest > 0, greatest, 1) / 127
        return form

    @property
    def width(self) -> int:
        """Return the number of compared dimensions."""
        return self.dimensions or len(self.steps)

    @property
    def layout(self) -> tuple[np.dtype[Any], int]:
        """Return the type of a code and the number of them for a vector."""
        if self.precision == "binary":
            return np.dtype(np.uint64), -(-self.width // 64)
        return np.dtype(self.precision), self.width

    def encode(self, vectors: Vectors) -> Iterator[Codes]:
        """Yield the codes of successive blocks of `vectors` (n, d). Raises TruncationError."""
        for block in self._cut(vectors):
            match self.precision:
                case "binary":
                    yield _pack_signs(block)
                case "int8":
                    yield np.rint(block / self.steps[: self.width]).clip(-127, 127).astype(np.int8)
                case _:
                    yield block.astype(self.layout[0])

    def prepare(self, query: Vectors) -> Codes:
        """Return what is compared with codes: the query (d,) in steps, not rounded from float64; or its signs."""
        compared = _scale(query[None], self.dimensions, kind="query") if self.dimensions else query[None]
        prepared: Codes = _pack_signs(compared) if self.precision == "binary" else compared * self.steps[: self.width]
        return prepared.ravel()

    def score(self, codes: Codes, prepared: Codes) -> Scores:
        """Return the scores (m,) of `codes`: inner products in float64, or 1 - 2 h / d with h differing signs of d.

        The bits of a score are the same alone or in any batch.
        """
        if self.precision == "binary":
            return 1 - _count_differing(codes, prepared) * 2 / self.width
        return score_pairs(codes.astype(np.float32), prepared)

    def find_best(self, codes: Codes, prepared: Codes, depth: int, mask: Mask | None) -> Positions:
        """Return the positions of the best `depth` of `codes` among those that `mask` (n,) admits, best first.

        The order is by score, then position, and does not depend on the blocks. Uses some BLOCK_BYTES of memory.
        """
        admitted = None if mask is None else np.flatnonzero(mask)
        count = len(codes) if admitted is None else len(admitted)
        best, scores, floor = np.empty(0, np.int64), np.empty(0), -np.inf
        dtype, numbers = self.layout
        rows = max(1, BLOCK_BYTES // (max(4, dtype.itemsize) * numbers))
        single = prepared.astype(np.float32)  # for a product that nominates; float64 takes twice as long
        for start in range(0, count, rows):
            span = slice(start, min(start + rows, count))
            positions = np.arange(span.start, span.stop) if admitted is None else admitted[span]
            block = codes[span] if admitted is None else codes[positions]
            is_binary = self.precision == "binary"
            similarities = self.score(block, prepared) if is_binary else block.astype(np.float32) @ single
            chosen = np.flatnonzero(~(similarities < floor - RESCORE_BAND))  # NaN passes, so that `top` detects it
            if len(chosen):
                best = np.concatenate([best, positions[chosen]])
                scores = np.concatenate([scores, self.score(block[chosen], prepared)])
                first = np.sort(top(scores, depth).ids)
                best, scores = best[first], scores[first]
                floor = scores.min() if len(scores) == depth else -np.inf
        return top(scores, depth, ids=best).ids

    def _cut(self, vectors: Vectors) -> Iterator[NDArray[Any]]:
        for start in range(0, len(vectors), ROWS_AT_ONCE):
            block = vectors[start : start + ROWS_AT_ONCE]
            yield _scale(block, self.dimensions, kind="chunk", first=start) if self.dimensions else block


def _pack_signs(vectors: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a bit for each number (n, d), 1 if it is positive, in 64-bit words: (n, d / 64 rounded up)."""
    padded = np.zeros((len(vectors), -(-vectors.shape[1] // 64) * 64), np.bool_)
    padded[:, : vectors.shape[1]] = vectors > 0
    return np.packbits(padded, axis=1).view(np.uint64)


def _count_differing(codes: NDArray[np.uint64], query: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of bits of each of `codes` (m, w) that differ from those of `query` (w,)."""
    counts: NDArray[np.int64] = np.bitwise_count(codes ^ query).sum(axis=1, dtype=np.int64)
    return counts
