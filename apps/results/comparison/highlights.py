"""Sentences on the folded panels of a comparison's page: the widest departure in each."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from apps.verdicts.comparing import RunComparison, is_lower_better
from apps.verdicts.coverage import is_coverage
from apps.verdicts.describing import compute_means
from benchbench.decimals import counted, figure, list_some
from benchbench.ir.demand import weigh
from benchbench.ir.measures import Values
from benchbench.ir.slices import ALPHA, MINIMUM, Slice, find_weak_slices
from benchbench.ir.statistics.resampling import SAME


def describe_slices(comparison: RunComparison, runs: Sequence[int]) -> str:
    """Return a sentence on the slice in which one of `runs` departs most from its difference on the other queries.

    A departure is clear by Welch's t-test of both groups of differences to the reference, corrected for the number of
    slices, runs and directions (Bonferroni). Without a clear one the sentence names the widest as possible chance.
    """
    values, weights = comparison.values[comparison.measure], comparison.weights
    rivals = [run for run in runs if run != comparison.reference]
    differences = {run: values[run] - values[comparison.reference] for run in rivals}
    clear = [
        (run, weak.slice)
        for run, row in differences.items()
        for side in (row, -row)
        for weak in find_weak_slices(side, comparison.slices, weights)
        if weak.p * 2 * len(rivals) < ALPHA
    ]
    departures = [
        (round(abs(inside - outside), 9), abs(inside), inside, outside, run, slice_.name)
        for run, slice_ in clear or [(run, slice_) for run in rivals for slice_ in comparison.slices]
        if (means := _compute_sides(differences[run], slice_, weights))
        for inside, outside in [means]
    ]
    if not departures:
        return "too few queries in each to say anything"
    if not max(departures)[0]:
        return "no run differs from the reference"
    # Of two slices that divide the queries, the one where the difference is.
    *_, inside, outside, run, name = max(departures)
    words = [
        f"{'better' if mean > 0 else 'worse'} by {figure(abs(mean), 3)}" if round(mean, 3) else "equal"
        for mean in (inside, outside)
    ]
    label = comparison.labels[run]
    sentence = f"compared with the reference, {label} is {words[0]} in “{name}” and {words[1]} elsewhere"
    return sentence if clear else f"{sentence}, which may be chance"


def _compute_sides(differences: Values, slice_: Slice, weights: Values | None) -> tuple[float, float] | None:
    """Return the mean difference inside a slice and outside; None if either has too few queries."""
    valued = ~np.isnan(differences)
    sides = [valued & slice_.members, valued & ~slice_.members]
    if min(int(side.sum()) for side in sides) < MINIMUM:
        return None
    inside, outside = (weigh(differences[side], None if weights is None else weights[side]) for side in sides)
    return inside, outside


def describe_measures(comparison: RunComparison) -> str:
    """Return a sentence on the measures by which the reference is not the best run."""
    reference, weights = comparison.reference, comparison.compared_weights
    names, leaders = [], {}
    for name, values in comparison.values.items():
        sign = -1 if is_lower_better(name) else 1
        means = [sign * mean for mean in compute_means(values[:, comparison.members], weights) if mean is not None]
        if is_coverage(name) or not means:  # no query on which every run has a value
            continue
        names.append(name)
        best = max(range(len(means)), key=lambda run: (means[run], -run))
        if means[best] > means[reference] + SAME:
            leaders[name] = best
    label = comparison.labels[reference]
    if not leaders:
        return f"{label} has the best mean by each of {counted(len(names), 'measure')}"
    rival, _ = Counter(leaders.values()).most_common(1)[0]
    lost = [name for name, run in leaders.items() if run == rival]
    leads = f"{len(names) - len(leaders)} of {counted(len(names), 'measure')}"
    return f"{label} has the best mean by {leads}; {comparison.labels[rival]} by {list_some(lost, 3)}"


def describe_pairs(comparison: RunComparison) -> str:
    """Return a sentence on the number of distinguishable pairs and the widest difference that is not significant."""
    pairs = comparison.comparison.pairs
    if not comparison.is_tested:
        return f"{counted(len(pairs), 'pair')}, not tested"
    undecided = [pair for pair in pairs if not pair.significant]
    sentence = f"{len(pairs) - len(undecided):,} of {counted(len(pairs), 'pair')} differ significantly"
    if not undecided:
        return sentence
    widest = max(undecided, key=lambda pair: abs(pair.difference))
    labels = [comparison.labels[run] for run in (widest.first, widest.second)]
    gap = figure(abs(widest.difference))
    return f"{sentence}; the widest difference that does not is {gap}, of {' and '.join(labels)}"


def describe_standings(comparison: RunComparison, runs: Sequence[int]) -> str:
    """Return how many of `runs` have each standing against the reference; "" if untested."""
    counts = Counter(comparison.verdict.find_standing(run) for run in runs) if comparison.is_tested else {}
    return ", ".join(f"{number} {standing}" for standing, number in counts.items())
