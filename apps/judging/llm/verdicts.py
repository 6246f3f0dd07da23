"""Verdicts of a round's runs under the three policies: people alone, people and a model, a model corrected by people.

They are not stored: the values of evaluations come from people's judgments only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

import numpy as np

from apps.judging.judges import RoundStateError
from apps.judging.llm.board import Board, load_board
from apps.judging.llm.calibration import (
    CalibrationReport,
    Sample,
    compute_calibration,
    load_calibration_sample,
    name_ends,
)
from apps.judging.models import LLMJudge, Round
from apps.judging.question import describe_weighting
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.ir.judging.corrected import FEWEST_QUERIES, correct_by_queries
from benchbench.ir.judging.orders import query_order, whole_queries
from benchbench.ir.judging.pool import Item, JudgingError
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.verdict import find_verdict
from benchbench.reading.strict_json import attributes

Policy = Literal["human", "human + llm", "corrected"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
HUMAN, FILLED, CORRECTED = POLICIES
MEANS = {
    HUMAN: "Judgments and grades of people only. Unjudged documents count as not relevant, as in every stored value.",
    FILLED: (
        "Grades of people where they exist, else the model's. Its errors affect the differences, but the intervals "
        "do not include them."
    ),
    CORRECTED: (
        "The model's grades for all pairs unjudged before the round. People's grades of the first queries in a "
        "random order remove its bias (PPI++). The intervals stay valid even if the model errs. Other grades of the "
        "round are left out because they are not in that random sample."
    ),
}


@dataclass(frozen=True)
class MixedPair:
    """Two runs under a policy; the difference is first − second."""

    first_run_id: UUID
    second_run_id: UUID
    difference: float
    low: Annotated[float, "95 %, of this pair alone."]
    high: float
    simultaneous_low: Annotated[float | None, "95 %, of all pairs at once; null below 20 queries."]
    simultaneous_high: float | None
    p_adjusted: Annotated[float, "Adjusted over all pairs."]
    significant: Annotated[bool, "By p_adjusted, unless the skew of the differences decides against it."]


@dataclass(frozen=True)
class PolicyReport:
    """The verdict under one policy, or why it is missing."""

    policy: Policy
    meaning: str
    sentence: str
    unavailable_reason: str | None
    best_run_ids: Annotated[list[UUID], "The best run and its equals."]
    queries: Annotated[int, "Queries that every run answered."]
    judged: Annotated[int, "Pairs of the pool with a person's grade that counts."]
    model_judged: Annotated[int, "Pairs of the pool with the model's grade."]
    unjudged: Annotated[int, "Pairs without a grade: not relevant."]
    sampled_queries: Annotated[int, "For `corrected`: queries that people judged completely."]
    sample_gain: Annotated[float | None, "Queries that the model adds to that sample."]
    estimand: Annotated[str | None, "Definition of the differences."]
    pairs: list[MixedPair]


@dataclass(frozen=True)
class VerdictsReport:
    """Verdicts of a round's runs under the three policies. What evaluations store is people's alone."""

    judge: str | None
    measure: str
    warnings: list[str]
    verdicts: list[PolicyReport]


def compute_verdicts(round: Round, judge: LLMJudge | None) -> VerdictsReport:
    """Return the verdicts of a round's runs under the three policies, at 95 % for all pairs together.

    The policies with the model's grades need its calibration and say so if it is missing or stale. The compared queries
    are those that every run answered.
    """
    board, sample = load_board(round, judge), load_calibration_sample(round)
    calibration = compute_calibration(judge, sample, board) if judge else None
    return VerdictsReport(
        judge=judge.name if judge else None,
        measure=str(board.measure),
        warnings=[*filter(None, [describe_weighting(round)]), *(calibration.warnings if calibration else [])],
        verdicts=[_compute_verdict(policy, board, judge, calibration, sample) for policy in POLICIES],
    )


def _compute_verdict(
    policy: Policy, board: Board, judge: LLMJudge | None, calibration: CalibrationReport | None, sample: Sample
) -> PolicyReport:
    try:
        if policy == HUMAN:
            return _compare_runs(board, HUMAN, board.build_truths(board.people, board.prior_grades))
        if calibration is None:
            raise RoundStateError("No model has judged this round.")
        if calibration.unavailable_reason:
            raise RoundStateError(f"{judge} has no calibration. {calibration.unavailable_reason}")
        if policy == FILLED:
            return _compare_runs(board, FILLED, board.build_truths(board.people, board.prior_grades, board.model))
        return _compare_corrected(board, sample)
    except BenchbenchError as error:
        return _report(board, policy, unavailable_reason=error.message)


def _report(
    board: Board,
    policy: Policy,
    *,
    unavailable_reason: str | None = None,
    group: Sequence[int] = (),
    gain: float | None = None,
    estimand: str | None = None,
    pairs: Sequence[Any] = (),
    **counts: int,
) -> PolicyReport:
    """Return the report of a verdict on pairs of runs, which are numbered by their order on the board."""
    runs = [run.pk for run in board.runs]
    names = ", ".join(f'"{board.runs[index]}"' for index in group)
    best = f"The best run is {names}." if len(group) == 1 else f"The best runs are not distinguishable: {names}."
    worth = "" if gain is None else f" The model's grades are worth about {gain:+,.0f} judged queries."
    return PolicyReport(
        policy=policy,
        meaning=MEANS[policy],
        sentence=unavailable_reason or best + worth,
        unavailable_reason=unavailable_reason,
        best_run_ids=[runs[index] for index in group],
        **{"queries": 0, "judged": 0, "model_judged": 0, "unjudged": 0, "sampled_queries": 0} | counts,
        sample_gain=gain,
        estimand=estimand,
        pairs=[
            MixedPair(
                first_run_id=runs[pair.first],
                second_run_id=runs[pair.second],
                low=pair.interval.low,
                high=pair.interval.high,
                **name_ends("simultaneous", pair.simultaneous),
                **attributes(pair, "difference", "p_adjusted", "significant"),
            )
            for pair in pairs
        ],
    )


def _compare_runs(board: Board, policy: Policy, truths: Sequence[Mapping[int, int]]) -> PolicyReport:
    comparison = compare(board.compute_values(truths), seed=board.draw)
    by_people = board.build_truths(board.people, board.prior_grades)
    cells = board.pool.has_document
    judged = int((~np.isnan(board.pool.get_grades(by_people)) & cells).sum())
    graded = int((~np.isnan(board.pool.get_grades(truths)) & cells).sum())
    return _report(
        board,
        policy,
        pairs=comparison.pairs,
        group=sorted(find_verdict(comparison).group),
        queries=comparison.n,
        judged=judged,
        model_judged=graded - judged,
        unjudged=board.pool.size - graded,
        estimand=f"mean difference in {board.measure}",
    )


def _compare_corrected(board: Board, sample: Sample) -> PolicyReport:
    """Return the comparison by the model's grades, corrected with people's grades of a random sample of whole queries.

    The sample is the first queries of the round's random order that people have judged whole. Raises JudgingError for a
    round in another order, fewer than FEWEST_QUERIES such queries, or grades of the model that do not cover the pool.
    """
    pairs = map(board.pool.get_item, range(board.pool.size))
    holes = [item for item in pairs if item.document not in board.prior_grades.get(board.query_ids[item.query], {})]
    _require_sampled_pool(board, sample, holes)
    # A pair that the model was unsure of counts as not relevant: any prediction works, as its errors are corrected.
    predicted = board.build_truths(board.prior_grades, board.model, board.unsure)
    _require_correctable(board, holes, sum(item.document in predicted[item.query] for item in holes))
    queries = _find_sampled_queries(board, holes)
    if len(queries) < FEWEST_QUERIES:
        raise JudgingError(
            f"People have judged the first {counted(len(queries), 'query')} of the round's random order completely, "
            f"but a correction needs {FEWEST_QUERIES}. Finish the next queries in that order."
        )
    by_people = board.compute_values(board.build_truths(board.people, board.prior_grades))
    by_people[:, [index not in queries for index in range(len(board.query_ids))]] = np.nan
    corrected = correct_by_queries(board.compute_values(predicted), by_people, seed=board.draw)
    over = "over the queries from which the sample was drawn"
    return _report(
        board,
        CORRECTED,
        pairs=corrected.pairs,
        group=corrected.group,
        queries=corrected.queries,
        judged=sum(item.query in queries for item in holes),
        model_judged=len(holes),
        sampled_queries=corrected.judged,
        gain=corrected.gain,
        estimand=f"mean difference in {board.measure} by the person's grades, {over}",
    )


def _require_sampled_pool(board: Board, sample: Sample, holes: Sequence[Item]) -> None:
    """Raise JudgingError if the pool changed since the samples were drawn, or has no pairs to correct."""
    began = board.round.pool_size
    index_of = {query: index for index, query in enumerate(board.query_ids)}
    sampled = {Item(index_of[pair.query_id], pair.document_id) for pair in sample.judged_pairs}
    if len(holes) != began or not board.pool.numbers.keys() >= sampled:
        raise JudgingError(
            f"The round began with {counted(began, 'unjudged pair')}, but its runs now return {len(holes):,} "
            f"others: runs were deleted or searched again. Its calibration sample does not cover these. Open a "
            f"round over the current runs, and calibrate the model there."
        )
    if not holes:
        raise JudgingError("Every pair of these runs was judged before the round: there is nothing to correct.")


def _require_correctable(board: Board, holes: Sequence[Item], judged: int) -> None:
    """Raise JudgingError unless the model judged all `holes`, the measure stays in the pool, and queries are drawn."""
    if judged < len(holes):
        raise JudgingError(
            f"The model judged {judged:,} of {counted(len(holes), 'unjudged pair')} in the pool, but a correction "
            f"needs all. Continue the model in a round whose items are the whole pool."
        )
    if board.measure.cutoff is None or board.measure.cutoff > board.round.depth:
        raise JudgingError(
            f"{board.measure} needs more than the pool's {board.round.depth:,} documents of each ranking: choose a "
            f"measure with a smaller cutoff."
        )
    if board.round.order != Round.Order.QUERIES:
        raise JudgingError(
            "A correction needs a random sample of whole queries. Open a round with the order “queries” to get one."
        )


def _find_sampled_queries(board: Board, holes: Sequence[Item]) -> set[int]:
    """Return the first queries of the round's query order that people are done with, by their order on the board.

    Queries that some run failed on are not compared; they do not end the sample.
    """
    order = query_order(board.pool, seed=board.round.seed)
    judged = board.build_truths(board.people, board.unsure_people)
    waiting = {item.query for item in holes if item.document not in judged[item.query]}
    return set(whole_queries(order[board.pool.answered[order]], waiting).tolist())
