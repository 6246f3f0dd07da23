"""Searching a tree of summaries. What is found are always leaves: a summary stands for those below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.records import Positions, ScoredList

Mask = NDArray[np.bool_]
Near = Callable[
    [int, Mask | None], ScoredList
]  # the nearest positions to a query: so many, of those that a mask admits


class Tree(Protocol):
    """The level of each position (n,), leaves at 0; what lies on a level has children on the level below."""

    @property
    def levels(self) -> NDArray[np.int16]: ...

    def children_of(self, positions: Positions) -> Positions:
        """The positions that are children of any of `positions`, ascending."""


def leaves_below(tree: Tree, position: int) -> Positions:
    """Return the leaves below a position, ascending; itself where it is one."""
    below = np.array([position], np.int64)
    for _ in range(int(tree.levels[position])):
        below = tree.children_of(below)
    return below


def collapsed(tree: Tree, nodes: ScoredList, near: Near, mask: Mask | None, depth: int) -> ScoredList:
    """Return the best `depth` leaves of a search through all levels as one list (RAPTOR's collapsed tree).

    `nodes` are the nearest `depth` positions that `mask` (n,) admits; more are asked of `near` where these stand for
    too few leaves. Each of them, best first, brings the admitted leaves below it that no better one brought, in the
    order of their own similarity. A leaf's score is that of what brought it, so that scores fall. A shorter list is the
    beginning of a longer one.
    """
    asked = depth
    while True:
        ranked = _expanded(tree, nodes, near, mask, depth)
        if len(ranked) == depth or len(nodes) < asked:
            return ranked
        asked *= 2
        nodes = near(asked, mask)


def _expanded(tree: Tree, nodes: ScoredList, near: Near, mask: Mask | None, depth: int) -> ScoredList:
    wanted = np.ones(len(tree.levels), bool) if mask is None else mask.copy()
    ids: list[int] = []
    scores: list[float] = []
    for node, score in zip(nodes.ids.tolist(), nodes.scores.tolist(), strict=True):
        if len(ids) == depth:
            break
        if tree.levels[node]:
            within = np.zeros(len(wanted), bool)
            within[leaves_below(tree, node)] = True
            brought = near(depth - len(ids), within & wanted).ids.tolist()
        else:
            brought = [node] if wanted[node] else []
        wanted[brought] = False
        ids += brought
        scores += [score] * len(brought)
    return ScoredList(np.array(ids, np.int64), np.array(scores, np.float64))


def layer_by_layer(tree: Tree, near: Near, mask: Mask | None, depth: int, *, layer_top_k: int) -> ScoredList:
    """Return the best `depth` leaves below the nearest summaries (RAPTOR's tree traversal).

    From the uppermost level down, the nearest `layer_top_k` summaries are gone on with, of those below what was gone on
    with before, and `mask` (n,) admits. Leaves have their own similarity.
    """
    level = int(tree.levels.max(initial=0))
    within = tree.levels == level if mask is None else (tree.levels == level) & mask
    for _ in range(level):
        below = np.zeros(len(tree.levels), bool)
        below[tree.children_of(near(layer_top_k, within).ids)] = True
        within = below if mask is None else below & mask
    return near(depth, within)
