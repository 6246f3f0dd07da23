"""Renewing the state of a round: who grades asks for it and waits for nothing; who looks at it is told how old it is.

A worker does it within seconds, once however often it is asked for meanwhile. Where no worker lives, or none comes to
it, whoever needs the state does it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

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
    """The state of a round that was computed last, and how many of the grades it counts.

    `state` is None for a round that compares nothing; its rows are `runs`. It counts `counted` of the grades that
    people gave, `said.count`; `is_current` tells whether it is of what is said now. `sample_size` of the pairs that it
    counts are the uniform sample, of the `sampled_from` that nobody had judged.
    `evidence` names the index of its texts and the model whose grades are evidence, "" where there is none.
    """

    state: State | None
    runs: Sequence[Run]
    said: Said
    counted: int
    is_current: bool
    renewed_at: datetime
    sample_size: int
    sampled_from: int
    evidence: Mapping[str, str]

    @property
    def inclusion_probability(self) -> float:
        """With which any pair that nobody had judged is in the uniform sample, after the counted grades."""
        return self.sample_size / max(self.sampled_from, 1)


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
    assert row.renewed_at is not None
    return KnownState(
        State.of_record(row.state) if row.state else None,
        runs,
        said,
        row.grades,
        row.mark == mark,
        row.renewed_at,
        row.sample_size,
        row.sampled_from,
        row.evidence,
    )


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
