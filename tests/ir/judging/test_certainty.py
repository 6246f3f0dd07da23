"""When a round is settled: the calibrated probability, no flicker, and the same answer of any process."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from benchbench.ir.judging.certainty import ENTER, ENTER_WITH_MODEL, calibrate, find_threshold, is_due
from benchbench.ir.judging.judging import Judging
from benchbench.ir.judging.pool import Pool
from benchbench.ir.judging.state import State
from tests.ir.judging.drawn import NDCG, benchmark

DRAWS = 200


def test_probability_rises_with_the_share_and_stays_a_probability():
    answers = [calibrate(hits / DRAWS, DRAWS) for hits in range(DRAWS + 1)]
    assert answers == sorted(answers)
    assert 0 < answers[0] < 0.1
    assert ENTER < answers[-1] < 1


def test_share_of_half_settles_nothing():
    assert 0.4 < calibrate(0.5, DRAWS) < 0.6


@pytest.mark.parametrize(
    ("shared", "kappa", "threshold"),
    [
        (0, None, ENTER),
        (30, None, ENTER),
        (30, 0.4, ENTER_WITH_MODEL),
        (29, 0.9, ENTER),
        (300, 0.39, ENTER),
        (300, -1, ENTER),
    ],
)
def test_only_a_model_that_agrees_lowers_the_threshold(shared, kappa, threshold):
    assert find_threshold(shared, kappa) == threshold


def test_agreement_is_measured_on_shared_pairs():
    rankings, truths = benchmark(4, queries=40, gap=0.5)
    pool = Pool.from_rankings(rankings, depth=5)
    items = [pool.get_item(number) for number in range(pool.size)]
    grades = np.array([truths[item.query][item.document] for item in items], float)
    judging = Judging(pool, NDCG, [0, 1, 2], [{} for _ in truths], seed=4)
    for item, grade in zip(items[:40], grades, strict=False):
        judging.grade(item, grade)
    assert judging.state(bounds=False).threshold == ENTER
    few = grades.copy()
    few[:11] = np.nan  # 29 shared pairs
    for model, threshold in ((grades, ENTER_WITH_MODEL), (few, ENTER), (2 - grades, ENTER)):
        judging.inform(model)
        assert judging.state(bounds=False).threshold == threshold


@cache
def played(seed: int, *, gap: float) -> tuple[Judging, list, list[State]]:
    """A round grade by grade, by depth, and its states."""
    rankings, truths = benchmark(seed, queries=40, gap=gap)
    pool = Pool.from_rankings(rankings, depth=5)
    judging = Judging(pool, NDCG, [0, 1, 2], [{} for _ in truths], seed=seed)
    order = np.argsort(pool.best[tuple(pool.cells.T)], kind="stable").tolist()
    items = [pool.get_item(number) for number in order]
    states: list[State] = []
    for item in items:
        judging.grade(item, truths[item.query][item.document])
        states.append(judging.state(before=states[-1] if states else None, bounds=False))
    return judging, [(item, truths[item.query][item.document]) for item in items], states


@pytest.mark.parametrize(("seed", "gap"), [(4, 0.5), (3, 0.2), (10, 0.2)])
def test_settled_round_stays_settled_while_its_verdict_is_likely(seed, gap):
    _, _, states = played(seed, gap=gap)
    crossings = np.flatnonzero(np.diff([state.probability >= ENTER for state in states]))
    assert len(crossings) >= 7, "the probability alone flickers"
    turns = np.flatnonzero(np.diff([state.is_settled for state in states]))
    assert len(turns) == 1
    settled = states[turns[0] + 1 :]
    assert {state.verdict for state in settled} == {settled[0].verdict}
    assert min(state.probability for state in settled) < ENTER
    assert {state.grades_needed.median for state in settled} == {0}


def test_a_round_that_was_settled_wrongly_is_open_again():
    _, _, states = played(6, gap=0.3)
    settled = [state.is_settled for state in states]
    left = next(index for index in range(1, len(states)) if settled[index - 1] and not settled[index])
    assert states[left].verdict != states[left - 1].verdict
    assert states[-1].is_settled


def test_any_process_settles_a_round_at_the_same_grade():
    """Another process has the grades and the state before, and has fitted no model to fewer grades."""
    judging, graded, states = played(4, gap=0.5)
    turn = next(index for index, state in enumerate(states) if state.is_settled)
    for position in (turn - 2, turn - 1, turn, turn + 1, turn + 30):
        fresh = Judging(judging.pool, NDCG, [0, 1, 2], [{} for _ in range(judging.pool.queries)], seed=4)
        for item, grade in graded[: position + 1]:
            fresh.grade(item, grade)
        before = State.from_record(states[position - 1].as_record())
        state = fresh.state(before=before, bounds=False)
        assert (state.is_settled, before.is_settled) == (position >= turn, position > turn)
        assert not state.is_settled or (state.verdict, state.probability) == (
            states[position].verdict,
            states[position].probability,
        )


def test_rounds_become_settled_only_at_steps_of_grades():
    assert is_due(7, None)
    _, _, states = played(4, gap=0.5)
    turn = next(index for index, state in enumerate(states) if state.is_settled)
    assert is_due(states[turn].judged, states[turn - 1])
    due = [is_due(state.judged, before) for before, state in pairwise(states)]
    assert 40 < sum(due[20:]) < 70
    assert all(due[:10])
