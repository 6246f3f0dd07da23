"""Grades of a model for what nobody judged, for use outside of its round: none that is not calibrated is told."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db.models import Count, Max

from apps.judging.errors import RoundStateError
from apps.judging.judges import led_rounds
from apps.judging.llm.board import Grades
from apps.judging.llm.calibrating import calibration_of, require_calibration
from apps.judging.llm.launching import changes_of
from apps.judging.models import CalibrationItem, Grade, LLMJudge, Round


@dataclass(frozen=True, slots=True)
class ModelGrades:
    """What a model graded of the pairs that were asked for, or in `why_not` why there is none to be told."""

    judge: str = ""
    of_queries: Grades = field(default_factory=dict)
    why_not: str = ""


def judges_for(mapping_id: UUID, reader: Any) -> list[LLMJudge]:
    """Return the models that judge rounds of a mapping, the one that was started last first.

    Their verdicts are for who leads a round, and so is what else is made of their grades: the rounds are those that
    `reader` leads. None is whoever runs commands, and all rounds.
    """
    if reader is not None and not reader.has_perm("judging.view_round"):
        return []
    rounds = Round.objects.all() if reader is None else led_rounds(reader)
    judges = LLMJudge.objects.filter(round__in=rounds.filter(mapping=mapping_id))
    return list(judges.select_related("round__mapping", "round__dataset_version"))


def mark_of(judges: Sequence[LLMJudge]) -> str:
    """Return a hash of all that decides what `grades_of` returns for these models: "" for none.

    It asks their servers for the revisions.
    """
    if not judges:
        return ""
    rounds = {judge.round_id for judge in judges}
    said = Grade.objects.filter(item__round__in=rounds).order_by().values("item__round", "judge_name")
    counted = said.annotate(grades=Count("pk"), last=Max("pk"), at=Max("graded_at"))
    rows = sorted(map(str, counted.values_list("item__round", "judge_name", "grades", "last", "at")))
    sampled = CalibrationItem.objects.filter(round__in=rounds).count()
    stated = [(judge.name, str(judge.round_id), changes_of(judge)) for judge in judges]
    return sha256(repr((rows, sampled, stated)).encode()).hexdigest()


def grades_of(judges: Sequence[LLMJudge], wanted: Mapping[int, Collection[int]]) -> ModelGrades:
    """Return the grades that the first of these models with a valid calibration gave pairs of `wanted`.

    That is {query id: document ids}. A model that graded none of them is passed over. The grades of one that is not
    calibrated, or was calibrated before it changed, are not used, and the answer says so.
    """
    why_not = ""
    for judge in judges:
        graded = _graded(judge, wanted)
        if not graded:
            continue
        try:
            require_calibration(calibration_of(judge))
        except RoundStateError as error:
            why_not = why_not or error.message
            continue
        return ModelGrades(judge.name, graded)
    return ModelGrades(why_not=why_not or "No model has graded these documents in a round that you lead.")


def _graded(judge: LLMJudge, wanted: Mapping[int, Collection[int]]) -> Grades:
    rows = Grade.objects.filter(
        item__round=judge.round_id, source=Grade.Source.LLM, judge_name=judge.name, grade__isnull=False
    )
    graded: Grades = {}
    for query, document, grade in rows.values_list("item__query", "item__document", "grade"):
        if document in wanted.get(query, ()):
            graded.setdefault(query, {})[document] = int(grade or 0)
    return graded
