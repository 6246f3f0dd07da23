"""Effects of the axes: the gain of each value, on average over the matrix."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchbench.ir.demand import scale_weights
from benchbench.ir.statistics import resampling
from benchbench.ir.statistics.resampling import ComparisonError, Interval, Values
from benchbench.ir.statistics.skew import find_intervals

Context = frozenset[tuple[str, Hashable]]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Contrast:
    """The difference that `value` makes against `reference` on one axis, in the unit of the measure.

    `differences`, (queries,), has it for every query that all runs answered: the average over `contexts` matched sets
    of runs, whose members are equal but for this axis.
    """

    axis: str
    reference: Hashable
    value: Hashable
    contexts: int
    differences: Values


def compute_contrasts(values: Values, configurations: Sequence[Mapping[str, Hashable]], axis: str) -> list[Contrast]:
    """Return the effect of each value of `axis` on every query, against the axis's first value.

    `values` is float64 (runs, queries) with NaN for a failed query; only queries that every run answered count.
    `configurations` has a mapping for each run, from axis to value; an absent axis counts as None. Runs of equal
    configuration count as one, by their average. A value without a matched set has no contrast. Raises ComparisonError
    for fewer than 2 common queries, or if the numbers of configurations and runs differ.
    """
    array = np.asarray(values, np.float64)[:, resampling.find_common_queries(values)]
    if len(configurations) != len(array):
        raise ComparisonError(f"{len(array)} runs need as many configurations, not {len(configurations)}.")
    reference, *other_values = dict.fromkeys(configuration.get(axis) for configuration in configurations)
    effects = [(value, *_contrast(configurations, axis, reference, value)) for value in other_values]
    return [
        Contrast(axis=axis, reference=reference, value=value, contexts=contexts, differences=weights @ array)
        for value, weights, contexts in effects
        if contexts
    ]


def contrast_intervals(
    effects: Sequence[Contrast], *, seed: int, resamples: int = 10_000, weights: Values | None = None
) -> list[Interval]:
    """Return the interval of the mean of each contrast, by `skew` over the same queries, drawn once for all.

    It is not corrected for the number of contrasts: it is descriptive and decides nothing. `weights` (queries,) are
    those of the queries of `Contrast.differences`.
    """
    resampling.require_settings(alpha=resampling.ALPHA, resamples=resamples)
    if not effects:
        return []
    rows = np.array([contrast.differences for contrast in effects])
    return find_intervals(rows, alpha=resampling.ALPHA, resamples=resamples, seed=seed, weights=scale_weights(weights))


def _contrast(
    configurations: Sequence[Mapping[str, Hashable]], axis: str, reference: Hashable, value: Hashable
) -> tuple[Values, int]:
    """Return the weights of the runs in the effect, shape (runs,), of sum 0, and the number of matched contexts."""
    contexts: dict[Context, dict[Hashable, list[int]]] = {}
    for run, configuration in enumerate(configurations):
        context = frozenset(
            (key, setting) for key, setting in configuration.items() if key != axis and setting is not None
        )
        contexts.setdefault(context, {}).setdefault(configuration.get(axis), []).append(run)
    matched = [runs for runs in contexts.values() if reference in runs and value in runs]
    weights = np.zeros(len(configurations))
    for runs in matched:
        weights[runs[value]] += 1 / (len(matched) * len(runs[value]))
        weights[runs[reference]] -= 1 / (len(matched) * len(runs[reference]))
    return weights, len(matched)
