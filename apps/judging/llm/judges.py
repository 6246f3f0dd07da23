"""Models that judge a round: their grades, the items left, and their calibration."""

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from django.db.models import Count, Q

from apps.judging.judges import RoundError
from apps.judging.llm.calibration import CalibrationReport, compute_calibration
from apps.judging.llm.launching import list_unjudged
from apps.judging.models import Grade, LLMJudge, Round
from apps.operations.models import Operation
from benchbench.decimals import counted
from benchbench.reading.strict_json import attributes


@dataclass(frozen=True)
class LLMJudgeReport:
    """A model that judges a round."""

    id: UUID
    name: Annotated[str, "Judge name on its grades: server, model, revision, prompt."]
    llm: str
    revision: Annotated[str, "unknown if its server does not report one."]
    prompt_version: str
    item_limit: Annotated[int | None, "Cap of its last start."]
    graded: int
    cannot_judge: Annotated[int, "Items without a valid grade in its answer."]
    remaining_items: int
    sentence: str
    calibration: CalibrationReport


def load_llm_judges(round: Round) -> list[LLMJudge]:
    """Return the models that judge a round, the latest started first."""
    return list(round.llm_judges.select_related("round__mapping", "round__dataset_version"))


def find_llm_judge(round: Round, llm: str = "") -> LLMJudge | None:
    """Return the latest judge of the model `llm`, by default of any model; None if the round has no such judge.

    Raises RoundError if `llm` has judged nothing here.
    """
    judges = [judge for judge in load_llm_judges(round) if not llm or judge.llm == llm]
    if llm and not judges:
        raise RoundError(f'{llm} has judged nothing in the round "{round}": start it first.', field="llm")
    return next(iter(judges), None)


def build_judge_report(judge: LLMJudge) -> LLMJudgeReport:
    """Return the report on a model as a judge, with its calibration."""
    counts = count_grades(judge)
    left = list_unjudged(judge.round, judge.name).count()
    return LLMJudgeReport(
        **attributes(judge, "id", "name", "llm", "revision", "prompt_version", "item_limit"),
        **counts,
        remaining_items=left,
        sentence=_describe_work(judge, counts, left),
        calibration=compute_calibration(judge),
    )


def count_grades(judge: LLMJudge) -> dict[str, Any]:
    """Return the number of pairs that a model `graded`, and of those that it was unsure of (`cannot_judge`)."""
    rows = Grade.objects.filter(item__round=judge.round_id, source=Grade.Source.LLM, judge_name=judge.name)
    kinds = {"graded": Grade.Kind.GRADE, "cannot_judge": Grade.Kind.CANNOT_JUDGE}
    return rows.aggregate(**{name: Count("pk", filter=Q(kind=kind)) for name, kind in kinds.items()})


def _describe_work(judge: LLMJudge, counts: dict[str, int], left: int) -> str:
    judged_count = counts["graded"] + counts["cannot_judge"]
    sentence = f"It judged {judged_count:,} of {counted(judged_count + left, 'item')}"
    if counts["cannot_judge"]:
        sentence += f", {counts['cannot_judge']:,} of them as “cannot judge”"
    capped = judge.item_limit is not None and left and Operation.active_on(judge.round) is None
    return f"{sentence}; its last cap was {counted(judge.item_limit or 0, 'answer')}." if capped else f"{sentence}."
