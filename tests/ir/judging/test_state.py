"""The state of a round as a verdict on some of its runs: standings, pairs seen from either side, records."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchbench.ir.judging.outcomes import Criterion, Outcomes
from benchbench.ir.judging.state import MoreGrades, PairState, RunState, State
from benchbench.ir.statistics.max_t import pair_runs


def make_pair(first: int, second: int, difference: float, outcome: int) -> PairState:
    return PairState(
        *(first, second, difference - 0.2, difference + 0.1, difference, 0.01, outcome, 0.9, True),
        *(difference - 0.02, difference + 0.03, 0.05),
    )


STATE = State(
    pairs=(make_pair(0, 1, -0.1, -1), make_pair(0, 2, 0.02, 0), make_pair(1, 2, 0.12, 0)),
    runs=(RunState(0.5, 0.45, 0.55), RunState(0.6, 0.55, 0.65), RunState(0.48, 0.4, 0.5)),
    verdict=(1, 2),
    winner=None,
    probability=0.97,
    threshold=0.95,
    is_settled=True,
    is_certain=False,
    judged=100,
    unjudged=50,
    queries=40,
    grades_needed=MoreGrades(median=0, p90=0),
    reason=None,
)


def test_records_give_equal_states():
    assert State.from_record(json.loads(json.dumps(STATE.as_record()))) == STATE


def test_a_record_without_a_threshold_is_read():
    record = {name: value for name, value in STATE.as_record().items() if name != "threshold"}
    assert State.from_record(record) == replace(STATE, threshold=None)


def test_a_pair_is_seen_from_either_side():
    assert STATE.get_pair(0, 1) == STATE.pairs[0]
    turned = STATE.get_pair(1, 0)
    assert (turned.first, turned.second, turned.difference, turned.outcome) == (1, 0, 0.1, 1)
    assert (turned.low, turned.high) == pytest.approx((0.07, 0.12))
    assert (turned.lower_bound, turned.upper_bound) == pytest.approx((0.0, 0.3))
    assert turned.reversed == STATE.pairs[0]


def test_all_runs_have_the_joint_verdict():
    verdict = STATE.judge([2, 0, 1])
    assert verdict.reference == 2
    assert (verdict.undecided, verdict.worse, verdict.better) == ((0,), (1,), ())
    assert verdict.group == (2, 0)


def test_some_runs_have_the_outcomes_of_their_pairs():
    verdict = STATE.judge([0, 2])
    assert (verdict.reference, verdict.undecided, verdict.winner) == (0, (1,), None)
    assert STATE.judge([0, 1]).winner == 1


def test_a_baseline_is_the_reference():
    verdict = STATE.judge([0, 1, 2], baseline=0)
    assert (verdict.reference, verdict.better, verdict.undecided, verdict.worse) == (0, (1,), (2,), ())
    assert verdict.find_standing(1) == "better"
    assert verdict.find_standing(0) == "baseline"


def test_margins_cover_queries_and_holes():
    """Without holes a margin is critical × standard error; fillings that differ add their variance (Rubin 1987)."""
    rng = np.random.default_rng(3)
    values = rng.random((1, 2, 30))
    pairs = pair_runs(2, None)
    alike = Outcomes.from_values(np.repeat(values, 5, axis=0), pairs, Criterion(2.0, np.ones(1)))
    difference = values[0, 0] - values[0, 1]
    assert alike.margins == pytest.approx([2.0 * difference.std(ddof=1) / np.sqrt(30)])
    differing = Outcomes.from_values(rng.random((5, 2, 30)), pairs, Criterion(2.0, np.ones(1)))
    within = np.mean(differing.errors[:, 0] ** 2)
    between = np.var(differing.differences[:, 0], ddof=1)
    assert differing.margins == pytest.approx([2.0 * np.sqrt(within + 1.2 * between)])
    assert np.isinf(replace(differing, critical=np.inf).margins).all()
