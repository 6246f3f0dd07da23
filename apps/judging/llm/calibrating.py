"""Calibration of a model as the judge of a round: its grades against people's on the round's calibration sample.

No figure is told under a model's name without one: not before people and the model judged enough of the sample, and
not once model, prompt or scale changed.
"""

from dataclasses import dataclass, field

import numpy as np

from apps.judging.errors import RoundStateError
from apps.judging.llm.board import Board, Grades, board_of
from apps.judging.llm.families import kinship
from apps.judging.llm.launching import changes_of
from apps.judging.llm.sampling import Sample, sample_of
from apps.judging.models import LLMJudge
from apps.judging.scales import grades_of
from benchbench.decimals import counted
from benchbench.ir.judging.calibration import LEAST, Calibration, OrderEffect, calibrate, order_effect


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Calibration of a model: figures, or why there are none.

    `used` pairs of the sample are in the figures. Of those that people are done with, `unsure_people` and
    `unsure_model` have no grade, as people or the model could not tell, and stay out.
    """

    judge: LLMJudge
    sample: Sample
    changes: list[str]
    why_not: str
    used: int = 0
    unsure_people: int = 0
    unsure_model: int = 0
    figures: Calibration | None = None
    effect: OrderEffect | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def is_stale(self) -> bool:
        return bool(self.changes)


def calibration_of(judge: LLMJudge, board: Board | None = None) -> Calibrated:
    """Return the calibration of a model. It asks the model's server for its revision."""
    sample, changes = sample_of(judge.round), changes_of(judge)
    runs = list(judge.round.runs.select_related("benchmark").order_by("benchmark", "run_order"))
    warnings = kinship(judge, runs)
    if changes:
        why = f"The calibration is stale, since {' and '.join(changes)}: let the model judge again."
        return Calibrated(judge, sample, changes, why, warnings=warnings)
    if not sample.size:
        why = "The round has no calibration sample: draw one."
        return Calibrated(judge, sample, changes, why, warnings=warnings)
    board = board or board_of(judge.round, judge)
    people, model, counts = _sampled(board, sample)
    used = sum(map(len, people.values()))
    if used < LEAST:
        why = (
            f"{counted(used, 'pair')} of the calibration sample {'is' if used == 1 else 'are'} judged by people and by "
            f"the model, and {LEAST} are the least: {_missing(sample, counts)}."
        )
        return Calibrated(judge, sample, changes, why, used, *counts[:2], warnings=warnings)
    pairs = [(query, document) for query in people for document in people[query]]
    figures = calibrate(
        [people[query][document] for query, document in pairs],
        [model[query][document] for query, document in pairs],
        grades_of(judge.round.scale),
        seed=judge.round.seed & 0xFFFF_FFFF,
    )
    return Calibrated(
        judge, sample, changes, "", used, *counts[:2], figures, _effect(board, people, model), warnings=warnings
    )


def require_calibration(calibrated: Calibrated) -> None:
    """Raise RoundStateError where no figure may be told under the model's name."""
    if calibrated.why_not:
        raise RoundStateError(f"{calibrated.judge} has no calibration. {calibrated.why_not}")


def _sampled(board: Board, sample: Sample) -> tuple[Grades, Grades, tuple[int, int, int]]:
    """Return what people and the model said of the pairs that both graded; and how many pairs people could not tell,
    the model could not tell, and the model was not asked of. The first that it was not asked of ends the sample."""
    people: Grades = {}
    model: Grades = {}
    unsure_people = unsure_model = 0
    for place, pair in enumerate(sample.done):
        said = board.model.get(pair.query_id, {}).get(pair.document_id)
        unsure = pair.document_id in board.unsure.get(pair.query_id, {})
        if said is None and not unsure:
            return people, model, (unsure_people, unsure_model, len(sample.done) - place)
        unsure_people += pair.grade is None
        unsure_model += unsure
        if pair.grade is not None and said is not None:
            people.setdefault(pair.query_id, {})[pair.document_id] = pair.grade
            model.setdefault(pair.query_id, {})[pair.document_id] = said
    return people, model, (unsure_people, unsure_model, 0)


def _missing(sample: Sample, counts: tuple[int, int, int]) -> str:
    reasons = [
        (sample.waiting, "{} for people's grades"),
        (counts[2], "{} for the model's"),
    ]
    waiting = [reason.format(f"{counted(count, 'pair')} wait") for count, reason in reasons if count]
    return " and ".join(waiting) or "draw a larger sample in a new round, since people or the model could not tell"


def _effect(board: Board, people: Grades, model: Grades) -> OrderEffect | None:
    """Return what the model's grades in people's place do to the runs, on the queries that have a sampled pair."""
    columns = [place for place, query in enumerate(board.query_ids) if query in people]
    by_people = board.values(board.truths(board.known, people))[:, columns]
    by_model = board.values(board.truths(board.known, model))[:, columns]
    if not board.runs or np.isnan(by_people).any(axis=0).all():
        return None
    return order_effect(by_people, by_model)
