"""Rules held against hand-made evidence."""

import numpy as np
import pytest

from benchbench.ir.gate import (
    Change,
    Difference,
    Evidence,
    Floor,
    MustNotFail,
    Outcome,
    Rules,
    combine,
    judge,
)
from benchbench.ir.measures import Measure
from benchbench.ir.profiles import Mean

NDCG = Measure("nDCG", 10)
LENIENT = Change(NDCG, may_lose=0.01, unless_significant=True)
PASSED, FAILED, UNDECIDED = Outcome.PASSED, Outcome.FAILED, Outcome.UNDECIDED


def evidence(**supplied):
    """Four queries: b failed, d has no relevant judgment and was left unanswered."""
    created = {
        "keys": ["a", "b", "c", "d"],
        "failed": np.array([False, True, False, False]),
        "counted": np.array([True, False, True, True]),
        "n_judgments": np.array([3, 1, 1, 0]),
        "values": {NDCG: np.array([1.0, np.nan, 0.5, 0.0])},
        "slices": {"hard": np.array([False, True, True, False])},
        "unanswerable": np.array([False, False, False, True]),
        "returned": np.array([True, False, True, False]),
        "latency_ms": {"mean": 12.0, "p50": 10.0, "p95": 30.0},
        "samples": 3,
        "shared": False,
        "differences": {},
    }
    return Evidence(**(created | supplied))


def only(rules, **supplied):
    [check] = judge(rules, evidence(**supplied))
    return check


def test_floor_is_inclusive_and_applies_to_the_counted_mean():
    check = only(Rules(floors=(Floor(NDCG, 0.5),)))
    assert (check.name, check.required, check.observed, check.n) == ("nDCG@10", "≥ .5000", ".5000", 3)
    assert (check.outcome, check.value) == (PASSED, 0.5)
    assert only(Rules(floors=(Floor(NDCG, 0.51),))).outcome == FAILED


@pytest.mark.parametrize(
    ("mean", "name", "value", "n"),
    [
        (Mean.BENCHMARK, "nDCG@10", 1.5 / 3, 3),
        (Mean.MACRO, "nDCG@10, macro mean", 1.5 / 2, 2),
        (Mean.WEIGHTED, "nDCG@10, weighted mean", 3.5 / 4, 2),
    ],
)
def test_a_floor_is_on_the_mean_that_it_names(mean, name, value, n):
    """Query d has no judgment, a has three."""
    check = only(Rules(floors=(Floor(NDCG, 0.5, mean=mean),)))
    assert (check.name, check.value, check.n, check.mean) == (name, value, n, mean)


def test_failing_value_that_rounds_to_limit_shows_more_digits():
    check = only(Rules(floors=(Floor(NDCG, 0.7),)), values={NDCG: np.array([0.69999, 0, 0.69999, 0.69999])})
    assert (check.outcome, check.observed) == (FAILED, "0.69999")


def test_a_floor_of_a_slice_counts_only_its_queries():
    rules, answered = Rules(floors=(Floor(NDCG, 0.6, "hard"),)), np.zeros(4, bool)
    check = only(rules, failed=answered, values={NDCG: np.array([1.0, 0.9, 0.1, 0.0])}, counted=~answered)
    assert (check.name, check.observed, check.n, check.outcome) == ("nDCG@10 in hard", ".5000", 2, FAILED)


def test_slice_floor_is_undecided_with_too_many_missing_queries():
    check = only(Rules(floors=(Floor(NDCG, 0.1, "hard"),)))
    assert (check.outcome, check.n) == (UNDECIDED, 1)
    assert check.note == "1 of 2 queries of the slice have no value, more than 5 %."


@pytest.mark.parametrize(
    ("floor", "reason"),
    [
        (Floor(NDCG, 0.1, "hard", 2), "1 query counted here; the rule asks for 2."),
        (Floor(NDCG, 0.1, "easy"), "The slice 'easy' does not exist. Choose one of hard."),
    ],
)
def test_missing_or_too_small_slice_is_undecided(floor, reason):
    check = only(Rules(floors=(floor,)))
    assert (check.outcome, check.note) == (UNDECIDED, reason)


