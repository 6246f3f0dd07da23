"""Common rules of a gate, written as a file of rules has them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from apps.records.comparability import find_differences
from apps.records.measuring.slicing import compute_means, load_slicing
from apps.records.models import Baseline, Run
from apps.verdicts.gates.gating import GateError
from apps.verdicts.gates.rules import RulesError, read_rules
from benchbench.ir.rules import Change

DIGITS = 10_000  # floors are written to four decimals, rounded down, so that the baseline itself passes


@dataclass(frozen=True, slots=True)
class CommonRules:
    """Limits on one measure and on latency; None adds no rule.

    `at_least`: the least mean. `may_lose`: the largest loss against the baseline; with `unless_significant` a larger
    one passes as long as it is not significant. `latency_ms`: the greatest `statistic` per query. `slices` may fall
    below the baseline's means by at most `may_fall`.
    """

    measure: str
    at_least: float | None = None
    may_lose: float | None = None
    unless_significant: bool = False
    statistic: str = "mean"
    latency_ms: float | None = None
    slices: Sequence[str] = ()
    may_fall: float = 0.0


def write_rules(common: CommonRules, *, baseline: Baseline | None = None, run: Run | None = None) -> dict[str, object]:
    """Return the rules as a file would have them. The floors of slices are the baseline's means.

    Only slices need a `run` and a baseline that it can be compared with; raises GateError without them.
    """
    rules: dict[str, object] = {}
    if common.at_least is not None:
        rules["floors"] = {common.measure: common.at_least}
    if common.slices:
        floors = _compute_floors(common, baseline, run)
        rules["slices"] = {name: {common.measure: floor} for name, floor in floors.items()}
    if common.may_lose is not None:
        lenient = {"unless_significant": True} if common.unless_significant else {}
        rules["against_baseline"] = {common.measure: {"may_lose": common.may_lose, **lenient}}
    if common.latency_ms is not None:
        rules["latency_ms"] = {common.statistic: common.latency_ms}
    return rules


def read_common(text: str) -> CommonRules | None:
    """Return the limits that rules stand for; None if they hold anything else, a comment included."""
    try:
        rules = read_rules(text)
    except RulesError:
        return None
    floor = next(iter(rules.floors), None)
    change = next(iter(rules.changes), Change(floor.measure) if floor else None)
    statistic, limit = next(iter(rules.latency_ms), ("mean", None))
    common = CommonRules(
        measure=str(change.measure) if change else "",
        at_least=floor.at_least if floor else None,
        may_lose=change.may_lose if change else None,
        unless_significant=change.unless_significant if change else False,
        statistic=statistic,
        latency_ms=limit,
    )
    written = write_rules(common)
    return common if written and read_rules(written) == rules and "#" not in text else None


def _compute_floors(common: CommonRules, baseline: Baseline | None, run: Run | None) -> dict[str, float]:
    """Return the least mean of each slice: the baseline's, less what it may fall by."""
    if baseline is None or run is None:
        raise GateError("Slices are compared with the means of a baseline: choose one.", field="baseline")
    comparison = find_differences([run, baseline.run], version=run.benchmark.dataset_version)
    if not comparison.comparable:
        raise GateError(" ".join(comparison.refusals), field="baseline")
    evaluation = comparison.evaluations[baseline.run_id]
    slicing = load_slicing(baseline.run.benchmark, evaluation)
    floors = {}
    for name in common.slices:
        chosen = slicing.find(name)
        mean = compute_means(evaluation, slicing, chosen, [common.measure]).get(common.measure) if chosen else None
        if mean is None:
            raise GateError(f"The baseline has no {common.measure} in {name}: leave the slice out.", field="slices")
        floors[name] = max(0.0, math.floor((mean - common.may_fall) * DIGITS) / DIGITS)
    return floors
