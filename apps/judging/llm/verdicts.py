"""Verdicts of a round's runs under the three policies: people alone, people and a model, a model corrected by people.

Nothing of it is stored: the values of evaluations are people's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apps.benchmarks.models import Run
from apps.judging.errors import RoundStateError
from apps.judging.llm.board import Board, board_of
from apps.judging.llm.calibrating import Calibrated, calibration_of, require_calibration
from apps.judging.llm.sampling import Sample
from apps.judging.models import LLMJudge, Round
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.ir.judging.corrected import Corrected
from benchbench.ir.judging.corrected_pairs import corrected_by_pairs
from benchbench.ir.judging.pool import Item, JudgingError
from benchbench.ir.statistics.resampling import Interval
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.verdict import verdict

HUMAN, FILLED, CORRECTED = "human", "human + llm", "corrected"
POLICIES = (HUMAN, FILLED, CORRECTED)
MEANS = {
    HUMAN: "Judgments and grades of people alone. What nobody judged counts as not relevant, as in every stored value.",
    FILLED: (
        "Grades of people where there are any, the model's in the holes. Its errors are in the differences, and the "
        "intervals do not hold them."
    ),
    CORRECTED: (
        "The model's grades wherever nobody had judged before the round, and people's grades of the calibration sample "
        "to take its bias out (PPI++). The intervals hold the truth whatever the model's errors. Other grades of the "
        "round were chosen, not drawn, and stay out."
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
    `by_model` the model's, `holes` none. `gain` is by how many graded pairs the model enlarges the sample.
    """

    policy: str
    why_not: str = ""
    pairs: Sequence[PairVerdict] = ()
    group: tuple[int, ...] = ()
    queries: int = 0
    judged: int = 0
    by_model: int = 0
    holes: int = 0
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
        gain = "" if told.gain is None else f" The model's grades are worth about {told.gain:+,.0f} graded pairs."
        return f"{best}.{gain}"


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


def _verdict(policy: str, board: Board, calibrated: Calibrated | None) -> PolicyVerdict:
    if policy == HUMAN:
        return _compared(board, HUMAN, board.truths(board.people, board.known))
    if calibrated is None:
        raise RoundStateError("No model has judged this round.")
    require_calibration(calibrated)
    if policy == FILLED:
        return _compared(board, FILLED, board.truths(board.people, board.known, board.model))
    return _corrected(board, calibrated)


def _compared(board: Board, policy: str, truths: Sequence[Mapping[int, int]]) -> PolicyVerdict:
    comparison = compare(board.values(truths), seed=_seed(board))
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
    holes = [item for item in map(board.pool.item, range(board.pool.size)) if not _is_known(board, item)]
    corrections = _corrections(board, calibrated.sample)
    began = board.round.pool_size
    if len(holes) != began or not board.pool.numbers.keys() >= corrections.keys():
        raise JudgingError(
            f"The round began with {counted(began, 'pair')} that nobody had judged, and its runs return other pairs "
            f"now, {len(holes):,}: runs were deleted or searched again. Its calibration sample is no sample of these. "
            "Open a round over the runs that there are, and calibrate the model there."
        )
    # What the model could not tell counts as not relevant: a prediction may be anything, its errors are corrected.
    predicted = board.truths(board.known, board.model, board.unsure)
    if not holes:
        raise JudgingError("Every pair of these runs was judged before the round: there is nothing to correct.")
    asked = sum(item.document in predicted[item.query] for item in holes)
    if asked < len(holes):
        raise JudgingError(
            f"The model judged {asked:,} of {counted(len(holes), 'pair')} that nobody had judged in the pool, and "
            "a correction needs all: let it go on, in a round whose items are the whole pool."
        )
    if board.measure.cutoff is None or board.measure.cutoff > board.round.depth:
        raise JudgingError(
            f"{board.measure} looks deeper than the pool of the round, {board.round.depth:,} documents: a correction "
            "needs a measure with a cutoff within it."
        )
    told = corrected_by_pairs(
        board.pool,
        board.measure,
        predicted,
        corrections,
        len(calibrated.sample.done) / len(holes),
        seed=_seed(board),
        known=board.truths(board.known),
    )
    return _told(board, told, holes=len(holes))


def _told(board: Board, told: Corrected, *, holes: int) -> PolicyVerdict:
    return PolicyVerdict(
        CORRECTED,
        pairs=[_pair(pair) for pair in told.pairs],
        group=told.group or (),
        queries=told.queries,
        judged=told.judged,
        by_model=holes,
        holes=0,
        gain=told.gain,
        estimand=told.estimand,
    )


def _is_known(board: Board, item: Item) -> bool:
    return item.document in board.known.get(board.query_ids[item.query], {})


def _corrections(board: Board, sample: Sample) -> dict[Item, float]:
    """Return people's grades of the sample; what they could not tell stays unjudged, and so counts as not relevant."""
    place_of = {query: place for place, query in enumerate(board.query_ids)}
    return {Item(place_of[pair.query_id], pair.document_id): float(pair.grade or 0) for pair in sample.done}


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


def _seed(board: Board) -> int:
    return board.round.seed & 0xFFFF_FFFF
