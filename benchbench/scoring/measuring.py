"""The values of measures for rankings that came in a file."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchbench.ir.measures import Measure, Truths, Values, evaluate
from benchbench.ir.profiles import PLAIN, Profile

BLOCK_CELLS = 4_000_000  # of a padded matrix, 32 MB: one long ranking does not widen the rows of all queries

Truth = Mapping[str, Mapping[Any, int]]  # by ids of documents as the rankings have them: text, or bytes
Rankings = Mapping[str, Sequence[Hashable]]


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Measures of every judged query: `values` is (m, q), in the order of `queries`, and `means` is (m,)."""

    measures: tuple[Measure, ...]
    queries: tuple[str, ...]
    values: Values
    means: Values


def score(truth: Truth, rankings: Rankings, measures: Sequence[Measure], *, profile: Profile = PLAIN) -> Scores:
    """Measure the rankings (query → documents, best first) by the truth (query → document → grade).

    As trec_eval does with -c: each query of the truth counts, one that has no ranking as 0, and rankings of other
    queries are left out. The profile says how values become means.
    """
    queries = tuple(truth)
    ranked = [rankings.get(query, ()) for query in queries]
    truths = [truth[query] for query in queries]
    blocks = [evaluate(measures, Truths.of(truths[block]).grade(ranked[block])) for block in _blocks(ranked, truths)]
    values = np.concatenate(blocks, axis=1) if blocks else np.empty((len(measures), 0))
    n_judgments = [len(judged) for judged in truths]
    return Scores(tuple(measures), queries, values, np.array([profile.mean.of(row, n_judgments) for row in values]))


def _blocks(rankings: Sequence[Sequence[Hashable]], truths: Sequence[Mapping[Any, int]]) -> Iterator[slice]:
    """Consecutive queries whose matrix, as wide as the longest ranking or truth among them, is of bounded size."""
    start = width = 0
    for at, (ranking, judged) in enumerate(zip(rankings, truths, strict=True)):
        width = max(width, len(ranking), len(judged))
        if at > start and (at + 1 - start) * width > BLOCK_CELLS:
            yield slice(start, at)
            start, width = at, max(len(ranking), len(judged))
    if start < len(rankings):
        yield slice(start, len(rankings))
