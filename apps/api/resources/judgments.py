"""Judgments of a dataset, one by one and many at once. Edits gather in its draft."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from apps.api.answers import Answer, ModelAnswer, build_page, present
from apps.api.fields import Int, Key, StrictSerializer, Text, Validated
from apps.api.resource import delete, find_visible, get, post, put
from apps.api.resources.datasets import DatasetPart, StateQuery
from apps.datasets import records
from apps.datasets.editing.judgments import EditResult, JudgmentEdit, edit_judgments, remove_judgment, set_judgment
from apps.datasets.editing.queries import require_current
from apps.datasets.models import Dataset, Judgment, Query
from apps.datasets.versions import find_version

MOST_EDITS = 5000
FILLED = {"type": "string", "pattern": r"\S"}
DOC_REF = {
    "oneOf": [
        FILLED | {"description": "The uri."},
        {
            "type": "object",
            "properties": dict.fromkeys(records.DOC_REF_KEYS, FILLED | {"type": ["string", "null"]}),
            "anyOf": [{"properties": {key: FILLED}, "required": [key]} for key in records.DOC_REF_KEYS],
            "description": "At least one of them; null means not given.",
            "additionalProperties": False,
        },
    ]
}
GRADE: dict[str, object] = {"min_value": records.GRADES.start, "max_value": records.GRADES.stop - 1}


@extend_schema_field(DOC_REF)
class DocRefField(serializers.Field):
    """The reference of a judgment to its document."""

    def to_internal_value(self, data: object) -> dict[str, object]:
        doc_ref = records.normalise_doc_ref(data)
        fault, key = records.find_doc_ref_fault(doc_ref)
        if fault:
            messages = [f"doc_ref {fault}."]
            raise serializers.ValidationError({key: messages} if key and isinstance(data, dict) else messages)
        return doc_ref


class GradeChange(StrictSerializer):
    """A new grade for a judged document, which keeps its reference."""

    relevance_grade = Int(source="grade", **GRADE, help_text="Above 0 is relevant, 0 judged not relevant.")
    section_refs = serializers.ListField(
        child=Key(max_length=records.REFERENCE_LENGTH),
        allow_null=True,
        default=None,
        help_text="Ids of sections of the document.",
    )
    source = serializers.ChoiceField(Judgment.Source.choices, default=Judgment.Source.HUMAN.value)
    judge = Text(default="", allow_blank=True, max_length=records.JUDGE_LENGTH, help_text="Empty: your name.")
    note = Text(default="", allow_blank=True, help_text="The reason, for later readers.")


class NewJudgment(GradeChange):
    """A grade for a document."""

    doc_ref = DocRefField()


class JudgmentChange(NewJudgment):
    """A grade for a document and a query; a null grade removes the judgment."""

    query_key = Key(max_length=records.LENGTHS["key"])
    relevance_grade = Int(source="grade", **GRADE, allow_null=True, help_text="null: remove the judgment.")


class JudgmentChanges(StrictSerializer):
    """Judgments to store together, all or none."""

    judgments = serializers.ListField(child=JudgmentChange(), min_length=1, max_length=MOST_EDITS)


class JudgmentAnswer(ModelAnswer):
    """A judgment."""

    query_key = serializers.CharField(source="query.key")
    relevance_grade = serializers.IntegerField(source="grade")
    section_refs = serializers.ListField(child=serializers.CharField(), allow_null=True)

    class Meta:
        model = Judgment
        fields = [
            *("id", "query_id", "query_key", "doc_ref", "relevance_grade", "section_refs", "source", "judge"),
            *("judged_by_id", "note", "since", "until", "created_at"),
        ]
        extra_kwargs = {
            "id": {"help_text": "Of this judgment; a judgment that replaces a frozen one has another id."},
            "judged_by_id": {"help_text": "The user who stated it here."},
            "since": {"help_text": "First version that has it."},
            "until": {"help_text": "First version without it."},
        }


class JudgmentsQuery(StateQuery):
    """Query parameters for listing judgments."""

    query_key = Key(required=False)


JudgmentPage = build_page("judgments", JudgmentAnswer)


class BulkAnswer(Answer):
    """Counts of the stored judgments."""

    version = serializers.IntegerField(
        source="version.number", help_text="The version with the result: the draft, if there is one."
    )

    class Meta:
        dataclass = EditResult
        exclude = ["judgments"]


class Judgments(DatasetPart):
    @get("/judgments", JudgmentPage, JudgmentsQuery)
    def list_judgments(self, dataset: Dataset, query: Validated) -> QuerySet[Judgment]:
        """List the judgments of a version; by default of the draft, else of the newest version."""
        rows = find_version(dataset, query.get("version"), edited=True).judgments.order_by("query_id", "id")
        if "query_key" in query:
            rows = rows.filter(query__key=query["query_key"])
        return rows.select_related("query")

    @post("/judgments/bulk", BulkAnswer, JudgmentChanges, history="Store many judgments in the draft.")
    def edit_judgments(self, dataset: Dataset, data: Validated) -> EditResult:
        """Store many judgments in the draft, all or none; an error names the row."""
        edits = [
            JudgmentEdit(row.pop("query_key"), row["doc_ref"], None if row["grade"] is None else self.record(row))
            for row in data["judgments"]
        ]
        return edit_judgments(dataset, edits, judged_by=self.user)

    @get("/queries/<int:query_id>/judgments", JudgmentPage, StateQuery)
    def list_judgments_of_query(self, query: Query, state: Validated) -> QuerySet[Judgment]:
        """List the judgments of a query; by default in the last version with this wording."""
        if "version" in state:
            rows = find_version(query.dataset, state["version"]).judgments.filter(query=query)
        else:
            rows = query.judgments.filter(until=query.until)
        return rows.select_related("query").order_by("id")

    @post(
        "/queries/<int:query_id>/judgments",
        JudgmentAnswer,
        NewJudgment,
        statuses=(201, 200),
        history="Store the grade of a document in the draft.",
    )
    def set_judgment(self, query: Query, data: Validated) -> Response:
        """Store the grade of a document in the draft.

        201 for a new reference; 200 if this replaces or repeats a judgment.
        """
        require_current(query)
        is_judged = query.judgments.filter(ref_hash=self.record(data).ref_hash, until__isnull=True).exists()
        judgment = self.judge(query, data)
        return present(JudgmentAnswer, judgment, 200 if is_judged else 201)

    @get("/queries/<int:query_id>/judgments/<int:judgment_id>", JudgmentAnswer)
    def get_judgment(self, judgment: Judgment) -> Judgment:
        """Show a judgment of any version."""
        return judgment

    @put(
        "/queries/<int:query_id>/judgments/<int:judgment_id>",
        JudgmentAnswer,
        GradeChange,
        history="Change the grade of a document in the draft.",
    )
    def change_judgment(self, judgment: Judgment, data: Validated) -> Judgment:
        """Change the grade of a document in the draft; its reference stays.

        The answer has a new id if a frozen version contains the old judgment. 409 if it was changed or removed since.
        """
        require_current(judgment)
        return self.judge(judgment.query, {"doc_ref": judgment.doc_ref, **data})

    @delete(
        "/queries/<int:query_id>/judgments/<int:judgment_id>", act="change", history="Remove a judgment from the draft."
    )
    def remove_judgment(self, judgment: Judgment) -> None:
        """Remove a judgment from the draft; the document is then unjudged. Frozen versions keep it."""
        require_current(judgment)
        remove_judgment(judgment.query.dataset, judgment.query.key, judgment.doc_ref)

    def find(self, dataset_id: UUID, query_id: int | None = None, judgment_id: int | None = None) -> Any:
        query = super().find(dataset_id, query_id)
        if judgment_id is None:
            return query
        rows = query.judgments.select_related("query__dataset")
        return find_visible(rows, judgment_id, self.user, through="query__dataset")

    def judge(self, query: Query, data: Validated) -> Judgment:
        return set_judgment(query.dataset, query.key, self.record(data), judged_by=self.user)

    def record(self, data: Validated) -> records.JudgmentRecord:
        return records.JudgmentRecord(**data | {"judge": data["judge"] or self.user.get_username()})
