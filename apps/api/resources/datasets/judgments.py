"""Judgments of a dataset, one by one and many at once. Edits gather in its draft."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access.addressed import find_visible
from apps.api.endpoint import Endpoint
from apps.api.fields import valid
from apps.api.idempotency import idempotent
from apps.api.paging import answer_page
from apps.api.resources.datasets.queries import query_at
from apps.api.serializers.datasets.judgments import (
    BulkFacts,
    GradeStated,
    JudgmentFacts,
    JudgmentPage,
    JudgmentsEdited,
    JudgmentsQuery,
    JudgmentStated,
)
from apps.api.serializers.datasets.queries import StateQuery
from apps.datasets.editing.judgments import JudgmentEdit, edit_judgments, remove_judgment, set_judgment
from apps.datasets.editing.queries import require_current
from apps.datasets.models import Dataset, Judgment, Query
from apps.datasets.records import JudgmentRecord
from apps.datasets.versions import find_version, ref_hash


class Judgments(Endpoint):
    model = Dataset
    acts = {"GET": "view"}

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
    acts = {"POST": "change"}

    @extend_schema(operation_id="edit_judgments", request=JudgmentsEdited, responses=BulkFacts)
    @idempotent
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
        facts = {name: getattr(done, name) for name in ("added", "changed", "removed", "unchanged")}
        return Response(BulkFacts(facts | {"version": done.version.number}).data)


class QueryJudgments(Endpoint):
    model = Dataset
    acts = {"GET": "view", "POST": "change"}

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
        operation_id="state_judgment", request=JudgmentStated, responses={201: JudgmentFacts, 200: JudgmentFacts}
    )
    @idempotent
    def post(self, request: Request, dataset_id: UUID, query_id: int) -> Response:
        """State in the draft what grade a document has.

        201 where nobody judged it under that reference yet; 200 where this replaces a judgment, or says the same.
        """
        query = query_at(request, dataset_id, query_id)
        data = valid(JudgmentStated, request.data)
        require_current(query)
        known = query.judgments.filter(ref_hash=ref_hash(data["doc_ref"]), until__isnull=True).exists()
        judgment = judged(request, query, data["doc_ref"], data)
        return Response(JudgmentFacts(judgment).data, status=200 if known else 201)


class OneJudgment(Endpoint):
    model = Dataset
    acts = {"GET": "view", "PUT": "change", "DELETE": "change"}

    @extend_schema(operation_id="get_judgment", responses=JudgmentFacts)
    def get(self, request: Request, dataset_id: UUID, query_id: int, judgment_id: int) -> Response:
        """Show a judgment, one of an older version too."""
        return Response(JudgmentFacts(judgment_at(request, dataset_id, query_id, judgment_id)).data)

    @extend_schema(operation_id="change_judgment", request=GradeStated, responses=JudgmentFacts)
    def put(self, request: Request, dataset_id: UUID, query_id: int, judgment_id: int) -> Response:
        """Change the grade of the document in the draft, under the reference that it has.

        The answer has another id where a frozen version holds the judgment that was. 409 for one that was changed or
        removed since.
        """
        judgment = judgment_at(request, dataset_id, query_id, judgment_id)
        data = valid(GradeStated, request.data)
        require_current(judgment)
        return Response(JudgmentFacts(judged(request, judgment.query, judgment.doc_ref, data)).data)

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
