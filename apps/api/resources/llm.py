"""A language model as the judge of a round: cost, start, calibration, and the verdicts that use its grades."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import Answer, present
from apps.api.endpoint import Endpoint
from apps.api.fields import StrictSerializer, Text, Whole, valid
from apps.api.resources.rounds import find_round
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
    most = Whole(required=False, allow_null=True, default=None, min_value=1, help_text="The cap. Default: every item.")


class LLMCost(Answer):
    """What judging would take, about."""

    sentence = serializers.CharField()

    class Meta:
        dataclass = Cost
        extra_kwargs = {
            "judge": {"help_text": "The model with its revision and prompt: the name of its grades."},
            "left": {"help_text": "Items that it has not judged."},
            "answers": {"help_text": "That it would be asked for under the cap."},
            "seconds": {"help_text": "By its answers so far; null: it gave none."},
        }


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


class Judges(Endpoint):
    model = Round
    throttles = {"POST": "start"}

    @extend_schema(operation_id="list_llm_judges", responses=LLMJudges)
    def get(self, request: Request, round_id: UUID) -> Response:
        """List the models that judge a round, each with its calibration against people.

        No figure is told under a model's name without a calibration, or with a stale one. 409 where you do not lead
        the round.
        """
        round = led_round(request, round_id)
        return present(LLMJudges([judge_report(judge) for judge in judges_of(round)]))

    @extend_schema(operation_id="start_llm_judging", request=LLMRequest, responses={202: LLMStarted})
    def post(self, request: Request, round_id: UUID) -> Response:
        """Let a model judge what it has not judged in a round, the calibration sample first, at most `most` items.

        Its grades are kept apart and never count as people's. A start after a stop goes on. 409 where it is at work,
        the round is closed, or you do not lead it.
        """
        round = find_round(request, round_id)
        judge, operation = start_judging(round, by=request.user, **valid(LLMRequest, request.data))
        return present(LLMStarted(judge.name, operation.pk), status=202)


class CostPreview(Endpoint):
    model = Round
    acts = {"POST": "view"}

    @extend_schema(operation_id="preview_llm_judging", request=LLMRequest, responses=LLMCost)
    def post(self, request: Request, round_id: UUID) -> Response:
        """Tell how many answers, tokens and seconds judging by a model would take, about. Nothing is asked of it.

        409 where the round is closed, or you do not lead it.
        """
        return Response(LLMCost(preview(led_round(request, round_id), **valid(LLMRequest, request.data))).data)


class CalibrationSample(Endpoint):
    model = Round

    @extend_schema(operation_id="draw_calibration_sample", request=SampleRequest, responses={201: SampleAnswer})
    def post(self, request: Request, round_id: UUID) -> Response:
        """Draw the calibration sample of a round: a uniform sample of its pairs that is frozen then.

        People judge it as any items of the round. 409 where there is one, the round is closed, or you do not lead it.
        """
        round = find_round(request, round_id)
        size = draw_sample(round, by=request.user, **valid(SampleRequest, request.data))
        return present(SampleAnswer(size), status=201)


class Verdicts(Endpoint):
    model = Round

    @extend_schema(operation_id="get_verdicts", parameters=[VerdictsQuery], responses=VerdictsReport)
    def get(self, request: Request, round_id: UUID) -> Response:
        """Compare a round's runs by people's grades, by these and a model's, and by a model's corrected by people's.

        409 where you do not lead the round.
        """
        round = led_round(request, round_id)
        judge = find_llm_judge(round, valid(VerdictsQuery, request.query_params)["llm"])
        return present(verdicts_of(round, judge))


def led_round(request: Request, round_id: UUID) -> Any:
    round = find_round(request, round_id)
    require_lead(round, request.user)
    return round
