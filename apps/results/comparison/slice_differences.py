"""Comparison of runs within each slice of the queries. It describes; only the whole is tested."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apps.results.comparison.comparing import RunComparison, means_of
from benchbench.ir.slices import MINIMUM, Reversal, Slice, reversals
from benchbench.ir.statistics.resampling import MeanInterval, mean_intervals

RESAMPLES = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class SliceDifferences:
    """One slice: the mean of every run, and the difference of every run to the reference, with a plain interval.

    `slice` has the queries that the reference and any other run answered.
    """

    slice: Slice
    means: tuple[float | None, ...]
    differences: tuple[MeanInterval, ...]  # the reference's own is 0

    def is_small(self, run: int) -> bool:
        """Tell whether `run` and the reference both answered so few of its queries that nothing is concluded."""
        return self.slice.is_small or self.differences[run].n < MINIMUM


@dataclass(frozen=True, slots=True)
class ReversedRun:
    """A partition of the slices that tells another story of `run` and the reference than all queries together."""

    run: int
    reversal: Reversal


def by_slice(comparison: RunComparison, *, only: Sequence[int] | None = None) -> list[SliceDifferences]:
    """Return the slices of all queries, by the compared measure, each with an interval of its own (2,000 resamples).

    The intervals are of one slice and one pair each, and not corrected for how many there are. `only`: the runs whose
    differences get one, where not all.
    """
    seed = comparison.comparison.seed
    values = comparison.values[comparison.measure]
    differences = values - values[comparison.reference]
    answered = (~np.isnan(np.delete(differences, comparison.reference, axis=0))).any(axis=0)
    rows = []
    for slice_ in comparison.slices:
        intervals = mean_intervals(differences[:, slice_.members], seed=seed, resamples=RESAMPLES, only=only)
        rows.append(
            SliceDifferences(slice_.among(answered), tuple(means_of(values[:, slice_.members])), tuple(intervals))
        )
    return rows


def reversed_runs(comparison: RunComparison) -> list[ReversedRun]:
    """Return where the slices contradict the whole: most of a partition's against the order of a run and the reference.

    On the queries that both answered, so that no difference comes of which queries failed; by their number a slice is
    small, too.
    """
    values = comparison.values[comparison.measure]
    reference = comparison.reference
    rows = []
    for run in comparison.order:
        if run != reference:
            both = ~np.isnan(values[run] + values[reference])
            first, second = (np.where(both, values[number], np.nan) for number in (reference, run))
            slices = [slice_.among(both) for slice_ in comparison.slices]
            rows += [ReversedRun(run, reversal) for reversal in reversals(first, second, slices)]
    return rows
