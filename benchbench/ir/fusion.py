"""Fusion of several rankings into one: by reciprocal ranks, or by weighted scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchbench.ir.ranking import top
from benchbench.ir.records import ScoredList, Scores


def rrf(lists: Sequence[ScoredList], *, k: int, depth: int) -> ScoredList:
    """Reciprocal rank fusion (Cormack, Clarke, Büttcher 2009): the sum over the lists of 1 / (k + rank), rank from 1.

    Only the first `depth` entries of each list take part; their union is returned, the caller cuts it. Scores are
    divided by the possible maximum, first place in every list, and so lie in (0, 1] whatever k.
    """
    heads = [ranked.head(depth) for ranked in lists]
    shares = [1.0 / (k + np.arange(1, len(head) + 1)) for head in heads]
    return _fuse(heads, shares, maximum=len(lists) / (k + 1))


def weighted(lists: Sequence[ScoredList], *, weights: Sequence[float], depth: int) -> ScoredList:
    """The weighted sum of scores, each list's min-max normalised over its first `depth` entries.

    A chunk missing from a list gets 0 from it, and so does the list's last entry; where all scores of a list are equal,
    or there is but one, each becomes 1. `weights`, one a list, are not negative and not all 0; they are scaled to sum
    to 1, so scores lie in [0, 1]. Returns the union of the heads.
    """
    heads = [ranked.head(depth) for ranked in lists]
    shares = [weight * _min_max(head.scores) for weight, head in zip(weights, heads, strict=True)]
    return _fuse(heads, shares, maximum=sum(weights))


def _min_max(scores: Scores) -> Scores:
    if not len(scores):
        return scores
    least, greatest = scores.min(), scores.max()
    return np.ones_like(scores) if least == greatest else np.divide(scores - least, greatest - least)


def _fuse(heads: Sequence[ScoredList], shares: Sequence[Scores], *, maximum: float) -> ScoredList:
    """Adds up each chunk's shares, in the order of the lists (float addition is not associative), ties by position."""
    if not heads:
        return ScoredList.empty()
    ids, slots = np.unique(np.concatenate([head.ids for head in heads]), return_inverse=True)
    sums = np.bincount(slots, weights=np.concatenate(shares), minlength=len(ids))  # adds in the order given
    return top(np.minimum(sums / maximum, 1.0), len(ids), ids=ids)
