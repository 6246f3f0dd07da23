"""Calibration of a model as the judge of a round: its grades against people's on a frozen uniform sample of the pairs.

A model's figures are shown only after people and the model judged enough of the sample. Changing the model, the prompt
or the scale makes the calibration stale and hides them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Annotated, Any

import numpy as np
from django.contrib.auth.models import User
from django.db import transaction

from apps.judging.judges import RoundError, RoundStateError, require_lead, require_open
from apps.judging.llm.board import Board, Grades, load_board
from apps.judging.llm.launching import check_kinship, list_changes
from apps.judging.models import CalibrationItem, LLMJudge, Round, RoundItem
from apps.judging.question import load_question
from apps.judging.scales import list_grades
from apps.judging.settling.consensus import load_human_grades
from benchbench.database.failures import read_again
from benchbench.decimals import counted
from benchbench.ir.judging.calibration import MAX_PAIRS, MIN_PAIRS, Calibration, OrderEffect, calibrate, order_effect
from benchbench.ir.statistics.resampling import Interval


@dataclass(frozen=True, slots=True)
class SampledPair:
    """A pair of the sample that people are done with. `grade`: None if they were unsure."""

    query_id: int
    document_id: int
    grade: int | None


@dataclass(frozen=True, slots=True)
class Sample:
    """A round's calibration sample: its size, and the first pairs of its order that people are done with.

    The order is random, so its beginning is a uniform sample too. A pair graded out of order waits for those before it.
    """

    size: int
    judged_pairs: list[SampledPair]


@dataclass(frozen=True)
class BiasReport:
    """The model's grades of the pairs to which people gave a grade: their mean less it."""

    grade: int
    items: int
    mean: float | None
    mean_low: Annotated[float | None, "95 %; null below 30 items."]
    mean_high: float | None


@dataclass(frozen=True)
class CalibrationFigures:
    """The model's grades against people's, on the calibration sample."""

    alpha: Annotated[float | None, "Krippendorff's, ordinal; null: nothing could differ."]
    alpha_low: float | None
    alpha_high: float | None
    bias: list[BiasReport]
    overall_bias: float | None
    overall_bias_low: float | None
    overall_bias_high: float | None
    kappa: float | None
    scale: list[int]
    counts: Annotated[list[list[int]], "Rows are people's grades."]
    tau: Annotated[float | None, "Kendall's τ-b between the runs' orders; null: all equal."]
    mean_absolute_difference: Annotated[float | None, "Mean absolute difference of a run's value of a query."]
    mean_difference: Annotated[float | None, "Mean difference, model minus people."]
    queries: Annotated[int, "Queries with a pair in the sample."]


@dataclass(frozen=True)
class CalibrationReport:
    """Calibration of a model, or why it is missing: then no figure is shown under its name."""

    size: Annotated[int, "Pairs in the round's sample; 0 before it is drawn."]
    waiting_pairs: Annotated[int, "Pairs that wait for people, or for an earlier pair."]
    graded_by_both: Annotated[int, "Pairs that both graded."]
    cannot_judge_people: int
    cannot_judge_model: int
    is_stale: Annotated[bool, "Model, prompt, scale or guidelines changed."]
    unavailable_reason: Annotated[str | None, "Why the figures are missing."]
    warnings: list[str]
    figures: CalibrationFigures | None

    @property
    def left_out(self) -> str:
        """The pairs left out, as the end of a sentence about those graded by both."""
        people, model = self.cannot_judge_people, self.cannot_judge_model
        return f"; left out: {people} that people and {model} that the model could not judge" if people or model else ""


@transaction.atomic
def draw_sample(round: Round, size: int, by: User) -> int:
    """Freeze the first `size` pairs of a round's random order as its calibration sample; return the number of pairs.

    A smaller pool is taken whole. People judge the pairs as any items of the round. `by` leads the round. Raises
    RoundError for a size outside 30 to 500 and for a pair without an item; RoundStateError if the round has a sample.
    """
    require_lead(round, by)
    round = read_again(
        Round.objects.select_for_update(of=("self",)).select_related("mapping", "dataset_version"), round.pk
    )
    require_open(round)
    if drawn := round.calibration_items.count():
        raise RoundStateError(
            f'The calibration sample of "{round}" was already drawn ({counted(drawn, "pair")}) and cannot change.'
        )
    if not MIN_PAIRS <= size <= MAX_PAIRS:
        raise RoundError(f"A calibration sample has {MIN_PAIRS} to {MAX_PAIRS} pairs, not {size:,}.", field="size")
    items = _load_first_items(round, size)
    CalibrationItem.objects.bulk_create(
        CalibrationItem(round=round, item_id=item, place=position) for position, item in enumerate(items, start=1)
    )
    return len(items)


def _load_first_items(round: Round, size: int) -> Sequence[int]:
    """Return the items of the first pairs of the random order. Raises RoundError for a pair without an item."""
    question, query_ids = load_question(round, list(round.runs.order_by("-benchmark__created_at", "run_order")))
    order = question.sample_order(question.find_holes())
    rows = RoundItem.objects.filter(round=round).values_list("query_id", "document_id", "pk")
    ids = {(query, document): pk for query, document, pk in rows}
    pairs = [question.pool.get_item(number) for number in order[:size].tolist()]
    items = [ids.get((query_ids[pair.query], int(str(pair.document)))) for pair in pairs]
    if None in items:
        raise RoundError(
            f"Only the first {items.index(None):,} pairs of the random order are items of the round: its budget "
            f"left out the rest. Open a round with a larger budget or uniform share, or draw a smaller sample.",
            field="size",
        )
    return [item for item in items if item is not None]


