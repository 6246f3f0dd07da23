"""A language model as the judge of a round: cost, start, calibration, and the verdicts that use its grades."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.endpoint import Endpoint
from apps.api.fields import StrictSerializer, Text, Whole, valid
from apps.api.idempotency import idempotent
from apps.api.openapi import refusals
from apps.api.resources.rounds import find_round
from apps.judging.judges import require_lead
from apps.judging.llm.describing import find_llm_judge, judge_facts, judges_of, verdict_facts
from apps.judging.llm.launching import LONGEST_NAME, preview, start_judging
from apps.judging.llm.sampling import draw_sample
from apps.judging.llm.verdicts import POLICIES, verdicts_of
from apps.judging.models import Round
from benchbench.ir.judging.calibration import LEAST, MOST


class LLMRequest(StrictSerializer):
    """Which model judges, and at most how many items."""

    llm = Text(max_length=LONGEST_NAME, help_text="Server and model, as ollama:llama3; servers are in the settings.")
    most = Whole(required=False, allow_null=True, default=None, min_value=1, help_text="The cap. Default: every item.")


class LLMCost(serializers.Serializer):
    """What judging would take, about."""

    judge = serializers.CharField(help_text="The model with its revision and prompt: the name of its grades.")
    left = serializers.IntegerField(min_value=0, help_text="Items that it has not judged.")
    answers = serializers.IntegerField(min_value=0, help_text="That it would be asked for under the cap.")
    tokens_in = serializers.IntegerField(min_value=0)
    tokens_out = serializers.IntegerField(min_value=0)
    seconds = serializers.FloatField(allow_null=True, help_text="By its answers so far; null: it gave none.")
    sentence = serializers.CharField()


class LLMStarted(serializers.Serializer):
    """The judge that was started, and the operation that does it."""

    judge = serializers.CharField()
    operation_uuid = serializers.UUIDField()


class SampleRequest(StrictSerializer):
    """How large the calibration sample is to be."""

    size = Whole(min_value=LEAST, max_value=MOST, help_text="Pairs; of a smaller pool, every pair.")


class SampleFacts(serializers.Serializer):
    """The calibration sample that was drawn."""

    size = serializers.IntegerField(min_value=0)


class BiasFacts(serializers.Serializer):
    """The model's grades of the pairs to which people gave a grade: their mean less it."""

    grade = serializers.IntegerField()
    items = serializers.IntegerField(min_value=0)
    mean = serializers.FloatField(allow_null=True)
    mean_low = serializers.FloatField(allow_null=True, help_text="95 %; null below 30 items.")
    mean_high = serializers.FloatField(allow_null=True)


class CalibrationFigures(serializers.Serializer):
    """The model's grades against people's, on the calibration sample."""

    alpha = serializers.FloatField(allow_null=True, help_text="Krippendorff's, ordinal; null: nothing could differ.")
    alpha_low = serializers.FloatField(allow_null=True)
    alpha_high = serializers.FloatField(allow_null=True)
    bias = BiasFacts(many=True)
    overall_bias = serializers.FloatField(allow_null=True)
    overall_bias_low = serializers.FloatField(allow_null=True)
    overall_bias_high = serializers.FloatField(allow_null=True)
    kappa = serializers.FloatField(allow_null=True)
    scale = serializers.ListField(child=serializers.IntegerField())
    counts = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField()), help_text="Rows are people's grades."
    )
    tau = serializers.FloatField(allow_null=True, help_text="Kendall's τ-b between the runs' orders; null: all equal.")
    values = serializers.FloatField(allow_null=True, help_text="Mean absolute difference of a run's value of a query.")
    rise = serializers.FloatField(allow_null=True, help_text="Mean difference, model less people.")
    queries = serializers.IntegerField(min_value=0, help_text="With a pair of the sample.")


