"""A language model as the judge of a round: cost, start, calibration, and the verdicts that use its grades."""

from dataclasses import dataclass
from uuid import UUID

from rest_framework import serializers

from apps.api.answers import Answer
from apps.api.fields import Int, StrictSerializer, Text, Validated
from apps.api.resource import get, post
from apps.api.resources.items import RoundPart
from apps.judging.judges import require_lead
from apps.judging.llm.calibration import draw_sample
from apps.judging.llm.judges import LLMJudgeReport, build_judge_report, find_llm_judge, load_llm_judges
from apps.judging.llm.launching import LONGEST_NAME, Cost, preview, start_judging
from apps.judging.llm.verdicts import VerdictsReport, compute_verdicts
from apps.judging.models import Round
from benchbench.ir.judging.calibration import MAX_PAIRS, MIN_PAIRS


class LLMRequest(StrictSerializer):
    """The judging model and the greatest number of items."""

    llm = Text(max_length=LONGEST_NAME, help_text="Server and model, as ollama:llama3; servers are in the settings.")
    item_limit = Int(
        allow_null=True, default=None, min_value=1, help_text="At most so many items. Default: every item."
    )


class LLMCost(Answer):
    """Estimated cost of judging."""

    sentence = serializers.CharField()

    class Meta:
        dataclass = Cost


@dataclass(frozen=True)
class LLMStarted:
    """The started judge and its operation."""

    judge: str
    operation_uuid: UUID


class SampleRequest(StrictSerializer):
    """The size of a calibration sample."""

    size = Int(min_value=MIN_PAIRS, max_value=MAX_PAIRS, help_text="Pairs; of a smaller pool, every pair.")


@dataclass(frozen=True)
class SampleAnswer:
    """The drawn calibration sample."""

    size: int


@dataclass(frozen=True)
class LLMJudges:
    """Models that judge a round, last started first."""

    judges: list[LLMJudgeReport]


class VerdictsQuery(StrictSerializer):
    """The model whose grades are used."""

    llm = Text(default="", allow_blank=True, help_text="Default: the model that was started last.")


class LLMJudging(RoundPart):
    """Judging by a model, for the users who lead the round."""

    model = Round

    @get("/llm-judges", LLMJudges)
    def list_llm_judges(self, round: Round) -> LLMJudges:
        """List the models that judge a round, each with its calibration against people.

        A model without a current calibration has no figures. 409 if you do not lead the round.
        """
        return LLMJudges([build_judge_report(judge) for judge in load_llm_judges(round)])

    @post(
        "/llm-judges",
        LLMStarted,
        LLMRequest,
        status=202,
        throttle="start",
        history="Let a model judge items of a round.",
    )
    def start_llm_judging(self, round: Round, data: Validated) -> LLMStarted:
        """Let a model judge items of a round not judged by it yet, at most `item_limit`, first the calibration sample.

        Its grades are stored separately and never count as people's. Starting again resumes. 409 if it is running, the
        round is closed, or you do not lead it.
        """
        judge, operation = start_judging(round, by=self.user, **data)
        return LLMStarted(judge.name, operation.pk)

    @post("/llm-judges/preview", LLMCost, LLMRequest, act="view")
    def preview_llm_judging(self, round: Round, data: Validated) -> Cost:
        """Estimate the answers, tokens and seconds of judging by a model, without asking it.

        409 if the round is closed, or you do not lead it.
        """
        return preview(round, **data)

    @post(
        "/calibration-sample",
        SampleAnswer,
        SampleRequest,
        status=201,
        history="Draw the calibration sample of a round.",
    )
    def draw_calibration_sample(self, round: Round, data: Validated) -> SampleAnswer:
        """Draw the calibration sample of a round: a uniform sample of its pairs, which then never changes.

        People judge it like other items of the round. 409 if one exists, the round is closed, or you do not lead it.
        """
        return SampleAnswer(draw_sample(round, by=self.user, **data))

    @get("/verdicts", VerdictsReport, VerdictsQuery)
    def get_verdicts(self, round: Round, query: Validated) -> VerdictsReport:
        """Compare a round's runs by people's grades, with a model's added, and with a model's corrected by people's.

        409 if you do not lead the round.
        """
        return compute_verdicts(round, find_llm_judge(round, query["llm"]))

    def find(self, round_id: UUID) -> Round:
        round: Round = super().find(round_id)
        require_lead(round, self.user)
        return round
