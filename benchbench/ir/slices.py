"""Slices of a query set, and facts that a mean over all queries hides: weak slices, reversals, label shape."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.demand import compute_deviation, scale_weights, weigh
from benchbench.ir.measures import Values
from benchbench.texts.words import count_words

MINIMUM = 10
ALPHA = 0.05
NONE = "(none)"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFacts:
    """Properties of a query by which it can be sliced. Blank means unknown."""

    text: str
    n_relevant: int
    slices: Sequence[str] = ()
    category: str = ""
    difficulty: str = ""
    query_type: str = ""
    split: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """The queries of one kind. `name` is unique among the slices of a query set: `category: billing`."""

    partition: str
    label: str
    members: NDArray[np.bool_] = field(repr=False)  # (q,): which queries belong to it
    is_small: bool  # fewer queries than the minimum: shown, but nothing is concluded from it

    @property
    def name(self) -> str:
        return f"{self.partition}: {self.label}"

    @property
    def n(self) -> int:
        return int(self.members.sum())

    def restrict(self, queries: NDArray[np.bool_]) -> Slice:
        """Return its part among `queries` (q,), such as those with a value; marked as small below 10 queries."""
        members = self.members & queries
        return replace(self, members=members, is_small=self.is_small or int(members.sum()) < MINIMUM)


def cut_slices(queries: Sequence[QueryFacts], *, minimum: int = MINIMUM) -> list[Slice]:
    """Return the slices of a query set, partition by partition; `slices` alone may overlap.

    By metadata: slice, category, difficulty, query type, split, version; queries that do not state what others do are
    `(none)`. Computed: the length of the text in words, in thirds of the set (a third ends where the length changes,
    so equal lengths stay together), and the number of relevant documents: 0, 1, 2-4, 5+. What does not divide the set,
    because all queries are alike in it, is left out.
    """
    labels: dict[str, list[Sequence[str]]] = {
        "slice": [query.slices or [NONE] for query in queries],
        **{
            name.replace("_", " "): [[getattr(query, name) or NONE] for query in queries]
            for name in ("category", "difficulty", "query_type", "split", "version")
        },
        "query length": [[label] for label in _name_bands([query.text for query in queries])],
        "relevant documents": [
            [str(n) if n < 2 else "2-4" if n < 5 else "5+"] for n in (query.n_relevant for query in queries)
        ],
    }
    return [slice_ for partition, of_queries in labels.items() for slice_ in _divide(partition, of_queries, minimum)]


@dataclass(frozen=True, slots=True)
class WeakSlice:
    """An area to improve: the mean over a slice, that over the other queries, and how unlikely so wide a gap is."""

    slice: Slice
    mean: float
    other_mean: float
    p: float


def find_weak_slices(values: Values, slices: Sequence[Slice], weights: Values | None = None) -> list[WeakSlice]:
    """Return the slices whose mean is significantly below that of all other queries, the widest gap first.

    `values` (q,) are one run's values of one measure, NaN for a query without a value. A slice is compared with the
    queries outside it by Welch's one-sided t-test. p is multiplied by the number of compared slices (Bonferroni); a
    slice is weak if p < ALPHA. Slices are reduced to queries with a value. Slices that are small then, or have fewer
    than 2 such queries outside, are not compared. With `weights` (q,) the means are weighted.
    """
    present = ~np.isnan(values)
    valued = [slice_.restrict(present) for slice_ in slices]
    tested = [slice_ for slice_ in valued if not slice_.is_small and np.count_nonzero(present & ~slice_.members) > 1]
    weak = []
    for slice_ in tested:
        sides = [_Side.from_values(values, mask, weights) for mask in (slice_.members, present & ~slice_.members)]
        p = min(1.0, _test_below(*sides) * len(tested))
        if p < ALPHA:
            weak.append(WeakSlice(slice_, sides[0].mean, sides[1].mean, p))
    return sorted(weak, key=lambda slice_: slice_.mean - slice_.other_mean)


@dataclass(frozen=True, slots=True)
class Reversal:
    """A partition in most of whose slices the other run leads: `against` of `slices`, though not overall."""

    partition: str
    leader: int  # 0 or 1: which of the two runs has the higher mean over all queries
    against: tuple[Slice, ...]
    slices: tuple[Slice, ...]


def find_reversals(
    first: Values, second: Values, slices: Sequence[Slice], weights: Values | None = None
) -> list[Reversal]:
    """Return the partitions in which the overall leader is behind in more than half of the slices.

    `first` and `second` (q,) are values of the same measure for the same queries, NaN for a missing value. Each run's
    mean is over its own values. A slice counts if it is not small and both runs have values in it; a partition needs
    two such slices. If both runs answered the same queries, the overall difference is a weighted mean of a partition's
    differences, so the leader leads somewhere. A complete reversal needs queries that one run did not answer. `weights`
    (q,) are those of the queries.
    """
    overall = weigh(first, weights) - weigh(second, weights)
    if not overall:  # NaN is not 0, but compares with nothing below
        return []
    reversed_groups = []
    for partition, group in groupby(slices, key=lambda slice_: slice_.partition):
        differences = {
            slice_: weigh(first[slice_.members], inside) - weigh(second[slice_.members], inside)
            for slice_ in group
            if not slice_.is_small
            for inside in [None if weights is None else weights[slice_.members]]
        }
        counted = [slice_ for slice_, difference in differences.items() if not math.isnan(difference)]
        against = [slice_ for slice_ in counted if differences[slice_] * overall < 0]
        if len(counted) >= 2 and 2 * len(against) > len(counted):
            reversed_groups.append(Reversal(partition, int(overall < 0), tuple(against), tuple(counted)))
    return reversed_groups


@dataclass(frozen=True, slots=True)
class LabelShape:
    """Distribution of the number of relevant documents per query; shares are percentages of all queries."""

    min: int
    max: int
    mean: float
    median: float
    p95: int
    pct_zero_positives: float
    pct_one_positive: float
    pct_two_plus_positives: float
    total_queries: int


def label_shape(n_relevant: Sequence[int]) -> LabelShape:
    """Return the label shape of a dataset, by the number of relevant documents per query. All 0 without queries.

    p95 is one of the numbers: sorted[⌊.95 · (n − 1)⌋].
    """
    ordered, n = sorted(n_relevant), len(n_relevant)
    if not n:
        return LabelShape(0, 0, 0.0, 0.0, 0, 0.0, 0.0, 0.0, 0)
    none, single = ordered.count(0), ordered.count(1)
    return LabelShape(
        min=ordered[0],
        max=ordered[-1],
        mean=sum(ordered) / n,
        median=float(median(ordered)),
        p95=ordered[95 * (n - 1) // 100],
        pct_zero_positives=100 * none / n,
        pct_one_positive=100 * single / n,
        pct_two_plus_positives=100 * (n - none - single) / n,
        total_queries=n,
    )


def _divide(partition: str, labels: Sequence[Sequence[str]], minimum: int) -> list[Slice]:
    """Return a slice for each label, by first number, then text; none if all queries have the same label."""
    distinct = sorted({label for of_query in labels for label in of_query}, key=_natural)
    if len({frozenset(of_query) for of_query in labels}) < 2:
        return []
    members = {label: np.array([label in of_query for of_query in labels]) for label in distinct}
    return [Slice(partition, label, inside, int(inside.sum()) < minimum) for label, inside in members.items()]


def _natural(label: str) -> tuple[bool, float, str]:
    number = re.match(r"\d+", label)
    return label == NONE, float(number[0]) if number else math.inf, label


def _name_bands(texts: Sequence[str]) -> list[str]:
    """Return for each text the range of lengths, in words, of its third of the set."""
    lengths = [count_words(text) for text in texts]
    ordered, n = sorted(lengths), len(lengths)
    ends = sorted({ordered[max(math.ceil(n * third / 3) - 1, 0)] for third in (1, 2, 3)}) if n else []
    starts = [min(length for length in ordered if length > end) for end in ends[:-1]]
    bands = dict(zip(ends, zip([*ordered[:1], *starts], ends, strict=True), strict=True))
    chosen = [bands[next(end for end in ends if length <= end)] for length in lengths]
    return [f"{start if start == end else f'{start}-{end}'} word{'s' if end != 1 else ''}" for start, end in chosen]


@dataclass(frozen=True, slots=True)
class _Side:
    """The mean of some queries, the variance of that mean, and its degrees of freedom."""

    mean: float
    variance: float
    freedom: float

    @classmethod
    def from_values(cls, values: Values, mask: NDArray[np.bool_], weights: Values | None) -> _Side:
        """Return the figures of `values[mask]`; with weights those of the ratio estimator and Kish's number."""
        side, n = values[mask], int(mask.sum())
        scaled = scale_weights(None if weights is None else weights[mask])
        if np.ptp(side) == 0:  # their weighted mean would differ by rounding
            return cls(float(side[0]), 0.0, n - 1)
        freedom = n - 1 if scaled is None else n**2 / float(scaled @ scaled) - 1
        return cls(weigh(side, scaled), compute_deviation(side, scaled) ** 2 / n, freedom)


def _test_below(inside: _Side, outside: _Side) -> float:
    """Return the one-sided p of a mean of `inside` this far below that of `outside`, by Welch's t-test.

    1 if a side has nearly all its demand in one query, which shows no spread. The formula and not `scipy.stats`, whose
    import takes longer than the page of a run.
    """
    from scipy.special import stdtr

    first, second = inside.variance, outside.variance
    if not first + second:
        return float(inside.mean >= outside.mean)
    if min(inside.freedom, outside.freedom) < 1:
        return 1.0
    freedom = (first + second) ** 2 / (first**2 / inside.freedom + second**2 / outside.freedom)
    return float(stdtr(freedom, (inside.mean - outside.mean) / math.sqrt(first + second)))
