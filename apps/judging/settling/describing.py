"""State and agreement of a round, for the API and commands."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from apps.judging.settling.agreeing import Agreement, PairAgreement
from apps.judging.settling.summing import Summary
from benchbench.ir.judging.state import State
from benchbench.reading.records import attributes


@dataclass(frozen=True)
class JudgeReport:
    """Progress of a judge."""

    judge: str
    graded: int
    skipped: int
    cant_tell: int
    seconds_each: Annotated[float | None, "Median of the latest 50."]
    seconds_left: Annotated[float | None, "To the end, in equal shares."]
    last_at: datetime | None


@dataclass(frozen=True)
class RunPair:
    """Two runs; differences are first − second, of means over the compared queries."""

    first_run_id: UUID
    second_run_id: UUID
    least: Annotated[float, "Over every filling of the holes."]
    greatest: float
    certain: Annotated[int | None, "1, −1: ahead under every filling; 0: equal; or null."]
    difference: Annotated[float, "Expected."]
    spread: Annotated[float, "Its standard deviation: what the holes leave open."]
    outcome: Annotated[int, "Likeliest at the end: 1 or −1 significantly better, 0 neither."]
    probability: float
    settled: Annotated[bool, "At 95 %, together with all that are called so."]


@dataclass(frozen=True)
class QuestionReport:
    """What the grades so far say of the round's question."""

    settled: Annotated[bool, "Whether the verdict stands at 95 %."]
    certain: Annotated[bool, "Whether every pair's order stands under every filling."]
    probability: Annotated[float, "Of the verdict."]
    best_run_ids: Annotated[list[UUID], "The likeliest best group."]
    winner_run_id: UUID | None
    judged: int
    holes: int
    queries: Annotated[int, "That every run answered."]
    more: Annotated[int | None, "About so many grades more settle it; null: unknown."]
    more_at_most: Annotated[int | None, "In nine cases of ten."]
    reason: Annotated[str | None, "Why nothing is called settled yet."]
    pairs: list[RunPair]


@dataclass(frozen=True)
class RoundReport:
    """State of a round: its progress, and what is settled."""

    done: Annotated[int, "Gradings that are done, one a judge and item."]
    wanted: int
    waiting_for_adjudication: int
    judges: list[JudgeReport]
    is_open: bool
    hands_out: bool
    answered_at: datetime | None
    sentence: str
    grades: Annotated[int, "That people gave so far, adjudications too."]
    counted_grades: Annotated[
        int, "Of which question, sample_size and inclusion_probability are. Asking for the state has them renewed."
    ]
    is_current: Annotated[bool, "Whether they count all grades given now."]
    renewed_at: datetime
    sample_size: Annotated[int, "Judged pairs that are a uniform sample."]
    inclusion_probability: Annotated[
        float, "Of any pair that was unjudged before the round, in that sample, after these grades."
    ]
    question: Annotated[QuestionReport | None, "null where nothing is compared: of one run."]


@dataclass(frozen=True)
class PairAgreementReport:
    """How two judges graded what both graded."""

    first: str
    second: str
    shared: int
    kappa: Annotated[float | None, "Cohen's, unweighted; null where nothing could differ."]
    scale: list[int]
    counts: list[list[int]]
    items: Annotated[list[list[list[int]]], "The ids behind the counts."]


@dataclass(frozen=True)
class ShiftReport:
    """How much higher a judge grades than the others of the same items."""

    judge: str
    mean: float | None
    items: int


@dataclass(frozen=True)
class AgreementReport:
    """Agreement of the judges of a round. Adjudications are no judge's grades."""

    alpha: Annotated[float | None, "Krippendorff's, ordinal; null: nothing could differ."]
    alpha_low: Annotated[float | None, "95 %; null below 30 shared items."]
    alpha_high: float | None
    shared: Annotated[int, "Items that two judges or more graded."]
    shifts: list[ShiftReport]
    pairs: list[PairAgreementReport]


def round_report(summary: Summary) -> RoundReport:
    """Return the state of a round."""
    round, known = summary.round, summary.stated
    return RoundReport(
        done=summary.progress.done,
        wanted=summary.progress.wanted,
        waiting_for_adjudication=len(summary.split),
        judges=[
            JudgeReport(
                judge=judge.user.get_username(),
                **attributes(judge, "graded", "skipped", "cant_tell"),
                seconds_each=judge.pace,
                seconds_left=judge.left,
                last_at=judge.last,
            )
            for judge in summary.progress.judges
        ],
        **attributes(round, "is_open", "hands_out", "answered_at"),
        sentence=summary.sentence,
        grades=known.said.count,
        counted_grades=known.counted,
        **attributes(known, "is_current", "renewed_at", "sample_size", "inclusion_probability"),
        question=None if summary.state is None else _question(summary.state, [run.pk for run in summary.runs]),
    )


def _question(state: State, runs: list[UUID]) -> QuestionReport:
    return QuestionReport(
        **attributes(state, "settled", "certain", "probability", "judged", "holes", "queries", "reason"),
        best_run_ids=[runs[row] for row in state.verdict],
        winner_run_id=None if state.winner is None else runs[state.winner],
        more=state.more.middle,
        more_at_most=state.more.most,
        pairs=[
            RunPair(
                first_run_id=runs[pair.first],
                second_run_id=runs[pair.second],
                **attributes(pair, "least", "greatest", "certain", "difference", "spread"),
                **attributes(pair, "outcome", "probability", "settled"),
            )
            for pair in state.pairs
        ],
    )


def agreement_report(agreement: Agreement) -> AgreementReport:
    """Return the agreement of a round's judges."""
    alpha = agreement.alpha
    interval = alpha.interval if alpha else None
    return AgreementReport(
        alpha=alpha.value if alpha else None,
        alpha_low=interval.low if interval else None,
        alpha_high=interval.high if interval else None,
        shared=alpha.shared if alpha else 0,
        shifts=[
            ShiftReport(judge, shift.mean, shift.items)
            for judge, shift in zip(agreement.judges, agreement.shifts, strict=True)
        ],
        pairs=[_pair(pair) for pair in agreement.pairs],
    )


def _pair(pair: PairAgreement) -> PairAgreementReport:
    return PairAgreementReport(
        first=pair.first,
        second=pair.second,
        shared=pair.confusion.shared,
        kappa=pair.confusion.kappa,
        scale=[int(grade) for grade in pair.confusion.scale],
        counts=pair.confusion.counts.tolist(),
        items=pair.items,
    )
