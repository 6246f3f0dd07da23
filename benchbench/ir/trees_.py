"""Clustering: which texts of a layer are summarised together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchbench.errors import BenchbenchError
from benchbench.ir.trees.mixtures import mixture_members
from benchbench.ir.trees.reducing import DIMENSIONS, Reduction, principal_components, reduce

Members = NDArray[np.int64]

LOCAL_NEIGHBOURS = 10  # of UMAP, as the paper's code has them


class TreeError(BenchbenchError):
    """Texts that no tree can be made of."""

    code = "tree"


def clusters(
    vectors: NDArray[np.float32],
    lengths: NDArray[np.int64],
    *,
    most: int,
    threshold: float,
    seed: int,
    reduction: Reduction = "pca",
) -> list[Members]:
    """Return the clusters of a layer of texts by their `vectors` (n, d): rows, ascending. None if it would not shrink.

    As RAPTOR has it (Sarthi et al., 2024): a mixture over all (global), then one over each of its components (local),
    each in few dimensions. Each row is in a cluster, and may be in several (`mixture_members`). A cluster whose
    `lengths` (n,) come to more than `most` is parted along its first principal axis until each part has room. Clusters
    of the same rows are one. They are ordered by their rows, and the same for one seed whatever the number of threads:
    products are made by one. Raises TreeError for a text that is longer than `most`.
    """
    from threadpoolctl import threadpool_limits

    if len(lengths) and lengths.max() > most:
        raise TreeError(
            f"A text has {lengths.max():,} characters, and a summary is made of at most {most:,}: cut chunks shorter, "
            "or state a greater context."
        )
    with threadpool_limits(1):
        members = {
            tuple(part.tolist())
            for cluster in _global_then_local(vectors, threshold, seed, reduction)
            for part in parted(vectors, lengths, cluster, most)
        }
    return [np.array(rows, np.int64) for rows in sorted(members)] if len(members) < len(vectors) else []


def _global_then_local(
    vectors: NDArray[np.float32], threshold: float, seed: int, reduction: Reduction
) -> Iterator[Members]:
    everything = np.arange(len(vectors))
    for component in _mixture(vectors, everything, int(len(vectors) ** 0.5), threshold, seed, reduction):
        yield from _mixture(vectors, component, LOCAL_NEIGHBOURS, threshold, seed, reduction)


def _mixture(
    vectors: NDArray[np.float32], rows: Members, neighbours: int, threshold: float, seed: int, reduction: Reduction
) -> list[Members]:
    """The components of some rows; all of them where there are too few for a mixture."""
    if len(rows) <= DIMENSIONS + 1:
        return [rows]
    points = reduce(vectors[rows], reduction, neighbours=neighbours, seed=seed)
    return [rows[chosen] for chosen in mixture_members(points, threshold=threshold, seed=seed)]


def parted(vectors: NDArray[np.float32], lengths: NDArray[np.int64], rows: Members, most: int) -> Iterator[Members]:
    """Part rows in two of about equal length, again and again, until each part is at most `most` long."""
    if lengths[rows].sum() <= most:
        yield rows
        return
    along = principal_components(vectors[rows], 1)[:, 0]
    order = rows[np.lexsort((rows, along))]
    sums = np.cumsum(lengths[order])
    middle = int(np.clip(np.searchsorted(sums, sums[-1] / 2, side="right"), 1, len(order) - 1))
    for part in (order[:middle], order[middle:]):
        yield from parted(vectors, lengths, np.sort(part), most)