@pytest.mark.parametrize(
    ("change", "difference", "outcome"),
    [
        (Change(NDCG, may_lose=0.01), Difference(-0.05, (-0.08, -0.02), True, 9), FAILED),
        (Change(NDCG, may_lose=0.08), Difference(-0.05, (-0.08, -0.02), True, 9), PASSED),  # no larger one is possible
        (
            Change(NDCG, may_lose=0.05),
            Difference(-0.05, (-0.08, -0.02), True, 9),
            UNDECIDED,
        ),  # not larger, but possible
        (Change(NDCG, may_lose=0.01), Difference(-0.05, (-0.12, 0.02), False, 9), UNDECIDED),  # not significant
        (Change(NDCG, may_lose=0.01), Difference(0.05, (-0.02, 0.12), False, 9), UNDECIDED),
        (LENIENT, Difference(-0.05, (-0.12, 0.02), False, 9), PASSED),
        (LENIENT, Difference(-0.005, (-0.009, -0.001), True, 9), PASSED),
        (LENIENT, Difference(-0.05, (-0.08, -0.02), True, 9), FAILED),
        (Change(NDCG, may_lose=0.01), Difference(0.05, (0.02, 0.08), True, 9), PASSED),
        (Change(NDCG, may_lose=0.0), Difference(0.0, (-0.1, 0.1), False, 9, is_unchanged=True), PASSED),
        (Change(NDCG, must_gain=0.0), Difference(0.0, (-0.1, 0.1), False, 9, is_unchanged=True), FAILED),
        (Change(NDCG, must_gain=0.02), Difference(0.05, (0.02, 0.08), True, 9), PASSED),
        (Change(NDCG, must_gain=0.05), Difference(0.05, (0.02, 0.08), True, 9), PASSED),
        (Change(NDCG, must_gain=0.06), Difference(0.05, (0.02, 0.08), True, 9), FAILED),
        (Change(NDCG, must_gain=0.02), Difference(0.05, (-0.02, 0.12), False, 9), FAILED),
        (Change(NDCG, must_gain=0.0), Difference(-0.05, (-0.08, -0.02), True, 9), FAILED),
        (Change(NDCG, may_lose=0.01), Difference(-0.05, None, False, 4, can_be_significant=False), UNDECIDED),
        (LENIENT, Difference(-0.05, None, False, 4, can_be_significant=False), UNDECIDED),
        (Change(NDCG, may_lose=0.01), Difference(-0.05, None, False, 12), UNDECIDED),  # too few for an interval
        (Change(NDCG, may_lose=0.01), Difference(-0.05, None, True, 12), FAILED),
        (LENIENT, Difference(-0.05, None, False, 12), PASSED),
        (Change(NDCG, must_gain=0.02), Difference(0.05, None, True, 12), PASSED),
        (Change(NDCG, may_lose=0.01), "Another dataset version.", UNDECIDED),
    ],
)
def test_a_large_significant_change_fails(change, difference, outcome):
    assert only(Rules(changes=(change,)), differences={NDCG: difference}).outcome == outcome


def test_change_check_notes_the_loss_not_ruled_out():
    difference = Difference(-0.005, (-0.04, 0.03), False, 60, detectable=0.05)
    check = only(Rules(changes=(Change(NDCG, may_lose=0.01),)), differences={NDCG: difference})
    assert check.required == "no loss > .0100"
    assert check.observed == "−.0050 [−.0400, +.0300]"
    assert check.note == "60 queries do not rule out a loss of .0400. No realistic number of queries would decide."
    assert (check.outcome, check.more_queries) == (UNDECIDED, 6000)
    lenient = only(Rules(changes=(LENIENT,)), differences={NDCG: difference})
    assert lenient.required == "no significant loss > .0100"
    assert lenient.note == "60 queries do not rule out a loss of .0400."
    assert (lenient.outcome, lenient.more_queries) == (PASSED, None)
    level = Difference(-0.01, (-0.04, 0.02), False, 60, detectable=0.05)
    check = only(Rules(changes=(Change(NDCG, may_lose=0.01),)), differences={NDCG: level})
    assert check.note.endswith("No realistic number of queries would decide.")


