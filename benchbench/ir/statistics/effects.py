"""Effects of the axes: what each value gains, on average over the matrix."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchbench.ir.statistics.resampling import (
    ComparisonError,
    Interval,
    Values,
    bootstrap_means,
    common_queries,
    percentile_interval,
    require_settings,
)

Context = frozenset[tuple[str, Hashable]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisEffect:
    """The difference that `value` makes against `reference` on one axis, in the unit of the measure.

    The average over `contexts` matched sets of runs, whose members are equal but for this axis, and over n queries.
    With no such set `difference` and `interval` are None. The interval is a paired bootstrap over queries, not
    corrected for the number of effects: it describes, and decides nothing.
    """

    axis: str
    reference: Hashable
    value: Hashable
    contexts: int
    difference: float | None
    interval: Interval | None
    n: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Contrast:
    """What an AxisEffect is the mean of: the difference on every query that all runs answered, (queries,)."""

    axis: str
    reference: Hashable
    value: Hashable
    contexts: int
    differences: Values


def contrasts(values: Values, configurations: Sequence[Mapping[str, Hashable]], axis: str) -> list[Contrast]:
    """What each value of `axis` makes of every query, against the value of the axis that appears first.

    `values` is float64 (runs, queries) with NaN for a failed query, and only queries count that every run answered.
    `configurations` has a mapping for each run, from axis to value; an absent axis counts as None. Runs of equal
    configuration count as one, by their average. Raises ComparisonError for fewer than 2 common queries, or another
    number of configurations than runs.
    """
    common = common_queries(values)
    array = np.asarray(values, np.float64)[:, common]
    if len(configurations) != len(array):
        raise ComparisonError(f"There are {len(array)} runs, but {len(configurations)} configurations.")
    reference, *others = dict.fromkeys(configuration.get(axis) for configuration in configurations)
    asked = [(value, *_contrast(configurations, axis, reference, value)) for value in others]
    return [
        Contrast(axis=axis, reference=reference, value=value, contexts=contexts, differences=weights @ array)
        for value, weights, contexts in asked
    ]


def axis_effects(
    asked: Sequence[Contrast], *, seed: int, alpha: float = 0.05, resamples: int = 10_000
) -> tuple[AxisEffect, ...]:
    """The mean of each contrast, all on the same queries, with its interval: drawn once for all."""
    require_settings(alpha=alpha, resamples=resamples)
    if not asked:
        return ()
    per_query = np.array([effect.differences for effect in asked])
    ends = percentile_interval(bootstrap_means(per_query, resamples=resamples, seed=seed), alpha).tolist()
    return tuple(
        AxisEffect(
            axis=effect.axis,
            reference=effect.reference,
            value=effect.value,
            contexts=effect.contexts,
            difference=float(effect.differences.mean()) if effect.contexts else None,
            interval=Interval(*interval) if effect.contexts else None,
            n=len(effect.differences),
        )
        for effect, interval in zip(asked, ends, strict=True)
    )


def _contrast(
    configurations: Sequence[Mapping[str, Hashable]], axis: str, reference: Hashable, value: Hashable
) -> tuple[Values, int]:
    """The weight of each run in the effect, shape (runs,), which sum to 0, and the number of matched contexts."""
    contexts: dict[Context, dict[Hashable, list[int]]] = {}
    for run, configuration in enumerate(configurations):
        others = frozenset((key, held) for key, held in configuration.items() if key != axis and held is not None)
        contexts.setdefault(others, {}).setdefault(configuration.get(axis), []).append(run)
    matched = [runs for runs in contexts.values() if reference in runs and value in runs]
    weights = np.zeros(len(configurations))
    for runs in matched:
        weights[runs[value]] += 1 / (len(matched) * len(runs[value]))
        weights[runs[reference]] -= 1 / (len(matched) * len(runs[reference]))
    return weights, len(matched)
