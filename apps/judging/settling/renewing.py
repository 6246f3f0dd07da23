"""Renewing the state of a round: who grades asks for it and waits for nothing; who looks at it is told how old it is.

A worker does it within seconds, once however often it is asked for meanwhile. Where no worker lives, or none comes to
it, whoever needs the state does it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from apps.benchmarks.models import Run
from apps.judging.models import Grade, Round, RoundState
from apps.judging.settling.consensus import Said, said_in
from apps.judging.settling.deciding import basis_of, renew, runs_of
from apps.judging.settling.evidence import model_evidence
from apps.operations.queueing import RENEW_STATE, enqueue_once
from benchbench.ir.judging.state import State

RENEWED_AFTER = 10  # grades, where no worker does it


@dataclass(frozen=True, slots=True)
class KnownState:
    """The state of a round that was computed last: its row, and the runs that it names by their places.

    `is_current` tells whether it counts what people say now, `said`.
    """

    row: RoundState
    runs: Sequence[Run]
    said: Said
    is_current: bool

    @property
    def state(self) -> State | None:
        """None for a round that compares nothing."""
        return State.of_record(self.row.state) if self.row.state else None

    @property
    def inclusion_probability(self) -> float:
        """Inclusion probability of a pair that was unjudged before the round, after the counted grades."""
        return self.row.sample_size / max(self.row.sampled_from, 1)


def known_state(round: Round) -> KnownState:
    """Return the state of a round: that of now, or the last one while a worker computes the next."""
    runs = runs_of(round)
    basis, said = basis_of(round, runs), said_in(round)
    row = RoundState.objects.filter(round=round, renewed_at__isnull=False).defer("board").first()
    model = model_evidence(round, said)
    mark = said.mark(basis + model.mark)
    if row is None or row.basis != basis or (row.mark != mark and not _asked(round)):
        row = renew(round, runs=runs, model=model)
        if row.mark != mark:
            said = said_in(round)
            mark = said.mark(basis + model.mark)
    return KnownState(row, runs, said, row.mark == mark)


def ask_for_renewal(round: Round) -> None:
    """Have the state of a round renewed soon by a worker.

    Where none comes, it is renewed here once RENEWED_AFTER grades are new, and `round` knows then whether it is over.
    """
    if _asked(round):
        return
    graded = Grade.objects.filter(item__round=round, source=Grade.Source.HUMAN, kind=Grade.Kind.GRADE).count()
    counted = RoundState.objects.filter(round=round).values_list("grades", flat=True).first() or 0
    if abs(graded - counted) >= RENEWED_AFTER:
        renew(round)


def _asked(round: Round) -> bool:
    return enqueue_once(RENEW_STATE, str(round.pk))