def test_a_check_says_when_skew_decides():
    claimed = Difference(0.05, (-0.02, 0.12), False, 60, detectable=0.08, is_held_back=True)
    for change in (Change(NDCG, may_lose=0.01), Change(NDCG, must_gain=0.02)):
        note = only(Rules(changes=(change,)), differences={NDCG: claimed}).note
        assert "Few queries with large differences could turn the result" in note
    short = Difference(-0.05, None, False, 12, detectable=0.08)
    check = only(Rules(changes=(Change(NDCG, may_lose=0.01),)), differences={NDCG: short})
    assert (check.observed, check.note.partition(".")[0]) == ("−.0500", "12 queries are too few for an interval")


def test_loss_passes_only_where_the_interval_excludes_it():
    """For any loss, interval and limit: passed excludes a greater loss, failed is significant, and none is both."""
    draw = np.random.default_rng(3)
    outcomes = set()
    for _ in range(2000):
        mean, half, limit = draw.normal(0, 0.05), draw.exponential(0.05), draw.exponential(0.03)
        significant = abs(mean) > half
        difference = Difference(mean, (mean - half, mean + half), significant, 50, detectable=1.4 * half)
        check = only(Rules(changes=(Change(NDCG, may_lose=limit),)), differences={NDCG: difference})
        lenient = Change(NDCG, may_lose=limit, unless_significant=True)
        relaxed = only(Rules(changes=(lenient,)), differences={NDCG: difference}).outcome
        assert (check.outcome == PASSED) == (mean - half >= -limit)
        assert (check.outcome == FAILED) == (significant and mean < -limit)
        assert relaxed == (FAILED if check.outcome == FAILED else PASSED)
        assert check.more_queries is None or (check.outcome == UNDECIDED and check.more_queries > 0)
        outcomes.add(check.outcome)
    assert outcomes == {PASSED, FAILED, UNDECIDED}


def test_named_queries_must_not_fail():
    check = only(Rules(must_not_fail=(MustNotFail(("a", "b", "c"), NDCG, 0.6),)))
    assert (check.outcome, check.observed, check.n) == (FAILED, "2 of 3 below: b (an error), c (.5000)", 3)
    assert only(Rules(must_not_fail=(MustNotFail(("a", "c"), NDCG, 0.5),))).outcome == PASSED
    unknown = only(Rules(must_not_fail=(MustNotFail(("a", "z"), NDCG, 0.5),)))
    assert (unknown.outcome, unknown.note) == (UNDECIDED, "The dataset version has no query z.")


def test_false_answers_are_a_share_of_unanswerable_queries():
    requests = {"unanswerable": np.array([True, True, False, True]), "returned": np.array([True, False, True, False])}
    check = only(Rules(false_answers=0.4), **requests)
    assert (check.outcome, check.observed, check.n) == (FAILED, ".5000 (1 of 2 answered)", 2)
    assert only(Rules(false_answers=0.5), **requests).outcome == PASSED
    assert only(Rules(false_answers=0.5), unanswerable=np.zeros(4, bool)).outcome == UNDECIDED


@pytest.mark.parametrize(
    ("statistic", "limit", "supplied", "outcome"),
    [
        ("p95", 30.0, {}, PASSED),
        ("p95", 29.9, {}, FAILED),
        ("p99", 100.0, {}, UNDECIDED),  # three samples
        ("mean", 12.0, {"shared": True}, PASSED),
        ("p95", 100.0, {"shared": True, "latency_ms": {"mean": 12.0}}, UNDECIDED),
        ("mean", 100.0, {"latency_ms": {}, "samples": 0}, UNDECIDED),
    ],
)
def test_a_latency_has_a_limit(statistic, limit, supplied, outcome):
    check = only(Rules(latency_ms=((statistic, limit),)), **supplied)
    assert check.outcome == outcome
    assert "share" in check.note or not supplied.get("shared")


def test_failed_queries_are_counted_and_named():
    check = only(Rules(failed_queries=0))
    assert (check.outcome, check.observed, check.n) == (FAILED, "1: b", 4)
    assert only(Rules(failed_queries=1)).outcome == PASSED


def test_undecided_check_never_passes():
    assert combine([PASSED, PASSED]) == PASSED
    assert combine([PASSED, FAILED]) == FAILED
    assert combine([UNDECIDED, PASSED]) == UNDECIDED
    assert combine([FAILED, UNDECIDED, PASSED]) == FAILED, "however the undecided one turns out"