def load_calibration_sample(round: Round) -> Sample:
    """Return the calibration sample of a round as judged by people so far. Two queries."""
    rows = list(
        CalibrationItem.objects.filter(round=round)
        .order_by("place")
        .values_list("item_id", "item__query_id", "item__document_id")
    )
    human_grades = load_human_grades(round)
    judged_pairs = [
        SampledPair(query_id, document_id, human_grades.grades.get(item_id))
        for item_id, query_id, document_id in takewhile(lambda row: row[0] in human_grades.finished_items, rows)
    ]
    return Sample(len(rows), judged_pairs)


def compute_calibration(judge: LLMJudge, sample: Sample | None = None, board: Board | None = None) -> CalibrationReport:
    """Return the calibration of a model. Asks the model's server for its revision."""
    sample, changes = sample or load_calibration_sample(judge.round), list_changes(judge)
    runs = list(judge.round.runs.select_related("benchmark").order_by("-benchmark__created_at", "run_order"))
    report = CalibrationReport(
        size=sample.size,
        waiting_pairs=sample.size - len(sample.judged_pairs),
        graded_by_both=0,
        cannot_judge_people=0,
        cannot_judge_model=0,
        is_stale=bool(changes),
        unavailable_reason=None,
        warnings=check_kinship(judge, runs),
        figures=None,
    )
    if changes:
        reason = f"The calibration is stale because {' and '.join(changes)}: let the model judge again."
        return replace(report, unavailable_reason=reason)
    if not sample.size:
        return replace(report, unavailable_reason="The round has no calibration sample: draw one.")
    board = board or load_board(judge.round, judge)
    shared = _find_shared(board, sample)
    used = sum(map(len, shared.people.values()))
    report = replace(
        report, graded_by_both=used, cannot_judge_people=shared.unsure_people, cannot_judge_model=shared.unsure_model
    )
    if used < MIN_PAIRS:
        reason = (
            f"{counted(used, 'pair')} of the calibration sample {'is' if used == 1 else 'are'} judged by people and by "
            f"the model, but at least {MIN_PAIRS} are needed: {_name_missing(report.waiting_pairs, shared.unasked)}."
        )
        return replace(report, unavailable_reason=reason)
    pairs = [(query, document) for query in shared.people for document in shared.people[query]]
    figures = calibrate(
        [shared.people[query][document] for query, document in pairs],
        [shared.model[query][document] for query, document in pairs],
        list_grades(judge.round.scale),
        seed=judge.round.seed & 0xFFFF_FFFF,
    )
    return replace(report, figures=_build_figures(figures, _compute_effect(board, shared)))


@dataclass(slots=True)
class _Shared:
    """Grades of the sampled pairs that both people and a model graded, and counts of the other pairs.

    Those are the pairs that people or the model were unsure of, and those that the model has not judged.
    """

    people: Grades = field(default_factory=dict)
    model: Grades = field(default_factory=dict)
    unsure_people: int = 0
    unsure_model: int = 0
    unasked: int = 0


def _find_shared(board: Board, sample: Sample) -> _Shared:
    """Return the grades that both gave, up to the first pair that the model has not judged, which ends the sample."""
    shared = _Shared()
    for index, pair in enumerate(sample.judged_pairs):
        model_grade = board.model.get(pair.query_id, {}).get(pair.document_id)
        unsure = pair.document_id in board.unsure.get(pair.query_id, {})
        if model_grade is None and not unsure:
            shared.unasked = len(sample.judged_pairs) - index
            break
        shared.unsure_people += pair.grade is None
        shared.unsure_model += unsure
        if pair.grade is not None and model_grade is not None:
            shared.people.setdefault(pair.query_id, {})[pair.document_id] = pair.grade
            shared.model.setdefault(pair.query_id, {})[pair.document_id] = model_grade
    return shared


def _name_missing(for_people: int, for_model: int) -> str:
    reasons = [(for_people, "people's grades"), (for_model, "the model's")]
    waiting = [f"{counted(count, 'pair')} wait for {source}" for count, source in reasons if count]
    return (
        " and ".join(waiting)
        or "draw a larger sample in a new round, because people or the model could not judge some pairs"
    )


def _compute_effect(board: Board, shared: _Shared) -> OrderEffect | None:
    """Return how the runs change with the model's grades in place of people's, on the queries with a sampled pair."""
    columns = [index for index, query in enumerate(board.query_ids) if query in shared.people]
    by_people = board.compute_values(board.build_truths(board.prior_grades, shared.people))[:, columns]
    by_model = board.compute_values(board.build_truths(board.prior_grades, shared.model))[:, columns]
    if not board.runs or np.isnan(by_people).any(axis=0).all():
        return None
    return order_effect(by_people, by_model)


def _build_figures(figures: Calibration, effect: OrderEffect | None) -> CalibrationFigures:
    bias = [BiasReport(int(one.grade), one.items, one.mean, **name_ends("mean", one.interval)) for one in figures.bias]
    return CalibrationFigures(
        alpha=figures.alpha.value,
        **name_ends("alpha", figures.alpha.interval),
        bias=bias,
        overall_bias=figures.overall.mean,
        **name_ends("overall_bias", figures.overall.interval),
        kappa=figures.confusion.kappa,
        scale=[int(grade) for grade in figures.confusion.scale],
        counts=figures.confusion.counts.tolist(),
        tau=effect.tau if effect else None,
        mean_absolute_difference=effect.values if effect else None,
        mean_difference=effect.rise if effect else None,
        queries=effect.queries if effect else 0,
    )


def name_ends(name: str, interval: Interval | None) -> dict[str, Any]:
    """Return the ends of an interval as the fields of an answer."""
    return {f"{name}_low": interval.low if interval else None, f"{name}_high": interval.high if interval else None}
