"""Judgments of a dataset, one by one and many at once. Edits gather in its draft."""

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import ModelAnswer, answer_page, page_of, present
from apps.api.endpoint import Endpoint, find_visible
from apps.api.fields import StrictSerializer, Text, Whole, valid
from apps.api.resources.queries import StateQuery, query_at
from apps.datasets.editing.judgments import JudgmentEdit, edit_judgments, remove_judgment, set_judgment
from apps.datasets.editing.queries import require_current
from apps.datasets.models import Dataset, Judgment, Query
from apps.datasets.records import (
    DOC_REF_KEYS,
    GRADES,
    JUDGE_LENGTH,
    LENGTHS,
    REFERENCE_LENGTH,
    JudgmentRecord,
    as_doc_ref,
    doc_ref_fault,
)
from apps.datasets.versions import find_version, ref_hash

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
class DocRefField(serializers.Field):
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
    section_refs = serializers.ListField(
        child=Text(max_length=REFERENCE_LENGTH),
        allow_null=True,
        default=None,
        help_text="Ids of sections of the document.",
    )
    source = serializers.ChoiceField(Judgment.Source.choices, default=Judgment.Source.HUMAN.value)
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

    judgments = serializers.ListField(child=JudgmentEdited(), min_length=1, max_length=MOST_EDITS)


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
            "until": {"help_text": "First version that has it no more."},
        }


class JudgmentsQuery(StateQuery):
    """Which judgments."""

    query_key = Text(required=False, trim_whitespace=False)


JudgmentPage = page_of("judgments", JudgmentAnswer)


@dataclass(frozen=True)
class BulkAnswer:
    """The result of stating judgments together."""

    version: Annotated[int, "The version with the result: the draft, if there is one."]
    added: int
    changed: int
    removed: int
    unchanged: int


class Judgments(Endpoint):
    model = Dataset

    @extend_schema(operation_id="list_judgments", parameters=[JudgmentsQuery], responses=JudgmentPage)
    def get(self, request: Request, dataset_id: UUID) -> Response:
        """List the judgments of a version; without one of the draft, else of the newest version."""
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        query = valid(JudgmentsQuery, request.query_params)
        rows = find_version(dataset, query.get("version"), edited=True).judgments.order_by("query_id", "id")
        if "query_key" in query:
            rows = rows.filter(query__key=query["query_key"])
        return answer_page(JudgmentPage, rows.select_related("query"), query)


class BulkJudgments(Endpoint):
    model = Dataset

    @extend_schema(operation_id="edit_judgments", request=JudgmentsEdited, responses=BulkAnswer)
    def post(self, request: Request, dataset_id: UUID) -> Response:
        """State many judgments in the draft, all of them or none; an error names the row."""
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        edits = [
            JudgmentEdit(
                row["query_key"],
                row["doc_ref"],
                None if row["relevance_grade"] is None else JudgmentRecord(row["doc_ref"], **statement(request, row)),
            )
            for row in valid(JudgmentsEdited, request.data)["judgments"]
        ]
        done = edit_judgments(dataset, edits, judged_by=request.user)
        return present(BulkAnswer(done.version.number, done.added, done.changed, done.removed, done.unchanged))


class QueryJudgments(Endpoint):
    model = Dataset

    @extend_schema(operation_id="list_judgments_of_query", parameters=[StateQuery], responses=JudgmentPage)
    def get(self, request: Request, dataset_id: UUID, query_id: int) -> Response:
        """List the judgments of a query; without a version those of the last one that has it in this wording."""
        query = query_at(request, dataset_id, query_id)
        state = valid(StateQuery, request.query_params)
        if "version" in state:
            rows = find_version(query.dataset, state["version"]).judgments.filter(query=query)
        else:
            rows = query.judgments.filter(until=query.until)
        return answer_page(JudgmentPage, rows.select_related("query").order_by("id"), state)

    @extend_schema(
        operation_id="state_judgment", request=JudgmentStated, responses={201: JudgmentAnswer, 200: JudgmentAnswer}
    )
    def post(self, request: Request, dataset_id: UUID, query_id: int) -> Response:
        """State in the draft what grade a document has.

        201 where nobody judged it under that reference yet; 200 where this replaces a judgment, or says the same.
        """
        query = query_at(request, dataset_id, query_id)
        data = valid(JudgmentStated, request.data)
        require_current(query)
        known = query.judgments.filter(ref_hash=ref_hash(data["doc_ref"]), until__isnull=True).exists()
        judgment = judged(request, query, data["doc_ref"], data)
        return Response(JudgmentAnswer(judgment).data, status=200 if known else 201)


class OneJudgment(Endpoint):
    model = Dataset
    acts = {"DELETE": "change"}

    @extend_schema(operation_id="get_judgment", responses=JudgmentAnswer)
    def get(self, request: Request, dataset_id: UUID, query_id: int, judgment_id: int) -> Response:
        """Show a judgment, one of an older version too."""
        return Response(JudgmentAnswer(judgment_at(request, dataset_id, query_id, judgment_id)).data)

    @extend_schema(operation_id="change_judgment", request=GradeStated, responses=JudgmentAnswer)
    def put(self, request: Request, dataset_id: UUID, query_id: int, judgment_id: int) -> Response:
        """Change the grade of the document in the draft, under the reference that it has.

        The answer has another id where a frozen version holds the judgment that was. 409 for one that was changed or
        removed since.
        """
        judgment = judgment_at(request, dataset_id, query_id, judgment_id)
        data = valid(GradeStated, request.data)
        require_current(judgment)
        return Response(JudgmentAnswer(judged(request, judgment.query, judgment.doc_ref, data)).data)

    @extend_schema(operation_id="remove_judgment", responses={204: None})
    def delete(self, request: Request, dataset_id: UUID, query_id: int, judgment_id: int) -> Response:
        """Take a judgment out of the draft, so that nobody judged the document; frozen versions keep it."""
        judgment = judgment_at(request, dataset_id, query_id, judgment_id)
        require_current(judgment)
        remove_judgment(judgment.query.dataset, judgment.query.key, judgment.doc_ref)
        return Response(status=204)


def judgment_at(request: Request, dataset_id: UUID, query_id: int, judgment_id: int) -> Judgment:
    """Return the judgment of an address; raise as `find_visible` does for it and for what it is in."""
    query = query_at(request, dataset_id, query_id)
    rows = query.judgments.select_related("query__dataset")
    return find_visible(rows, judgment_id, request.user, through="query__dataset")


def judged(request: Request, query: Query, doc_ref: dict[str, Any], data: dict[str, Any]) -> Judgment:
    record = JudgmentRecord(doc_ref, **statement(request, data))
    return set_judgment(query.dataset, query.key, record, judged_by=request.user)


def statement(request: Request, data: dict[str, Any]) -> dict[str, Any]:
    """Return what a request states of a judgment, under the names of its record."""
    return {
        "grade": data["relevance_grade"],
        "section_refs": data["section_refs"],
        "source": data["source"],
        "judge": data["judge"] or request.user.get_username(),
        "note": data["note"],
    }
