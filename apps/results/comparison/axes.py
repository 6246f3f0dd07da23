"""Effects of the axes of a matrix in words: the mean gain of each value."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from apps.verdicts.comparing import RunComparison
from apps.verdicts.configurations import Config, filter_keys, find_varying, phrase, spell_settings
from benchbench.ir.demand import weigh
from benchbench.ir.measures import Values
from benchbench.ir.planning.axes import AXES
from benchbench.ir.planning.configuration import DEFAULTS, LATE_INTERACTION
from benchbench.ir.planning.labels import name_mode
from benchbench.ir.statistics.effects import Contrast, compute_contrasts, contrast_intervals
from benchbench.ir.statistics.resampling import Interval, find_common_queries

RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Effect:
    """The mean gain of `value` of `axis` over `reference`, in words, over `pairs` of runs that differ only in it.

    The mean is over `sets` of runs: a pair that another axis does not touch counts once for each of its values.
    """

    axis: str
    value: str
    reference: str
    pairs: int
    sets: int
    difference: float
    interval: Interval


def compute_effects(comparison: RunComparison) -> list[Effect]:
    """Return the effects of every axis on which the runs differ, by the compared measure on the compared queries.

    An axis does not multiply a run that it does not touch, such as the RRF constant and a dense run. In the effects of
    other axes such a run counts for all values of that axis. In the effect of the axis itself it is left out. So are
    values without a matched set, and external runs, whose configurations are unknown. The interval is a paired
    bootstrap of 2,000 resamples for one effect alone: it describes but does not test.
    """
    indices = [index for index, run in enumerate(comparison.runs) if not run.is_external]
    of_runs = [comparison.runs[index].config for index in indices]
    configs = spell_settings({**DEFAULTS, "reranker": LATE_INTERACTION, **config} for config in of_runs)
    # Every effect uses the queries that every run answered: an axis may touch only some runs.
    common = find_common_queries(comparison.compared)
    values = comparison.compared[:, common][indices]
    weights = None if comparison.compared_weights is None else comparison.compared_weights[common]
    axes = find_varying(configs)
    all_contrasts, pairs = [], []
    for axis in axes:
        rows, configurations = _expand(configs, axes, axis)
        for contrast in compute_contrasts(values[rows], configurations, axis) if rows else []:
            all_contrasts.append(contrast)
            pairs.append(_count_pairs(rows, configurations, contrast))
    seed = comparison.comparison.seed
    intervals = contrast_intervals(all_contrasts, seed=seed, resamples=RESAMPLES, weights=weights)
    engines = {str(config["engine"]) for config in configs if config.get("engine")}
    engine = engines.pop() if len(engines) == 1 else None
    return [_build_effect(*each, weights, engine) for each in zip(all_contrasts, pairs, intervals, strict=True)]


def _expand(configs: Sequence[Config], axes: Sequence[str], target: str) -> tuple[list[int], list[dict[str, str]]]:
    """Return rows and configurations: each run that `target` touches, once per value of axes that do not touch it."""
    texts = [{axis: _render_text(config.get(axis)) for axis in filter_keys(axes, config)} for config in configs]
    values = {axis: list(dict.fromkeys(settings[axis] for settings in texts if axis in settings)) for axis in axes}
    rows, expanded = [], []
    for row, settings in enumerate(texts):
        if target not in settings:
            continue
        choices = [[settings[axis]] if axis in settings else values[axis] for axis in axes]
        combinations = [dict(zip(axes, combination, strict=True)) for combination in product(*choices)]
        rows += [row] * len(combinations)
        expanded += combinations
    return rows, expanded


def _count_pairs(rows: Sequence[int], configurations: Sequence[dict[str, str]], effect: Contrast) -> int:
    """Return the number of distinct pairs of runs behind an effect, whose contexts may count a run several times."""
    sets: dict[tuple[str, ...], dict[str, int]] = {}
    for row, configuration in zip(rows, configurations, strict=True):
        context = tuple(value for axis, value in configuration.items() if axis != effect.axis)
        sets.setdefault(context, {})[configuration[effect.axis]] = row
    pair = (str(effect.value), str(effect.reference))
    return len({tuple(runs[value] for value in pair) for runs in sets.values() if all(v in runs for v in pair)})


def _build_effect(
    contrast: Contrast, pairs: int, interval: Interval, weights: Values | None, engine: str | None
) -> Effect:
    """Return an effect in words. `engine` is the only one that the runs ask, by whose name its mode goes."""
    values = [json.loads(str(text)) for text in (contrast.value, contrast.reference)]
    value, reference = (
        name_mode(value, engine) if contrast.axis == "search_mode" else phrase(contrast.axis, value) for value in values
    )
    difference = weigh(contrast.differences, weights)
    name = AXES[contrast.axis].name if contrast.axis in AXES else contrast.axis.replace("_", " ")
    return Effect(name, value, reference, pairs, contrast.contexts, difference, interval)


def _render_text(value: object) -> str:
    """Return a value of a configuration as text, so that a list of weights can be a key."""
    return json.dumps(value, sort_keys=True)
