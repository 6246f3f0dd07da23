"""Mappings on the wire."""

from rest_framework import serializers

from apps.api.fields import Choice, Identifier, Moment, StrictSerializer, Text, VersionNumber
from apps.api.paging import Page, PageQuery
from apps.mappings.models import Mapping, Resolution
from apps.mappings.repairing import MOST_CANDIDATES
from benchbench.names import MAX_LENGTH

LOST = [outcome.value for outcome in Resolution.Outcome if outcome != Resolution.Outcome.RESOLVED]


class MappingRequest(StrictSerializer):
    """Which collection the dataset is laid over."""

    collection_id = Identifier()
    name = Text(required=False, default="", allow_blank=True, max_length=MAX_LENGTH, help_text="Without: after both.")


class MappingFacts(serializers.Serializer):
    """A mapping in the API."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    dataset_id = serializers.UUIDField()
    dataset_version = serializers.IntegerField(
        source="dataset_version.number",
        allow_null=True,
        help_text="Number of the version whose judgments the counts speak of; null before the mapping is resolved.",
    )
    collection_id = serializers.UUIDField()
    mapping_status = serializers.ChoiceField(Mapping.Status.values, source="status")
    mapped_count = serializers.IntegerField(min_value=0, help_text="Judgments that found their document.")
    total_count = serializers.IntegerField(min_value=0)
    counts = serializers.DictField(
        child=serializers.IntegerField(min_value=0),
        help_text="Judgments by outcome; conflicts: documents that a query grades differently. Empty: not resolved.",
    )
    created_at = Moment()
    resolved_at = Moment(allow_null=True)


class CandidateFacts(serializers.Serializer):
    """A document that an ambiguous reference fits."""

    uuid = serializers.UUIDField()
    external_id = serializers.CharField()
    uri = serializers.CharField(help_text="May be empty.")
    file_name = serializers.CharField(help_text="May be empty.")
    title = serializers.CharField(help_text="May be empty.")


class UnresolvedFacts(serializers.Serializer):
    """A judgment that found no document, and why."""

    judgment_id = serializers.IntegerField(source="resolution.judgment_id")
    query_id = serializers.IntegerField(source="resolution.judgment.query_id")
    query_key = serializers.CharField(source="resolution.judgment.query.key")
    query_text = serializers.CharField(source="resolution.judgment.query.text")
    doc_ref = serializers.DictField(source="resolution.judgment.doc_ref")
    relevance_grade = serializers.IntegerField(source="resolution.judgment.grade")
    outcome = serializers.ChoiceField(LOST, source="resolution.outcome")
    key = serializers.CharField(source="resolution.key", help_text="The key of the reference that decided, if any.")
    reason = serializers.CharField(source="resolution.reason")
    candidates = CandidateFacts(many=True, help_text=f"Of an ambiguous one, at most {MOST_CANDIDATES}.")


class UnresolvedQuery(PageQuery):
    """Which page, and of which outcome."""

    outcome = Choice(LOST, required=False)


class UnresolvedPage(Page):
    """A page of judgments without a document."""

    unresolved = UnresolvedFacts(many=True)


class ResolvedFacts(MappingFacts):
    """A mapping and the result of resolving it."""

    operation_uuid = serializers.UUIDField(allow_null=True, help_text="The operation that resolves it on the queue.")
    unresolved = UnresolvedFacts(many=True, help_text="The first of them; …/unresolved lists all. Empty where queued.")


class CheckRequest(StrictSerializer):
    """Which version of the dataset is looked up."""

    version = VersionNumber(help_text="Default: the draft, else the newest version.")


class DanglingFacts(serializers.Serializer):
    """A judgment that leads nowhere."""

    query_key = serializers.CharField(source="key")
    reason = serializers.CharField()


class CheckedFacts(serializers.Serializer):
    """What looking up references found; nothing is stored."""

    version = serializers.IntegerField(min_value=1)
    checked = serializers.IntegerField(min_value=0, help_text="Judgments that were looked up.")
    dangling_count = serializers.IntegerField(
        min_value=0, help_text="References that do not lead to exactly one document, or lead to no section."
    )
    dangling = DanglingFacts(many=True, help_text="The first of them.")