class CalibrationFacts(serializers.Serializer):
    """Calibration of a model, or why there is none: then no figure is told under its name."""

    size = serializers.IntegerField(min_value=0, help_text="Pairs of the round's sample; 0: none is drawn.")
    waiting = serializers.IntegerField(min_value=0, help_text="Pairs that wait for people, or for one before them.")
    used = serializers.IntegerField(min_value=0, help_text="Pairs that both graded.")
    cant_tell_people = serializers.IntegerField(min_value=0)
    cant_tell_model = serializers.IntegerField(min_value=0)
    is_stale = serializers.BooleanField(help_text="Model, prompt, scale or guidelines changed.")
    why_not = serializers.CharField(allow_null=True, help_text="Why there are no figures.")
    warnings = serializers.ListField(child=serializers.CharField())
    figures = CalibrationFigures(allow_null=True)


class LLMJudgeFacts(serializers.Serializer):
    """A model that judges a round."""

    id = serializers.UUIDField()
    name = serializers.CharField(help_text="Of its grades: server, model, revision, prompt.")
    llm = serializers.CharField()
    revision = serializers.CharField(help_text="unknown where its server tells none.")
    prompt_version = serializers.CharField()
    most = serializers.IntegerField(allow_null=True, help_text="Its cap, the last time that it was started.")
    graded = serializers.IntegerField(min_value=0)
    cant_tell = serializers.IntegerField(min_value=0, help_text="Its answer was no grade of the scale.")
    left = serializers.IntegerField(min_value=0)
    sentence = serializers.CharField()
    calibration = CalibrationFacts()


class LLMJudges(serializers.Serializer):
    """Models that judge a round, the one that was started last first."""

    judges = LLMJudgeFacts(many=True)


class VerdictsQuery(StrictSerializer):
    """Whose grades are used."""

    llm = Text(default="", allow_blank=True, help_text="Default: the model that was started last.")


class MixedPair(serializers.Serializer):
    """Two runs under a policy; the difference is first − second."""

    first_run_id = serializers.UUIDField()
    second_run_id = serializers.UUIDField()
    difference = serializers.FloatField()
    low = serializers.FloatField(help_text="95 %, of this pair alone.")
    high = serializers.FloatField()
    simultaneous_low = serializers.FloatField(allow_null=True, help_text="95 %, of all pairs at once.")
    simultaneous_high = serializers.FloatField(allow_null=True)
    p_adjusted = serializers.FloatField(help_text="Within the family of all pairs.")
    significant = serializers.BooleanField()


class PolicyVerdict(serializers.Serializer):
    """The verdict under one policy, or why there is none."""

    policy = serializers.ChoiceField(POLICIES)
    meaning = serializers.CharField()
    sentence = serializers.CharField()
    why_not = serializers.CharField(allow_null=True)
    best_run_ids = serializers.ListField(child=serializers.UUIDField(), help_text="The best, and what equals it.")
    queries = serializers.IntegerField(min_value=0, help_text="That every run answered.")
    judged = serializers.IntegerField(min_value=0, help_text="Pairs of the pool with a person's grade that counts.")
    by_model = serializers.IntegerField(min_value=0, help_text="With the model's.")
    holes = serializers.IntegerField(min_value=0, help_text="With none: not relevant.")
    unit = serializers.ChoiceField(
        ("query", "pair"), allow_null=True, help_text="Of `corrected`: what people judged a sample of."
    )
    sampled = serializers.IntegerField(min_value=0, help_text="How many of these the sample has.")
    gain = serializers.FloatField(allow_null=True, help_text="By how many of these the model enlarges it.")
    estimand = serializers.CharField(allow_null=True, help_text="What the differences are.")
    pairs = MixedPair(many=True)


class VerdictsFacts(serializers.Serializer):
    """Verdicts of a round's runs under the three policies. What evaluations store is people's alone."""

    judge = serializers.CharField(allow_null=True)
    measure = serializers.CharField()
    warnings = serializers.ListField(child=serializers.CharField())
    verdicts = PolicyVerdict(many=True)


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
