"""Verdicts of a round's runs under the three policies: people alone, people and a model, a model corrected by people.

Nothing of it is stored: the values of evaluations are people's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from apps.benchmarks.models import Run
from apps.judging.errors import RoundStateError
from apps.judging.llm.board import Board, board_of
from apps.judging.llm.calibrating import Calibrated, calibration_of, require_calibration
from apps.judging.llm.correcting import corrected, holes_of
from apps.judging.models import LLMJudge, Round
from benchbench.errors import BenchbenchError
from benchbench.ir.statistics.resampling import Interval
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.verdict import verdict

Policy = Literal["human", "human + llm", "corrected"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
HUMAN, FILLED, CORRECTED = POLICIES
MEANS = {
    HUMAN: "Judgments and grades of people alone. What nobody judged counts as not relevant, as in every stored value.",
    FILLED: (
        "Grades of people where there are any, the model's in the holes. Its errors are in the differences, and the "
        "intervals do not hold them."
    ),
    CORRECTED: (
        "The model's grades wherever nobody had judged before the round, and people's grades of the first queries of "
        "a random order to remove its bias (PPI++). The intervals hold the truth whatever the model's errors. Other "
        "grades of the round stay out: they are no part of that random sample."
    ),
}


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """Two runs, by their places; the difference is `first` − `second`."""

    first: int
    second: int
    difference: float
    interval: Interval
    simultaneous: Interval | None
    p_adjusted: float
    significant: bool


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """The verdict under one policy, or in `why_not` why there is none.

    `group` are the places of the best run and of what cannot be told from it. `judged` pairs have a person's grade,
    `by_model` the model's, `holes` none. A correction has `sampled` queries that people judged whole, and `gain` is the
    number of queries by which the model enlarges that sample.
    """

    policy: Policy
    why_not: str = ""
    pairs: Sequence[PairVerdict] = ()
    group: tuple[int, ...] = ()
    queries: int = 0
    judged: int = 0
    by_model: int = 0
    holes: int = 0
    sampled: int = 0
    gain: float | None = None
    estimand: str = ""

    @property
    def meaning(self) -> str:
        return MEANS[self.policy]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The three verdicts of a round's runs; places are those of `runs`."""

    calibrated: Calibrated | None
    measure: str
    runs: Sequence[Run]
    of: list[PolicyVerdict] = field(default_factory=list)

    def sentence(self, told: PolicyVerdict) -> str:
        """Return one of the verdicts, for the reader."""
        if told.why_not:
            return told.why_not
        names = ", ".join(f'"{self.runs[place]}"' for place in told.group)
        best = f"Best is {names}" if len(told.group) == 1 else f"The best cannot be told apart: {names}"
        if told.gain is None:
            return f"{best}."
        return f"{best}. The model's grades are worth about {told.gain:+,.0f} judged queries."


def verdicts_of(round: Round, judge: LLMJudge | None) -> Verdicts:
    """Return the verdicts of a round's runs under the three policies, side by side, at 95 % for all pairs together.

    Those with the model's grades need its calibration and say so where it is missing or stale. The compared queries are
    those that every run answered.
    """
    board = board_of(round, judge)
    calibrated = calibration_of(judge, board) if judge else None
    told = Verdicts(calibrated, str(board.measure), board.runs)
    for policy in POLICIES:
        try:
            told.of.append(_verdict(policy, board, calibrated))
        except BenchbenchError as error:
            told.of.append(PolicyVerdict(policy, error.message))
    return told


def _verdict(policy: Policy, board: Board, calibrated: Calibrated | None) -> PolicyVerdict:
    if policy == HUMAN:
        return _compared(board, HUMAN, board.truths(board.people, board.known))
    if calibrated is None:
        raise RoundStateError("No model has judged this round.")
    require_calibration(calibrated)
    if policy == FILLED:
        return _compared(board, FILLED, board.truths(board.people, board.known, board.model))
    return _corrected(board, calibrated)


def _compared(board: Board, policy: Policy, truths: Sequence[Mapping[int, int]]) -> PolicyVerdict:
    comparison = compare(board.values(truths), seed=board.draw)
    by_people = board.truths(board.people, board.known)
    cells = board.pool.there
    judged = int((~np.isnan(board.pool.grades(by_people)) & cells).sum())
    graded = int((~np.isnan(board.pool.grades(truths)) & cells).sum())
    return PolicyVerdict(
        policy,
        pairs=[_pair(pair) for pair in comparison.pairs],
        group=tuple(sorted(verdict(comparison).group)),
        queries=comparison.n,
        judged=judged,
        by_model=graded - judged,
        holes=board.pool.size - graded,
        estimand=f"mean difference in {board.measure}",
    )


def _corrected(board: Board, calibrated: Calibrated) -> PolicyVerdict:
    holes = holes_of(board)
    told, judged = corrected(board, calibrated, holes)
    return PolicyVerdict(
        CORRECTED,
        pairs=[_pair(pair) for pair in told.pairs],
        group=told.group or (),
        queries=told.queries,
        judged=judged,
        by_model=len(holes),
        holes=0,
        sampled=told.judged,
        gain=told.gain,
        estimand=told.estimand,
    )


def _pair(pair: Any) -> PairVerdict:
    return PairVerdict(
        pair.first,
        pair.second,
        pair.difference,
        pair.interval,
        pair.simultaneous,
        pair.p_adjusted,
        pair.significant,
    )
