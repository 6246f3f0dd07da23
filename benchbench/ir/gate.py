"""Gates: measured values, and the check of each rule.

Limits are inclusive and compared at full precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from benchbench.decimals import counted, figure, list_some, short_signed
from benchbench.ir.demand import BY_DEMAND
from benchbench.ir.measures import Measure
from benchbench.ir.measures.means import MAX_LOST_PERCENT, has_lost_too_many
from benchbench.ir.profiles import Mean
from benchbench.ir.rules import Change, Floor, MustNotFail, Rules
from benchbench.ir.statistics.verdict import check_loss, is_realistic

SKEW = "Few queries with large differences could turn the result, so it is not called significant."
Values = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Outcome(StrEnum):
    """Outcome of a rule. `UNDECIDED`, when the measured data lack what the rule needs, is never a pass."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"

    @property
    def phrase(self) -> str:
        return "cannot be decided" if self is Outcome.UNDECIDED else self.value


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of a measure's mean from the baseline's over the `n` compared queries, with its interval.

    The interval excludes 0 if and only if the difference is significant. None means that `n` is too small for one.
    `detectable` is the smallest true difference that `n` queries find with the usual power; None if it is unknown.
    """

    mean: float
    interval: tuple[float, float] | None
    significant: bool
    n: int
    detectable: float | None = None
    can_be_significant: bool = True  # whether any difference could be, with so many queries
    is_held_back: bool = False  # significant but for the skew of the differences
    is_unchanged: bool = False  # no query differs


@dataclass(frozen=True, eq=False)
class Evidence:
    """Measurements of one run over the q queries of a dataset version. Masks and values are (q,)."""

    keys: Sequence[str]
    failed: Mask  # ended in an error: in no mean
    counted: Mask  # in the means of the benchmark
    n_judgments: NDArray[np.int64]  # of any grade
    values: Mapping[Measure, Values]  # of every measure that a rule names; that of a failed query is not read
    slices: Mapping[str, Mask]
    unanswerable: Mask  # no judgment of the query is relevant
    returned: Mask  # the run returned a document
    latency_ms: Mapping[str, float]
    samples: int  # searches that were timed
    shared: bool  # times are sums of shared stages, not of single searches
    differences: Mapping[Measure, Difference | str]  # against the baseline, or the reason why it is missing
    weights: Values | None = None  # of the queries, if the benchmark's means and differences are weighted by demand


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of one rule."""

    name: str
    required: str
    observed: str
    outcome: Outcome
    n: Annotated[int | None, "Queries that the check looked at."] = None
    value: float | None = None
    mean: Annotated[Mean | None, "Which mean a floor is on."] = None
    note: str = ""
    more_queries: Annotated[int | None, "About how many more queries would decide it; null if none are needed."] = None


