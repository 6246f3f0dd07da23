"""A language model as the judge of a round: cost, start, calibration, and the verdicts that use its grades."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.endpoint import Endpoint
from apps.api.fields import valid
from apps.api.idempotency import idempotent
from apps.api.openapi import refusals
from apps.api.resources.judging.rounds import find_round
from apps.api.serializers.judging.llm import (
    LLMCost,
    LLMJudges,
    LLMRequest,
    LLMStarted,
    SampleFacts,
    SampleRequest,
    VerdictsFacts,
    VerdictsQuery,
)
from apps.judging.judges import require_lead
from apps.judging.llm.describing import find_llm_judge, judge_facts, judges_of, verdict_facts
from apps.judging.llm.launching import preview, start_judging
from apps.judging.llm.sampling import draw_sample
from apps.judging.llm.verdicts import verdicts_of
from apps.judging.models import Round


class Judges(Endpoint):
    model = Round
    acts = {"GET": "view", "POST": "change"}
    throttles = {"POST": "start"}

    @extend_schema(operation_id="list_llm_judges", responses={200: LLMJudges} | refusals(409))
    def get(self, request: Request, round_id: UUID) -> Response:
        """List the models that judge a round, each with its calibration against people.

        No figure is told under a model's name without a calibration, or with a stale one. 409 where you do not lead
        the round.
        """
        round = led_round(request, round_id)
        return Response(LLMJudges({"judges": [judge_facts(judge) for judge in judges_of(round)]}).data)

    @extend_schema(operation_id="start_llm_judging", request=LLMRequest, responses={202: LLMStarted})
    @idempotent
    def post(self, request: Request, round_id: UUID) -> Response:
        """Let a model judge what it has not judged in a round, the calibration sample first, at most `most` items.

        Its grades are kept apart and never count as people's. A start after a stop goes on. 409 where it is at work,
        the round is closed, or you do not lead it.
        """
        round = find_round(request, round_id)
        judge, operation = start_judging(round, by=request.user, **valid(LLMRequest, request.data))
        return Response(LLMStarted({"judge": judge.name, "operation_uuid": operation.pk}).data, status=202)


class Cost(Endpoint):
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
    acts = {"POST": "change"}

    @extend_schema(operation_id="draw_calibration_sample", request=SampleRequest, responses={201: SampleFacts})
    @idempotent
    def post(self, request: Request, round_id: UUID) -> Response:
        """Draw the calibration sample of a round: a uniform sample of its pairs that is frozen then.

        People judge it as any items of the round. 409 where there is one, the round is closed, or you do not lead it.
        """
        round = find_round(request, round_id)
        size = draw_sample(round, by=request.user, **valid(SampleRequest, request.data))
        return Response(SampleFacts({"size": size}).data, status=201)


class Verdicts(Endpoint):
    model = Round
    acts = {"GET": "view"}

    @extend_schema(
        operation_id="get_verdicts", parameters=[VerdictsQuery], responses={200: VerdictsFacts} | refusals(409)
    )
    def get(self, request: Request, round_id: UUID) -> Response:
        """Compare a round's runs by people's grades, by these and a model's, and by a model's corrected by people's.

        409 where you do not lead the round.
        """
        round = led_round(request, round_id)
        judge = find_llm_judge(round, valid(VerdictsQuery, request.query_params)["llm"])
        return Response(VerdictsFacts(verdict_facts(verdicts_of(round, judge))).data)


def led_round(request: Request, round_id: UUID) -> Any:
    round = find_round(request, round_id)
    require_lead(round, request.user)
    return round
