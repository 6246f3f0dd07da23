"""Versions of datasets on the wire."""

from rest_framework import serializers

from apps.api.paging import Page
from apps.api.serializers.base import Moment, StrictSerializer, Text
from apps.datasets.records import LABEL_LENGTH


class FreezeRequest(StrictSerializer):
    """What to say of the version that the draft becomes."""

    label = Text(required=False, default="", allow_blank=True, max_length=LABEL_LENGTH, help_text="Such as 2026-11.")
    note = Text(required=False, default="", allow_blank=True, max_length=10_000)


class VersionFacts(serializers.Serializer):
    """A version of a dataset as the API tells it."""

    number = serializers.IntegerField(min_value=1)
    label = serializers.CharField(help_text="May be empty.")
    is_draft = serializers.SerializerMethodField()
    content_hash = serializers.CharField(help_text="Empty of a draft.")
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
    """What a draft changes of the version before it."""

    added = serializers.IntegerField(min_value=0, help_text="Judgments.")
    changed = serializers.IntegerField(min_value=0)
    removed = serializers.IntegerField(min_value=0)
    queries = serializers.IntegerField(min_value=0, help_text="Added, removed or worded anew, with their judgments.")
    sentence = serializers.CharField()


class VersionDetail(VersionFacts):
    """A version, and what it changes where it is the draft."""

    changes = ChangeFacts(allow_null=True)
