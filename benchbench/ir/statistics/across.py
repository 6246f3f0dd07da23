"""Configurations over several datasets: mean ranks, and wins per pair.

A dataset is one observation, however many queries it has: Demšar, Statistical Comparisons of Classifiers over Multiple
Data Sets (JMLR 2006).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from benchbench.decimals import counted, figure
from benchbench.ir.statistics.resampling import ComparisonError, Values

ALPHA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class PairWins:
    """On how many datasets the first configuration is better than the second, equal and worse.

    `interval` has the share of wins of the datasets that differ, at 95 % (Clopper and Pearson 1934); `p` is that of the
    two-sided sign test, times the number of pairs, at most 1 (Bonferroni).
    """

    first: int
    second: int
    wins: int
    ties: int
    losses: int
    interval: tuple[float, float]
    p: float

    @property
    def significant(self) -> bool:
        return self.p <= ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """The mean rank of each configuration, Friedman's p (1 if nothing differs), and the wins of every pair."""

    datasets: int
    mean_ranks: tuple[float, ...]
    p: float
    pairs: tuple[PairWins, ...]

    @property
    def least_p(self) -> float:
        """Return the smallest p that a pair can have: it wins on every dataset."""
        return min(1.0, len(self.pairs) * 2.0 ** (1 - self.datasets))


def rank_across(values: Values) -> Standings:
    """Return the standings of configurations by `values`, (datasets, configurations), where greater is better.

    Equal values share the mean of their ranks. Raises ComparisonError below 2 datasets or configurations.
    """
    from scipy.stats import chi2, rankdata

    datasets, configurations = values.shape
    if min(values.shape) < 2:
        raise ComparisonError("Ranks over datasets need at least 2 datasets and 2 configurations.", field="runs")
    ranks = rankdata(-values, axis=1)
    means = ranks.mean(axis=0)
    spread = ((ranks - (configurations + 1) / 2) ** 2).sum() / (datasets * (configurations - 1))
    statistic = datasets * ((means - (configurations + 1) / 2) ** 2).sum() / spread if spread else 0.0
    count = configurations * (configurations - 1) // 2
    return Standings(
        datasets=datasets,
        mean_ranks=tuple(means.tolist()),
        p=float(chi2.sf(statistic, configurations - 1)),
        pairs=tuple(_count_wins(values, *pair, count) for pair in combinations(range(configurations), 2)),
    )


def _count_wins(values: Values, first: int, second: int, pairs: int) -> PairWins:
    from scipy.stats import binomtest

    gaps = np.sign(values[:, first] - values[:, second])
    wins, losses = int((gaps > 0).sum()), int((gaps < 0).sum())
    test = binomtest(wins, wins + losses) if wins + losses else None
    low, high = test.proportion_ci() if test else (0.0, 1.0)
    p = min(1.0, pairs * float(test.pvalue)) if test else 1.0
    ties = len(gaps) - wins - losses
    return PairWins(
        first=first, second=second, wins=wins, ties=ties, losses=losses, interval=(float(low), float(high)), p=p
    )


def describe_support(standings: Standings, labels: Sequence[str]) -> str:
    """Return what so few datasets can show, and which pairs are significant, as sentences."""
    many = counted(standings.datasets, "dataset")
    if standings.least_p > ALPHA:
        return (
            f"With {many} no pair can be significant: winning on all of them gives p = {figure(standings.least_p, 2)}. "
            "Read the ranks as a description, and add datasets."
        )
    decided = [pair for pair in standings.pairs if pair.significant]
    if not decided:
        return f"Over {many} no pair is significant."
    better = [(pair.first, pair.second) if pair.wins > pair.losses else (pair.second, pair.first) for pair in decided]
    sentences = "; ".join(f"{labels[winner]} beats {labels[loser]}" for winner, loser in better)
    return f"Over {many}, significantly: {sentences}."
