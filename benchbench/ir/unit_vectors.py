"""Checks of vectors: finite, of length 1, as many as expected, of one dimension."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 0.005  # bfloat16, the coarsest that models compute in, makes of a length of 1 at most 1.002


def shape_flaw(vectors: NDArray[Any], count: int, dimension: int) -> str:
    """Return what is wrong with the shape of `count` vectors of `dimension`, such as "(3, 8), not (3, 4)"; or ""."""
    shape = np.shape(vectors)
    return "" if shape == (count, dimension) else f"{shape}, not {(count, dimension)}"


def flaws(vectors: NDArray[np.floating[Any]], *, unit: bool = True) -> dict[int, str]:
    """Return what is wrong with each of `vectors` (n, d) that is not sound, by its row: "not finite", "zero", and where
    they are to be of length 1, "of length 0.5 instead of 1"."""
    wide = vectors.astype(np.float32) if vectors.dtype.itemsize < 4 else vectors
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(wide, axis=1)
    wrong = ~np.isfinite(lengths) | (lengths == 0)
    if unit:
        wrong |= ~(np.abs(lengths - 1) <= TOLERANCE)
    return {int(row): _flaw(float(lengths[row])) for row in np.flatnonzero(wrong)}


def _flaw(length: float) -> str:
    if not np.isfinite(length):
        return "not finite"
    return f"of length {length:.4g} instead of 1" if length else "zero"
