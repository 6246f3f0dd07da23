"""A language model as the judge of a round: cost, start, calibration, and the verdicts that use its grades."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rest_framework import serializers

from apps.api.answers import Answer
from apps.api.fields import StrictSerializer, Text, Whole
from apps.api.resource import get, post
from apps.api.resources.items import RoundPart
from apps.judging.judges import require_lead
from apps.judging.llm.calibration import draw_sample
from apps.judging.llm.judges import LLMJudgeReport, find_llm_judge, judge_report, judges_of
from apps.judging.llm.launching import LONGEST_NAME, Cost, preview, start_judging
from apps.judging.llm.verdicts import VerdictsReport, verdicts_of
from apps.judging.models import Round
from benchbench.ir.judging.calibration import LEAST, MOST


class LLMRequest(StrictSerializer):
    """Which model judges, and at most how many items."""

    llm = Text(max_length=LONGEST_NAME, help_text="Server and model, as ollama:llama3; servers are in the settings.")
    most = Whole(allow_null=True, default=None, min_value=1, help_text="The cap. Default: every item.")


class LLMCost(Answer):
    """What judging would take, about."""

    sentence = serializers.CharField()

    class Meta:
        dataclass = Cost


@dataclass(frozen=True)
class LLMStarted:
    """The judge that was started, and the operation that does it."""

    judge: str
    operation_uuid: UUID


class SampleRequest(StrictSerializer):
    """How large the calibration sample is to be."""

    size = Whole(min_value=LEAST, max_value=MOST, help_text="Pairs; of a smaller pool, every pair.")


@dataclass(frozen=True)
class SampleAnswer:
    """The calibration sample that was drawn."""

    size: int


@dataclass(frozen=True)
class LLMJudges:
    """Models that judge a round, the one that was started last first."""

    judges: list[LLMJudgeReport]


class VerdictsQuery(StrictSerializer):
    """Whose grades are used."""

    llm = Text(default="", allow_blank=True, help_text="Default: the model that was started last.")


class LLMJudging(RoundPart):
    model = Round

    @get("/llm-judges", LLMJudges)
    def list_llm_judges(self, round: Round) -> LLMJudges:
        """List the models that judge a round, each with its calibration against people.

        No figure is told under a model's name without a calibration, or with a stale one. 409 where you do not lead
        the round.
        """
        require_lead(round, self.user)
        return LLMJudges([judge_report(judge) for judge in judges_of(round)])

    @post("/llm-judges", LLMStarted, LLMRequest, status=202, throttle="start")
    def start_llm_judging(self, round: Round, data: dict[str, Any]) -> LLMStarted:
        """Let a model judge what it has not judged in a round, the calibration sample first, at most `most` items.

        Its grades are kept apart and never count as people's. A start after a stop goes on. 409 where it is at work,
        the round is closed, or you do not lead it.
        """
        judge, operation = start_judging(round, by=self.user, **data)
        return LLMStarted(judge.name, operation.pk)

    @post("/llm-judges/preview", LLMCost, LLMRequest, act="view")
    def preview_llm_judging(self, round: Round, data: dict[str, Any]) -> Cost:
        """Tell how many answers, tokens and seconds judging by a model would take, about. Nothing is asked of it.

        409 where the round is closed, or you do not lead it.
        """
        require_lead(round, self.user)
        return preview(round, **data)

    @post("/calibration-sample", SampleAnswer, SampleRequest, status=201)
    def draw_calibration_sample(self, round: Round, data: dict[str, Any]) -> SampleAnswer:
        """Draw the calibration sample of a round: a uniform sample of its pairs that is frozen then.

        People judge it as any items of the round. 409 where there is one, the round is closed, or you do not lead it.
        """
        return SampleAnswer(draw_sample(round, by=self.user, **data))

    @get("/verdicts", VerdictsReport, VerdictsQuery)
    def get_verdicts(self, round: Round, query: dict[str, Any]) -> VerdictsReport:
        """Compare a round's runs by people's grades, by these and a model's, and by a model's corrected by people's.

        409 where you do not lead the round.
        """
        require_lead(round, self.user)
        return verdicts_of(round, find_llm_judge(round, query["llm"]))
