"""Judging rounds on the wire: opening, changing, looking, closing."""

from typing import Any

from rest_framework import serializers

from apps.api import sentences
from apps.api.fields import (
    Choice,
    Flag,
    Identifier,
    ListOf,
    Moment,
    Spoken,
    StrictSerializer,
    Text,
    Whole,
    typed,
)
from apps.api.paging import Page, PageQuery
from apps.judging.models import Round
from apps.judging.opening import MOST_DEPTH, MOST_SEED
from apps.judging.scales import LONGEST_DESCRIPTION, LONGEST_NAME
from benchbench.ir.judging.orders import SHARE

LONGEST_GUIDELINES = 100_000
MOST_RUNS = 64
MOST_JUDGES = 100


class Number(Spoken, serializers.FloatField):
    """A number of any kind; the use case knows its range."""

    default_error_messages = sentences.NUMBER

    def to_internal_value(self, data: Any) -> float:
        return float(typed(self, data, (int, float), "a number"))


class GradeOfScale(StrictSerializer):
    """A grade that judges choose."""

    grade = Whole(min_value=0, max_value=9, help_text="0 is not relevant; its digit is its key.")
    name = Text(max_length=LONGEST_NAME)
    description = Text(required=False, default="", allow_blank=True, max_length=LONGEST_DESCRIPTION)


class NewRound(StrictSerializer):
    """A judging round over completed runs of one mapping."""

    name = Text(max_length=200)
    run_ids = ListOf(child=Identifier(), min_length=1, max_length=MOST_RUNS)
    judges = ListOf(
        child=Text(max_length=150), max_length=MOST_JUDGES, default=list, help_text="User names. Without any, you."
    )
    order = Choice(Round.Order.values, default="decisive")
    measure = Text(required=False, default="", help_text="Default: nDCG at the primary k of the first run's benchmark.")
    depth = Whole(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=MOST_DEPTH,
        help_text="Default: the cutoff.",
    )
    budget = Whole(required=False, allow_null=True, default=None, min_value=1, help_text="Items. Default: the pool.")
    uniform_share = Number(required=False, default=SHARE, help_text="From 0 to 1, drawn uniformly at random.")
    seed = Whole(required=False, default=42, min_value=0, max_value=MOST_SEED)
    scale = ListOf(
        child=GradeOfScale(), default=list, max_length=10, help_text="Default: 0 to the dataset's highest grade."
    )
    guidelines = Text(required=False, default="", allow_blank=True, max_length=LONGEST_GUIDELINES)
    overlap = Number(required=False, default=0.0, help_text="From 0 to 1, graded by several judges.")
    overlap_judges = Whole(required=False, default=2, min_value=2, max_value=10)
    blind = Flag(required=False, default=True, help_text="While it is open, nobody sees grades of others.")


class RoundChanges(StrictSerializer):
    """What to change of an open round."""

    goes_on = Flag(required=False, help_text="true: items are handed out although its question is settled.")
    judges = ListOf(child=Text(max_length=150), required=False, min_length=1, max_length=MOST_JUDGES)
    guidelines = Text(required=False, allow_blank=True, max_length=LONGEST_GUIDELINES)


class RoundQuery(PageQuery):
    """Which page of which rounds."""

    state = Choice(Round.State.values, required=False)


class ScaleFacts(serializers.Serializer):
    """A grade of a scale."""

    grade = serializers.IntegerField(min_value=0, max_value=9)
    name = serializers.CharField()
    description = serializers.CharField(help_text="May be empty.")


class RoundFacts(serializers.Serializer):
    """A judging round in the API."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    owner_id = serializers.IntegerField(allow_null=True)
    mapping_id = serializers.UUIDField()
    dataset_version = serializers.IntegerField(
        min_value=1, source="dataset_version.number", help_text="That it began from."
    )
    run_ids = serializers.SerializerMethodField()
    judges = serializers.SerializerMethodField()
    state = serializers.ChoiceField(Round.State.values)
    order = serializers.ChoiceField(Round.Order.values)
    measure = serializers.CharField()
    depth = serializers.IntegerField(min_value=1)
    budget = serializers.IntegerField(allow_null=True)
    uniform_share = serializers.FloatField()
    seed = serializers.IntegerField()
    scale = ScaleFacts(many=True)
    guidelines = serializers.CharField(help_text="Markdown; may be empty.")
    overlap = serializers.FloatField()
    overlap_judges = serializers.IntegerField(min_value=2)
    blind = serializers.BooleanField()
    item_count = serializers.IntegerField(min_value=0)
    pool_size = serializers.IntegerField(min_value=0, help_text="Pairs that nobody judged when it was opened.")
    goes_on = serializers.BooleanField()
    answered_at = Moment(allow_null=True, help_text="When its question was settled; null while it is not.")
    created_at = Moment()
    closed_at = Moment(allow_null=True)
    closed_version = serializers.IntegerField(
        source="closed_version.number", allow_null=True, help_text="The version that it became."
    )

    def get_run_ids(self, row: Any) -> list[str]:
        return [str(run.run_id) for run in row.round_runs.all()]

    def get_judges(self, row: Any) -> list[str]:
        return sorted(judge.username for judge in row.judges.all())


class RoundPage(Page):
    """A page of judging rounds."""

    rounds = RoundFacts(many=True)


class CloseRequest(StrictSerializer):
    """How to close a round."""

    leave_out_split = Flag(required=False, default=False, help_text="Leave out what waits for adjudication.")
    with_draft = Flag(required=False, default=False, help_text="Freeze other edits in the dataset's draft too.")
    label = Text(required=False, default="", allow_blank=True, max_length=50)
    note = Text(required=False, default="", allow_blank=True, max_length=10_000)


class ClosedFacts(serializers.Serializer):
    """What closing a round did."""

    version = serializers.IntegerField(allow_null=True, source="version.number")
    judgments = serializers.IntegerField(min_value=0, help_text="That the version has from the round.")
    split = serializers.IntegerField(min_value=0, help_text="Items left out, as their judges are split.")
    outdated = serializers.IntegerField(min_value=0, help_text="Of queries or documents that changed since.")
    judged = serializers.IntegerField(min_value=0, help_text="Judged elsewhere since.")
    sentence = serializers.CharField()
