"""Reduction: vectors in the few dimensions in which mixtures can be estimated."""

from __future__ import annotations

import importlib.util
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Reduction = Literal["pca", "umap"]
REDUCTIONS: tuple[Reduction, ...] = get_args(Reduction)
DIMENSIONS = 10  # as the paper's code has them


def lack_of(reduction: Reduction) -> str:
    """Return why a reduction is not to be had here, without a full stop; "" where it is."""
    if reduction == "umap" and importlib.util.find_spec("umap") is None:
        return "the reduction umap needs the package umap-learn, which is not installed (pip install umap-learn)"
    return ""


def reduce(vectors: NDArray[np.float32], reduction: Reduction, *, neighbours: int, seed: int) -> NDArray[np.float64]:
    """Return `vectors` (n, d) in at most DIMENSIONS dimensions, (n, r).

    "pca": their principal components, which take no chance: O(n·d² + d³). "umap": McInnes et al. (2018), by cosine,
    with that many `neighbours`; n must be above DIMENSIONS + 1.
    """
    if reduction == "umap":
        from umap import UMAP

        neighbours = min(neighbours, len(vectors) - 1)
        # Of one thread, else the seed would not settle it.
        made = UMAP(neighbours, DIMENSIONS, metric="cosine", random_state=seed, n_jobs=1).fit_transform(vectors)
        return np.asarray(made, np.float64)
    return principal_components(vectors, DIMENSIONS)


def principal_components(vectors: NDArray[np.floating], most: int) -> NDArray[np.float64]:
    """Return `vectors` (n, d) along their first principal axes, (n, min(most, n, d)), from the mean; not scaled.

    Each axis points to where its greatest component is positive, so that signs are no matter of chance.
    """
    centred = vectors.astype(np.float64)
    centred -= centred.mean(axis=0)
    if len(centred) < centred.shape[1]:
        axes = np.linalg.svd(centred, full_matrices=False)[2][:most]
    else:
        axes = np.linalg.eigh(centred.T @ centred)[1].T[::-1][:most]
    greatest = axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)]
    components: NDArray[np.float64] = centred @ (axes * np.where(greatest < 0, -1.0, 1.0)[:, None]).T
    return components
