"""Trees of summaries, as in RAPTOR (Sarthi et al., 2024): vectors are reduced, clustered by layer, and searched.

Mixtures are estimated in a few dimensions. A search returns leaves alone: a summary represents the leaves below it.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from benchbench.errors import BenchbenchError
from benchbench.ir.records import Mask, Positions, ScoredList

Reduction = Literal["pca", "umap"]
REDUCTIONS: tuple[Reduction, ...] = get_args(Reduction)
DIMENSIONS = 10  # as in the paper's code


def explain_missing(reduction: Reduction) -> str:
    """Return why a reduction is unavailable, without a full stop; "" if it is available."""
    if reduction == "umap" and importlib.util.find_spec("umap") is None:
        return "the reduction umap needs the package umap-learn, which is not installed (pip install umap-learn)"
    return ""


def reduce(vectors: NDArray[np.float32], reduction: Reduction, *, neighbours: int, seed: int) -> NDArray[np.float64]:
    """Return `vectors` (n, d) in at most DIMENSIONS dimensions, (n, r).

    "pca": their principal components, which are deterministic: O(n·d² + d³). "umap": McInnes et al. (2018), by cosine,
    with that many `neighbours`; n must be above DIMENSIONS + 1.
    """
    if reduction == "umap":
        from umap import UMAP

        neighbours = min(neighbours, len(vectors) - 1)
        # With one thread; with more, the seed would not determine the result.
        points = UMAP(neighbours, DIMENSIONS, metric="cosine", random_state=seed, n_jobs=1).fit_transform(vectors)
        return np.asarray(points, np.float64)
    return principal_components(vectors, DIMENSIONS)


def principal_components(vectors: NDArray[np.floating], limit: int) -> NDArray[np.float64]:
    """Return `vectors` (n, d) along their first principal axes, (n, min(limit, n, d)), from the mean; not scaled.

    Each axis is oriented so that its greatest component is positive, which makes the signs deterministic.
    """
    centred = vectors.astype(np.float64)
    centred -= centred.mean(axis=0)
    if len(centred) < centred.shape[1]:
        axes = np.linalg.svd(centred, full_matrices=False)[2][:limit]
    else:
        axes = np.linalg.eigh(centred.T @ centred)[1].T[::-1][:limit]
    greatest = axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)]
    return np.asarray(centred @ (axes * np.where(greatest < 0, -1.0, 1.0)[:, None]).T, np.float64)


MAX_COMPONENTS = 50  # as in the paper's code
PATIENCE = 5  # consecutive counts without improvement, after which the search stops
FLOOR = 0.1  # of the mean variance, added to each variance


def fit_mixture(points: NDArray[np.float64], *, threshold: float, seed: int) -> list[NDArray[np.int64]]:
    """Return the rows of `points` (n, r) that belong to each component of their mixture, ascending.

    A row belongs to each component whose posterior probability reaches `threshold`, and to its most probable one. The
    number of components, from 1 to MAX_COMPONENTS and at most half the number of rows, is that of least BIC (Schwarz,
    1978). The search ends after PATIENCE counts without improvement.

    Covariances are diagonal: 2r + 1 numbers per component, while full ones have r(r + 3)/2 + 1. FLOOR times the mean
    variance is added to each variance; else components shrink onto single rows with unbounded likelihood. One fit takes
    O(n·k·r) time and O(n·k) memory.
    """
    if len(points) < 2 or not points.var(axis=0).any():
        return [np.arange(len(points))] if len(points) else []
    probable: NDArray[np.float64] = _fit_likeliest(points, seed).predict_proba(points)
    belongs = probable >= threshold
    belongs[np.arange(len(points)), probable.argmax(axis=1)] = True
    return [np.flatnonzero(column) for column in belongs.T if column.any()]


def _fit_likeliest(points: NDArray[np.float64], seed: int) -> Any:
    """Return the mixture of least BIC; of equal ones that of fewest components."""
    floor = FLOOR * float(points.var(axis=0).mean())
    best, best_bic, since = None, np.inf, 0
    for count in range(1, min(MAX_COMPONENTS, len(points) // 2) + 1):
        mixture = _fit(points, count, floor, seed)
        if (bic := float(mixture.bic(points))) < best_bic:
            best, best_bic, since = mixture, bic, 0
        elif (since := since + 1) == PATIENCE:
            break
    return best


def _fit(points: NDArray[np.float64], count: int, floor: float, seed: int) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fit that did not converge has a BIC too
        return GaussianMixture(count, covariance_type="diag", reg_covar=floor, random_state=seed).fit(points)


Members = NDArray[np.int64]

LOCAL_NEIGHBOURS = 10  # of UMAP, as in the paper's code


class TreeError(BenchbenchError):
    """No tree can be made of the texts."""

    code = "tree"


def find_clusters(
    vectors: NDArray[np.float32],
    lengths: NDArray[np.int64],
    *,
    limit: int,
    threshold: float,
    seed: int,
    reduction: Reduction = "pca",
) -> list[Members]:
    """Return the clusters of a layer of texts by their `vectors` (n, d): rows, ascending; [] if it would not shrink.

    As in RAPTOR (Sarthi et al., 2024): a mixture over all rows (global), then one over each of its components (local),
    each in few dimensions. Each row is in one or more clusters (`fit_mixture`). A cluster whose `lengths` (n,)
    exceed `limit` in sum is split along its first principal axis until each part fits. Duplicate clusters are merged.
    Clusters are ordered by their rows. One seed gives one result on any number of cores, because matrix products use
    one thread. Raises TreeError for a text that is longer than `limit`.
    """
    from threadpoolctl import threadpool_limits

    if len(lengths) and lengths.max() > limit:
        raise TreeError(
            f"A text has {lengths.max():,} characters, but a summary takes at most {limit:,}: use "
            "shorter chunks or a greater context."
        )

    def split_mixture(rows: Members, neighbours: int) -> list[Members]:
        """Return the components of some rows; one with all rows if they are too few for a mixture."""
        if len(rows) <= DIMENSIONS + 1:
            return [rows]
        points = reduce(vectors[rows], reduction, neighbours=neighbours, seed=seed)
        return [rows[chosen] for chosen in fit_mixture(points, threshold=threshold, seed=seed)]

    with threadpool_limits(1):
        members = {
            tuple(piece.tolist())
            for component in split_mixture(np.arange(len(vectors)), int(len(vectors) ** 0.5))
            for cluster in split_mixture(component, LOCAL_NEIGHBOURS)
            for piece in split_rows(vectors, lengths, cluster, limit)
        }
    return [np.array(rows, np.int64) for rows in sorted(members)] if len(members) < len(vectors) else []


def split_rows(
    vectors: NDArray[np.float32], lengths: NDArray[np.int64], rows: Members, limit: int
) -> Iterator[Members]:
    """Split rows recursively into halves of about equal length, until each part is at most `limit` long."""
    if lengths[rows].sum() <= limit:
        yield rows
        return
    order = rows[np.lexsort((rows, principal_components(vectors[rows], 1)[:, 0]))]
    sums = np.cumsum(lengths[order])
    middle = int(np.clip(np.searchsorted(sums, sums[-1] / 2, side="right"), 1, len(order) - 1))
    for half in (order[:middle], order[middle:]):
        yield from split_rows(vectors, lengths, np.sort(half), limit)


Near = Callable[
    [int, Mask | None], ScoredList
]  # the nearest positions to a query: so many, of those that a mask admits


class Tree(Protocol):
    """A tree: the level of each position (n,), leaves at 0. Nodes of a level have children on the level below."""

    @property
    def levels(self) -> NDArray[np.int16]: ...

    def find_children(self, positions: Positions) -> Positions:
        """Return the positions that are children of any of `positions`, ascending."""


def list_leaves(tree: Tree, position: int) -> Positions:
    """Return the leaves below a position, ascending; a leaf returns itself."""
    below = np.array([position], np.int64)
    for _ in range(int(tree.levels[position])):
        below = tree.find_children(below)
    return below


def search_collapsed(tree: Tree, nodes: ScoredList, near: Near, mask: Mask | None, depth: int) -> ScoredList:
    """Return the best `depth` leaves of a search through all levels as one list (RAPTOR's collapsed tree).

    `nodes` are the nearest `depth` positions that `mask` (n,) admits; `near` gives more if these have too few leaves.
    Each node, best first, adds the admitted leaves below it that no better node added, in the order of their own
    similarity. A leaf's score is that of its node, so scores fall. A shorter list is the beginning of a longer one.
    """
    requested = depth
    while True:
        ranked = _expand_nodes(tree, nodes, near, mask, depth)
        if len(ranked) == depth or len(nodes) < requested:
            return ranked
        requested *= 2
        nodes = near(requested, mask)


def _expand_nodes(tree: Tree, nodes: ScoredList, near: Near, mask: Mask | None, depth: int) -> ScoredList:
    admitted = np.ones(len(tree.levels), bool) if mask is None else mask.copy()
    ids: list[int] = []
    scores: list[float] = []
    for node, score in zip(nodes.ids.tolist(), nodes.scores.tolist(), strict=True):
        if len(ids) == depth:
            break
        if tree.levels[node]:
            within = np.zeros(len(admitted), bool)
            within[list_leaves(tree, node)] = True
            leaves = near(depth - len(ids), within & admitted).ids.tolist()
        else:
            leaves = [node] if admitted[node] else []
        admitted[leaves] = False
        ids += leaves
        scores += [score] * len(leaves)
    return ScoredList(np.array(ids, np.int64), np.array(scores, np.float64))


def traverse_tree(tree: Tree, near: Near, mask: Mask | None, depth: int, *, layer_top_k: int) -> ScoredList:
    """Return the best `depth` leaves below the nearest summaries (RAPTOR's tree traversal).

    From the uppermost level down, each step keeps the nearest `layer_top_k` summaries among the children of those kept
    before that `mask` (n,) admits. Leaves are ranked by their own similarity.
    """
    level = int(tree.levels.max(initial=0))
    within = tree.levels == level if mask is None else (tree.levels == level) & mask
    for _ in range(level):
        below = np.zeros(len(tree.levels), bool)
        below[tree.find_children(near(layer_top_k, within).ids)] = True
        within = below if mask is None else below & mask
    return near(depth, within)
