"""Judgments on the wire."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.fields import AnyValue, Choice, ListOf, Moment, StrictSerializer, Text, Whole
from apps.api.paging import Page
from apps.api.serializers.datasets.queries import StateQuery
from apps.datasets.models import Judgment
from apps.datasets.records import (
    DOC_REF_KEYS,
    GRADES,
    JUDGE_LENGTH,
    LENGTHS,
    REFERENCE_LENGTH,
    as_doc_ref,
    doc_ref_fault,
)

MOST_EDITS = 5000
FILLED = {"type": "string", "pattern": r"\S"}
DOC_REF = {
    "oneOf": [
        FILLED | {"description": "The uri."},
        {
            "type": "object",
            "properties": dict.fromkeys(DOC_REF_KEYS, FILLED | {"type": ["string", "null"]}),
            "anyOf": [{"properties": {key: FILLED}, "required": [key]} for key in DOC_REF_KEYS],
            "description": "At least one of them; null means not given.",
            "additionalProperties": False,
        },
    ]
}
GRADE: dict[str, Any] = {"min_value": GRADES.start, "max_value": GRADES.stop - 1}


@extend_schema_field(DOC_REF)
class DocRefField(AnyValue):
    """What a judgment calls its document."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        doc_ref = as_doc_ref(data)
        what, key = doc_ref_fault(doc_ref)
        if what:
            told = [f"doc_ref {what}."]
            raise serializers.ValidationError({key: told} if key and isinstance(data, dict) else told)
        return doc_ref


class GradeStated(StrictSerializer):
    """A grade for a document that is judged already, under the reference that it has."""

    relevance_grade = Whole(**GRADE, help_text="Above 0 is relevant, 0 judged not relevant.")
    section_refs = ListOf(
        child=Text(max_length=REFERENCE_LENGTH),
        required=False,
        allow_null=True,
        default=None,
        help_text="Ids of sections of the document.",
    )
    source = Choice(Judgment.Source.values, required=False, default=Judgment.Source.HUMAN.value)
    judge = Text(required=False, allow_blank=True, default="", max_length=JUDGE_LENGTH, help_text="Empty: your name.")
    note = Text(required=False, allow_blank=True, default="", help_text="The reason, for later readers.")


class JudgmentStated(GradeStated):
    """A grade for a document."""

    doc_ref = DocRefField()


class JudgmentEdited(JudgmentStated):
    """A grade for a document and a query; the grade null takes the judgment away."""

    query_key = Text(max_length=LENGTHS["key"], trim_whitespace=False)
    relevance_grade = Whole(**GRADE, allow_null=True, help_text="null: nobody judged it.")


class JudgmentsEdited(StrictSerializer):
    """Judgments that are stated together, all or none."""

    judgments = ListOf(child=JudgmentEdited(), min_length=1, max_length=MOST_EDITS)


class JudgmentFacts(serializers.Serializer):
    """A judgment in the API."""

    id = serializers.IntegerField(help_text="Of this judgment; a judgment that replaces a frozen one has another id.")
    query_id = serializers.IntegerField()
    query_key = serializers.CharField(source="query.key")
    doc_ref = serializers.DictField()
    relevance_grade = serializers.IntegerField(source="grade")
    section_refs = serializers.ListField(child=serializers.CharField(), allow_null=True)
    source = serializers.ChoiceField(Judgment.Source.values)
    judge = serializers.CharField(help_text="May be empty.")
    judged_by_id = serializers.IntegerField(allow_null=True, help_text="The user who stated it here.")
    note = serializers.CharField(help_text="May be empty.")
    since = serializers.IntegerField(min_value=1, help_text="First version that has it.")
    until = serializers.IntegerField(allow_null=True, help_text="First version that has it no more.")
    created_at = Moment()


class JudgmentsQuery(StateQuery):
    """Which judgments."""

    query_key = Text(required=False, trim_whitespace=False)


class JudgmentPage(Page):
    """A page of judgments."""

    judgments = JudgmentFacts(many=True)


class BulkFacts(serializers.Serializer):
    """The result of stating judgments together."""

    version = serializers.IntegerField(
        min_value=1, help_text="The version with the result: the draft, if there is one."
    )
    added = serializers.IntegerField(min_value=0)
    changed = serializers.IntegerField(min_value=0)
    removed = serializers.IntegerField(min_value=0)
    unchanged = serializers.IntegerField(min_value=0)
