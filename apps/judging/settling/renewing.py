"""Renewing the state of a round: grading enqueues a renewal and does not wait; readers see whether it is current.

A worker renews it within seconds, once for all requests made meanwhile. If no worker takes the job, the process that
needs the state computes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from apps.judging.models import Grade, Round, RoundState
from apps.judging.settling.consensus import HumanGrades, load_human_grades
from apps.judging.settling.deciding import hash_basis, load_runs, renew
from apps.judging.settling.evidence import load_evidence
from apps.operations.queueing import enqueue_once
from apps.records.models import Run
from benchbench.ir.judging.state import State

RENEW_STATE = "apps.judging.tasks.renew_state"
RENEWED_AFTER = 10  # new grades after which this process renews, if no worker does


@dataclass(frozen=True, slots=True)
class RoundStatus:
    """The most recently computed state of a round, with its runs in the order in which the state numbers them.

    `human_grades`: people's grades now. `is_current`: whether the state counts all of them.
    """

    row: RoundState
    runs: Sequence[Run]
    human_grades: HumanGrades
    is_current: bool

    @property
    def state(self) -> State | None:
        """The state; None for a round that compares no runs."""
        return State.from_record(self.row.state) if self.row.state else None

    @property
    def inclusion_probability(self) -> float:
        """Inclusion probability of a pair that was unjudged before the round, after the counted grades."""
        return self.row.sample_size / max(self.row.sampled_from, 1)


def load_round_status(round: Round) -> RoundStatus:
    """Return the state of a round: the current one, or the last one while a worker computes the next."""
    runs = load_runs(round)
    basis, human_grades = hash_basis(round, runs), load_human_grades(round)
    row = RoundState.objects.filter(round=round, computed_at__isnull=False).defer("board").first()
    if row is not None and not round.is_open and row.state and "runs" in row.state:
        return RoundStatus(row, runs, human_grades, is_current=True)  # as its version carries it
    model = load_evidence(round)
    mark = human_grades.compute_mark(basis + model.mark)
    if row is None or row.basis != basis or (row.mark != mark and not enqueue_renewal(round)):
        row = renew(round, runs=runs, model=model)
        if row.mark != mark:
            human_grades = load_human_grades(round)
            mark = human_grades.compute_mark(basis + model.mark)
    return RoundStatus(row, runs, human_grades, row.mark == mark)


def request_renewal(round: Round) -> None:
    """Enqueue a renewal of the state of a round.

    If no worker takes it, this process renews the state after RENEWED_AFTER new grades and updates `round`, including
    whether it is settled.
    """
    if enqueue_renewal(round):
        return
    graded = Grade.objects.filter(item__round=round, source=Grade.Source.HUMAN, kind=Grade.Kind.GRADE).count()
    counted = RoundState.objects.filter(round=round).values_list("grades", flat=True).first() or 0
    if abs(graded - counted) >= RENEWED_AFTER:
        renew(round)


def enqueue_renewal(round: Round) -> bool:
    return enqueue_once(RENEW_STATE, str(round.pk))
