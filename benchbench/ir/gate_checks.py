"""Checks of a gate: rules applied to measured values. Numbers in, checks out.

Limits are inclusive and compared at full precision.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchbench.decimals import counted, some_of
from benchbench.ir.gate import Change, Check, Difference, Evidence, Floor, Mask, MustNotFail, Outcome, Rules
from benchbench.ir.measures.means import MOST_LOST_PERCENT, too_many_lost
from benchbench.ir.profiles import Mean


def judge(rules: Rules, evidence: Evidence) -> list[Check]:
    """Hold every rule against what was measured, in the order in which a rules file states them."""
    checks = [_floor(floor, evidence) for floor in rules.floors]
    checks += [_change(change, evidence) for change in rules.changes]
    checks += [_must_not_fail(rule, evidence) for rule in rules.must_not_fail]
    if rules.false_answers is not None:
        checks.append(_false_answers(rules.false_answers, evidence))
    checks += [_latency(name, limit, evidence) for name, limit in rules.latency_ms]
    if rules.failed_queries is not None:
        checks.append(_failed_queries(rules.failed_queries, evidence))
    return checks


def number(value: float, *, signed: bool = False) -> str:
    """A value as people read it: `.7123`, `−.0045`, and `+.0045` where signed."""
    digits = f"{abs(value):.4f}"
    sign = "" if float(digits) == 0 else "−" if value < 0 else "+" if signed else ""
    return sign + (digits[1:] if digits.startswith("0.") else digits)


def _floor(floor: Floor, evidence: Evidence) -> Check:
    name = f"{floor.measure} in {floor.slice}" if floor.slice else str(floor.measure)
    name += f", {floor.mean} mean" if floor.mean is not Mean.BENCHMARK else ""
    wanted = f"≥ {number(floor.at_least)}"
    within = evidence.slices.get(floor.slice) if floor.slice else np.ones_like(evidence.counted)
    if within is None:
        return _undecided(name, wanted, f"There is no slice {floor.slice!r}.{_there_are(evidence.slices)}")
    judged = (evidence.n_judgments > 0) & ~evidence.failed
    chosen = within & (evidence.counted if floor.mean is Mean.BENCHMARK else judged)
    n = int(chosen.sum())
    if n < max(1, floor.minimum_queries):
        asked = f"the rule asks for {floor.minimum_queries}"
        return _undecided(name, wanted, f"{counted(n, 'query')} counted here; {asked}.", n)
    lost = int((within & evidence.failed).sum())
    if floor.slice and too_many_lost(counted=n, lost=lost):
        why = f"{lost:,} of {n + lost:,} queries of the slice have no value, more than {MOST_LOST_PERCENT} %."
        return _undecided(name, wanted, why, n)
    mean = floor.mean.of(evidence.values[floor.measure][chosen], evidence.n_judgments[chosen])
    outcome = _passed(mean >= floor.at_least)
    return Check(name, wanted, _beside(mean, floor.at_least), outcome, n, value=mean, mean=floor.mean)


def _there_are(slices: Mapping[str, Mask]) -> str:
    return f" There are {', '.join(sorted(slices))}." if slices else " The queries have no slices."


def _change(change: Change, evidence: Evidence) -> Check:
    name = f"{change.measure} against the baseline"
    gain = change.must_gain is not None
    limit = (change.must_gain if gain else change.may_lose) or 0.0
    wanted = f"a significant gain, ≥ {number(limit)}" if gain else f"no significant loss > {number(limit)}"
    difference = evidence.differences[change.measure]
    if isinstance(difference, str):
        return _undecided(name, wanted, difference)
    if difference.interval is None:
        return _undecided(
            name,
            wanted,
            f"{counted(difference.n, 'query')} compared are too few for anything to be significant.",
            difference.n,
        )
    low, high = difference.interval
    if low == high != 0:
        return _undecided(
            name, wanted, f"Every query differs by {number(low, signed=True)}: no test can judge that.", difference.n
        )
    outcome, note = _gain(difference, limit) if gain else _loss(difference, low, limit)
    shown = f"{number(difference.mean, signed=True)} [{number(low, signed=True)}, {number(high, signed=True)}]"
    return Check(name, wanted, shown, outcome, difference.n, note, value=difference.mean)


def _gain(difference: Difference, limit: float) -> tuple[Outcome, str]:
    enough = difference.mean >= limit
    unsure = f"Not significant with {counted(difference.n, 'query')}."
    return _passed(enough and difference.significant), unsure if enough and not difference.significant else ""


def _loss(difference: Difference, low: float, limit: float) -> tuple[Outcome, str]:
    lost = difference.significant and -difference.mean > limit
    possible = not lost and -low > limit
    said = f"{counted(difference.n, 'query')} do not rule out a loss of {number(abs(low))}."
    return _passed(not lost), said if possible else ""


def _must_not_fail(rule: MustNotFail, evidence: Evidence) -> Check:
    name = f"{rule.measure} of {rule.queries[0]}" if len(rule.queries) == 1 else f"{rule.measure} of named queries"
    wanted = f"each ≥ {number(rule.at_least)}" if len(rule.queries) > 1 else f"≥ {number(rule.at_least)}"
    places = {key: place for place, key in enumerate(evidence.keys)}
    unknown = [key for key in rule.queries if key not in places]
    if unknown:
        return _undecided(name, wanted, f"The dataset version has no query {some_of(unknown)}.", len(rule.queries))
    values = evidence.values[rule.measure]
    below = {}
    for key in rule.queries:
        if evidence.failed[places[key]]:
            below[key] = f"{key} (an error)"
        elif values[places[key]] < rule.at_least:
            below[key] = f"{key} ({number(float(values[places[key]]))})"
    if not below:
        return Check(name, wanted, "none below", Outcome.PASSED, len(rule.queries), value=0.0)
    observed = f"{len(below)} of {len(rule.queries)} below: {some_of(list(below.values()))}"
    return Check(name, wanted, observed, Outcome.FAILED, len(rule.queries), value=float(len(below)))


def _false_answers(at_most: float, evidence: Evidence) -> Check:
    name, wanted = "false answers", f"≤ {number(at_most)} of the queries without a relevant document"
    asked = evidence.unanswerable & ~evidence.failed
    n = int(asked.sum())
    if not n:
        return _undecided(name, wanted, "Every query that was answered has a relevant judgment.", 0)
    answered = int((asked & evidence.returned).sum())
    share = answered / n
    observed = f"{_beside(share, at_most)} ({answered} of {n} answered)"
    return Check(name, wanted, observed, _passed(share <= at_most), n, value=share)


def _latency(statistic: str, at_most: float, evidence: Evidence) -> Check:
    name, wanted = f"{statistic} latency", f"≤ {at_most:g} ms"
    ms = evidence.latency_ms.get(statistic)
    if ms is None:
        return _undecided(name, wanted, _no_latency(statistic, evidence))
    note = "The sum of what shared stages cost, not of single searches." if evidence.shared else ""
    return Check(name, wanted, f"{ms:g} ms", _passed(ms <= at_most), evidence.samples, note, value=ms)


def _no_latency(statistic: str, evidence: Evidence) -> str:
    if statistic == "mean" or not evidence.samples:
        return "No search of this run was timed."
    if evidence.shared:
        return "Runs of this benchmark share stages, so no single search was timed: run it with isolated execution."
    return f"{evidence.samples} timed searches are too few for it."


def _failed_queries(at_most: int, evidence: Evidence) -> Check:
    failed = int(evidence.failed.sum())
    errors = [key for key, bad in zip(evidence.keys, evidence.failed, strict=True) if bad]
    observed = f"{failed}: {some_of(errors)}" if failed else "0"
    n = len(evidence.keys)
    return Check("failed queries", f"≤ {at_most}", observed, _passed(failed <= at_most), n, value=float(failed))


def _undecided(name: str, wanted: str, why: str, n: int | None = None) -> Check:
    return Check(name, wanted, "–", Outcome.UNDECIDED, n, why)


def _passed(yes: bool) -> Outcome:
    return Outcome.PASSED if yes else Outcome.FAILED


def _beside(value: float, limit: float) -> str:
    """A value with enough digits to be told from its limit: .69996 is not .7."""
    short = number(value)
    return repr(value) if value != limit and short == number(limit) else short
