"""Report of a round: progress, settled and waiting items, in figures and a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from apps.judging.models import Round
from apps.judging.question import describe_weighting
from apps.judging.settling.progress import JudgeReport, Progress, compute_progress
from apps.judging.settling.renewing import RoundStatus
from apps.records.models import Run
from benchbench.decimals import counted, figure
from benchbench.ir.judging.state import State
from benchbench.reading.strict_json import attributes


@dataclass(frozen=True)
class RunPair:
    """Two runs; differences are first − second, of means over the compared queries."""

    first_run_id: UUID
    second_run_id: UUID
    lower_bound: Annotated[float, "Over all possible grades of the unjudged pairs."]
    upper_bound: float
    certain_order: Annotated[int | None, "1, −1: ahead for all possible grades; 0: equal; or null."]
    difference: Annotated[float, "Expected."]
    standard_deviation: Annotated[float, "Its standard deviation due to unjudged pairs."]
    outcome: Annotated[int, "Most likely at the end: 1 or −1 significantly better, 0 neither."]
    probability: float
    is_settled: Annotated[bool, "At 95 %, jointly with all settled pairs."]


@dataclass(frozen=True)
class QuestionReport:
    """State of the round's question by the grades so far."""

    is_settled: Annotated[bool, "Whether the verdict is settled at 95 %."]
    is_certain: Annotated[bool, "Whether the order of every pair holds for all possible grades."]
    probability: Annotated[float, "Probability of the verdict."]
    threshold: Annotated[float | None, "The probability that settles it."]
    best_run_ids: Annotated[list[UUID], "The most likely best group."]
    winner_run_id: UUID | None
    judged: int
    unjudged: int
    queries: Annotated[int, "Queries that every run answered."]
    grades_needed: Annotated[int | None, "Estimated number of further grades to settle it; null: unknown."]
    grades_needed_at_most: Annotated[int | None, "Upper estimate of that number: 90 % of cases."]
    reason: Annotated[str | None, "Why nothing is settled yet."]
    pairs: list[RunPair]


@dataclass(frozen=True)
class RoundReport:
    """State of a round: its progress, and what is settled."""

    completed_gradings: Annotated[int, "Completed gradings, one per judge and item."]
    total_gradings: int
    waiting_for_adjudication: int
    judges: list[JudgeReport]
    is_open: bool
    offers_items: bool
    settled_at: datetime | None
    sentence: str
    grades: Annotated[int, "Human grades so far, with adjudications."]
    counted_grades: Annotated[
        int, "Grades behind question, sample_size and inclusion_probability. Requesting the state updates them."
    ]
    is_current: Annotated[bool, "Whether they include all current grades."]
    computed_at: datetime
    sample_size: Annotated[int, "Judged pairs that form a uniform sample."]
    inclusion_probability: Annotated[
        float, "Probability that a pair unjudged before the round is in that sample after these grades."
    ]
    question: Annotated[QuestionReport | None, "null for a round of one run."]


def build_round_report(round: Round, status: RoundStatus) -> RoundReport:
    """Return the report of a round from its status."""
    progress = compute_progress(round)
    return RoundReport(
        **attributes(progress, "completed_gradings", "total_gradings", "judges"),
        waiting_for_adjudication=len(status.human_grades.split),
        **attributes(round, "is_open", "offers_items", "settled_at"),
        sentence=_describe_progress(progress, status, describe_weighting(round) if status.state else ""),
        grades=status.human_grades.count,
        counted_grades=status.row.grades,
        **attributes(status, "is_current", "inclusion_probability"),
        **attributes(status.row, "computed_at", "sample_size"),
        question=_build_question(state, [run.pk for run in status.runs]) if (state := status.state) else None,
    )


def _build_question(state: State, runs: list[UUID]) -> QuestionReport:
    return QuestionReport(
        **attributes(state, "is_settled", "is_certain", "probability", "threshold", "judged", "unjudged"),
        **attributes(state, "queries", "reason"),
        best_run_ids=[runs[row] for row in state.verdict],
        winner_run_id=None if state.winner is None else runs[state.winner],
        grades_needed=state.grades_needed.median,
        grades_needed_at_most=state.grades_needed.p90,
        pairs=[
            RunPair(
                first_run_id=runs[pair.first],
                second_run_id=runs[pair.second],
                **attributes(pair, "lower_bound", "upper_bound", "certain_order", "difference", "standard_deviation"),
                **attributes(pair, "outcome", "probability", "is_settled"),
            )
            for pair in state.pairs
        ],
    )


def describe_evidence(evidence: Mapping[str, str]) -> str:
    """Return a sentence on what the probability of relevance is based on."""
    index, model = evidence.get("index"), evidence.get("model")
    sources = ["how the runs rank a document"]
    if index:
        sources.append(f'how similar its text is to graded texts (vectors of the index "{index}")')
    if model:
        sources.append(f"the grade of {model}, as evidence only: a model's grades do not count")
    caveat = "" if index else " No run has an index with vectors, so texts are not compared."
    return f"{', '.join(sources[:-1])} and {sources[-1]}.{caveat}" if len(sources) > 1 else f"{sources[0]}.{caveat}"


def _describe_progress(progress: Progress, status: RoundStatus, note: str) -> str:
    sentences = [f"{progress.completed_gradings:,} of {counted(progress.total_gradings, 'grading')} done."]
    if status.human_grades.split:
        sentences.append(f"{counted(len(status.human_grades.split), 'item')} to adjudicate.")
    if (state := status.state) is not None:
        sentences += filter(None, [_describe_verdict(state, status.runs), note])
        if not status.is_current and status.row.grades == status.human_grades.count:
            sentences.append("A grade changed; the state is being updated.")
        elif not status.is_current:
            grades = counted(status.human_grades.count, "grade")
            sentences.append(f"The state counts {status.row.grades:,} of {grades} and is being updated.")
    return " ".join(sentences)


def describe_likeliest(state: State, runs: Sequence[Run]) -> str:
    """Return the likeliest verdict: `not settled, with probability .71: the best run is "dense"`."""
    standing = "settled" if state.is_settled else "not settled"
    return f"{standing}, with probability {figure(state.probability, 2)}: {_describe_best(state, runs)}"


def _describe_verdict(state: State, runs: Sequence[Run]) -> str:
    if state.reason is not None:
        return state.reason
    if state.is_settled:
        basis = "for all possible grades" if state.is_certain else "at 95 %"
        return f"Settled {basis}: {_describe_best(state, runs)}."
    if state.grades_needed.median is None:
        return "Not settled; the number of grades still needed is not known yet."
    return f"Not settled: about {counted(state.grades_needed.median, 'more grade')} would settle it."


def _describe_best(state: State, runs: Sequence[Run]) -> str:
    best = ", ".join(f'"{runs[row]}"' for row in state.verdict)
    return f"the best run is {best}" if len(state.verdict) == 1 else f"the best runs are not distinguishable: {best}"