def combine(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome of several checks: failed if any failed, else undecided if any is undecided."""
    for outcome in (Outcome.FAILED, Outcome.UNDECIDED):
        if outcome in outcomes:
            return outcome
    return Outcome.PASSED


def judge(rules: Rules, evidence: Evidence) -> list[CheckReport]:
    """Check every rule against the measurements, in the order of a rules file."""
    checks = [_check_floor(floor, evidence) for floor in rules.floors]
    checks += [_check_change(change, evidence) for change in rules.changes]
    checks += [_check_named_queries(rule, evidence) for rule in rules.must_not_fail]
    if rules.false_answers is not None:
        checks.append(_check_false_answers(rules.false_answers, evidence))
    checks += [_check_latency(name, limit, evidence) for name, limit in rules.latency_ms]
    if rules.failed_queries is not None:
        checks.append(_check_failed_queries(rules.failed_queries, evidence))
    return checks


def _check_floor(floor: Floor, evidence: Evidence) -> CheckReport:
    name = f"{floor.measure} in {floor.slice}" if floor.slice else str(floor.measure)
    name += f", {floor.mean} mean" if floor.mean is not Mean.BENCHMARK else _name_weighting(evidence)
    required = f"≥ {figure(floor.at_least)}"
    within = evidence.slices.get(floor.slice) if floor.slice else np.ones_like(evidence.counted)
    if within is None:
        hint = (
            f"Choose one of {', '.join(sorted(evidence.slices))}." if evidence.slices else "The queries have no slices."
        )
        return _undecided(name, required, f"The slice {floor.slice!r} does not exist. {hint}")
    judged = (evidence.n_judgments > 0) & ~evidence.failed
    chosen = within & (evidence.counted if floor.mean is Mean.BENCHMARK else judged)
    n = int(chosen.sum())
    if n < max(1, floor.minimum_queries):
        minimum = f"the rule asks for {floor.minimum_queries}"
        return _undecided(name, required, f"{counted(n, 'query')} counted here; {minimum}.", n)
    lost = int((within & evidence.failed).sum())
    if floor.slice and has_lost_too_many(counted=n, lost=lost):
        reason = f"{lost:,} of {n + lost:,} queries of the slice have no value, more than {MAX_LOST_PERCENT} %."
        return _undecided(name, required, reason, n)
    demand = None if evidence.weights is None else evidence.weights[chosen]
    mean = floor.mean.compute(evidence.values[floor.measure][chosen], evidence.n_judgments[chosen], demand)
    outcome = _get_outcome(mean >= floor.at_least)
    return CheckReport(name, required, _format_value(mean, floor.at_least), outcome, n, mean, floor.mean)


def _check_change(change: Change, evidence: Evidence) -> CheckReport:
    name = f"{change.measure} against the baseline{_name_weighting(evidence)}"
    required = _describe_change(change)
    difference = evidence.differences[change.measure]
    if isinstance(difference, str):
        return _undecided(name, required, difference)
    if difference.is_unchanged:
        return CheckReport(
            name, required, "no query differs", _get_outcome(change.may_lose is not None), difference.n, 0.0
        )
    if not difference.can_be_significant:
        addition = "" if evidence.weights is None else ", or a few of them have most of the demand"
        reason = f"{counted(difference.n, 'query')} are too few for a significant result{addition}."
        return _undecided(name, required, reason, difference.n)
    outcome, note, more = _judge_gain(change, difference) if change.may_lose is None else judge_loss(change, difference)
    ends = "" if difference.interval is None else f" [{', '.join(map(short_signed, difference.interval))}]"
    observed = short_signed(difference.mean) + ends
    return CheckReport(name, required, observed, outcome, difference.n, difference.mean, note=note, more_queries=more)


def _describe_change(change: Change) -> str:
    if change.may_lose is None:
        return f"a significant gain, ≥ {figure(change.must_gain or 0.0)}"
    return f"no {'significant ' if change.unless_significant else ''}loss > {figure(change.may_lose)}"


def _judge_gain(change: Change, difference: Difference) -> tuple[Outcome, str, int | None]:
    """Return the outcome of a required gain, and a note."""
    is_enough = difference.mean >= (change.must_gain or 0.0)
    note = f"Not significant with {counted(difference.n, 'query')}." if is_enough and not difference.significant else ""
    note += f" {SKEW}" if note and difference.is_held_back else ""
    return _get_outcome(is_enough and difference.significant), note, None


def judge_loss(change: Change, difference: Difference) -> tuple[Outcome, str, int | None]:
    """Return the outcome of an allowed loss, a note, and how many more queries would decide it if it is undecided."""
    low = difference.interval[0] if difference.interval else None
    loss = check_loss(
        difference=difference.mean,
        lower=low,
        is_significant=difference.significant,
        detectable=difference.detectable,
        n=difference.n,
        limit=change.may_lose or 0.0,
    )
    if loss.is_excluded or loss.is_shown:
        return _get_outcome(loss.is_excluded), "", None
    many = counted(difference.n, "query")
    note = (
        f"{many} are too few for an interval" if low is None else f"{many} do not rule out a loss of {figure(abs(low))}"
    )
    note += f". {SKEW}" if difference.is_held_back else "."
    if change.unless_significant:
        return Outcome.PASSED, note, None
    if difference.detectable is None:
        return Outcome.UNDECIDED, note, None
    is_few = is_realistic(loss.more_queries, difference.n)
    number = f"About {loss.more_queries:,} more" if is_few else "No realistic number of queries"
    return Outcome.UNDECIDED, f"{note} {number} would decide.", loss.more_queries


def _check_named_queries(rule: MustNotFail, evidence: Evidence) -> CheckReport:
    name = f"{rule.measure} of {rule.queries[0]}" if len(rule.queries) == 1 else f"{rule.measure} of named queries"
    required = f"each ≥ {figure(rule.at_least)}" if len(rule.queries) > 1 else f"≥ {figure(rule.at_least)}"
    indices = {key: index for index, key in enumerate(evidence.keys)}
    unknown = [key for key in rule.queries if key not in indices]
    if unknown:
        return _undecided(name, required, f"The dataset version has no query {list_some(unknown)}.", len(rule.queries))
    below = []
    for key in rule.queries:
        value = float(evidence.values[rule.measure][indices[key]])
        if evidence.failed[indices[key]]:
            below.append(f"{key} (an error)")
        elif value < rule.at_least:
            below.append(f"{key} ({figure(value)})")
    observed = f"{len(below)} of {len(rule.queries)} below: {list_some(below)}" if below else "none below"
    return CheckReport(name, required, observed, _get_outcome(not below), len(rule.queries), float(len(below)))


def _check_false_answers(at_most: float, evidence: Evidence) -> CheckReport:
    name, required = "false answers", f"≤ {figure(at_most)} of the queries without a relevant document"
    unanswerable = evidence.unanswerable & ~evidence.failed
    n = int(unanswerable.sum())
    if not n:
        return _undecided(name, required, "Every query that was answered has a relevant judgment.", 0)
    answered = int((unanswerable & evidence.returned).sum())
    share = answered / n
    observed = f"{_format_value(share, at_most)} ({answered} of {n} answered)"
    return CheckReport(name, required, observed, _get_outcome(share <= at_most), n, share)


def _check_latency(statistic: str, at_most: float, evidence: Evidence) -> CheckReport:
    name, required = f"{statistic} latency", f"≤ {at_most:g} ms"
    ms = evidence.latency_ms.get(statistic)
    if ms is None:
        return _undecided(name, required, _explain_latency(statistic, evidence))
    note = "The sum of the costs of shared stages, not of single searches." if evidence.shared else ""
    return CheckReport(name, required, f"{ms:g} ms", _get_outcome(ms <= at_most), evidence.samples, ms, note=note)


def _explain_latency(statistic: str, evidence: Evidence) -> str:
    if statistic == "mean" or not evidence.samples:
        return "No search of this run was timed."
    if evidence.shared:
        return "Runs of this benchmark share stages, so no single search was timed: run it with isolated execution."
    return f"{evidence.samples} timed searches are too few for this statistic."


def _check_failed_queries(at_most: int, evidence: Evidence) -> CheckReport:
    errors = [key for key, bad in zip(evidence.keys, evidence.failed, strict=True) if bad]
    failed, n = len(errors), len(evidence.keys)
    observed = f"{failed}: {list_some(errors)}" if failed else "0"
    return CheckReport("failed queries", f"≤ {at_most}", observed, _get_outcome(failed <= at_most), n, float(failed))


def _undecided(name: str, required: str, reason: str, n: int | None = None) -> CheckReport:
    return CheckReport(name, required, "–", Outcome.UNDECIDED, n, note=reason)


def _name_weighting(evidence: Evidence) -> str:
    return "" if evidence.weights is None else f", {BY_DEMAND}"


def _get_outcome(yes: bool) -> Outcome:
    return Outcome.PASSED if yes else Outcome.FAILED


def _format_value(value: float, limit: float) -> str:
    """Return a value with enough digits to differ from its limit: .69996 is not .7."""
    short = figure(value)
    return repr(value) if value != limit and short == figure(limit) else short
