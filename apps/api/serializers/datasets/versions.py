"""Versions of datasets on the wire."""

from rest_framework import serializers

from apps.api.fields import Moment, StrictSerializer, Text, Whole
from apps.api.paging import Page
from apps.api.serializers.datasets.judgments import JudgmentFacts
from apps.api.serializers.datasets.queries import QueryFacts
from apps.datasets.records import LABEL_LENGTH


class FreezeRequest(StrictSerializer):
    """What to say of the version that the draft becomes."""

    label = Text(required=False, default="", allow_blank=True, max_length=LABEL_LENGTH, help_text="Such as 2026-11.")
    note = Text(required=False, default="", allow_blank=True, max_length=10_000)
    seen = Text(
        required=False,
        default="",
        max_length=64,
        help_text="`seen` of the difference that you looked at: 409 if the draft was edited since.",
    )


class VersionFacts(serializers.Serializer):
    """A version of a dataset in the API."""

    number = serializers.IntegerField(min_value=1)
    label = serializers.CharField(help_text="May be empty.")
    is_draft = serializers.SerializerMethodField()
    content_hash = serializers.CharField(help_text="Empty for a draft.")
    query_count = serializers.IntegerField(min_value=0)
    judgment_count = serializers.IntegerField(min_value=0)
    note = serializers.CharField(help_text="May be empty.")
    created_at = Moment()
    frozen_at = Moment(allow_null=True)

    def get_is_draft(self, version: object) -> bool:
        return getattr(version, "frozen_at", None) is None


class VersionPage(Page):
    """A page of versions."""

    versions = VersionFacts(many=True)


class ChangeFacts(serializers.Serializer):
    """Changes of a draft to the version before it."""

    added = serializers.IntegerField(min_value=0, help_text="Judgments.")
    changed = serializers.IntegerField(min_value=0)
    removed = serializers.IntegerField(min_value=0)
    queries = serializers.IntegerField(min_value=0, help_text="Added, removed or reworded, with their judgments.")
    sentence = serializers.CharField()


class VersionDetail(VersionFacts):
    """A version, and what it changes where it is the draft."""

    changes = ChangeFacts(allow_null=True)


class DifferenceQuery(StrictSerializer):
    """How much of a difference."""

    limit = Whole(required=False, default=50, min_value=1, max_value=500, help_text="Rows of each kind.")


class ChangedQuery(QueryFacts):
    """A query that was reworded or described differently."""

    text_before = serializers.CharField()


class ChangedJudgment(JudgmentFacts):
    """A judgment that was changed."""

    grade_before = serializers.IntegerField()


class Totals(serializers.Serializer):
    """How many rows each list has in all."""

    judgments_added = serializers.IntegerField(min_value=0)
    judgments_changed = serializers.IntegerField(min_value=0)
    judgments_removed = serializers.IntegerField(min_value=0)
    queries_added = serializers.IntegerField(min_value=0)
    queries_changed = serializers.IntegerField(min_value=0)
    queries_removed = serializers.IntegerField(min_value=0)


class VersionDifferenceFacts(serializers.Serializer):
    """Differences of a version to the one before it: the first rows of each kind, by key.

    Judgments are those of queries that both have. Removed rows are shown as they were.
    """

    number = serializers.IntegerField(min_value=1, source="version.number")
    since = serializers.IntegerField(min_value=0, help_text="The version before; 0 where there is none.")
    sentence = serializers.CharField(source="counts.sentence")
    seen = serializers.CharField(source="digest", help_text="For freezing exactly this: it changes with every edit.")
    totals = Totals()
    judgments_added = JudgmentFacts(many=True)
    judgments_changed = ChangedJudgment(many=True)
    judgments_removed = JudgmentFacts(many=True)
    queries_added = QueryFacts(many=True)
    queries_changed = ChangedQuery(many=True)
    queries_removed = QueryFacts(many=True)
