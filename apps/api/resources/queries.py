"""Queries of a dataset. Edits gather in its draft."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import ModelAnswer, answer_page, page_of
from apps.api.endpoint import Endpoint, find_visible
from apps.api.fields import PageQuery, StrictSerializer, Text, VersionNumber, valid
from apps.datasets.editing.queries import add_query, edit_query, remove_query
from apps.datasets.models import Dataset, Query
from apps.datasets.records import LENGTHS, SLICE_LENGTH, QueryRecord
from apps.datasets.versions import find_version

BLANK: dict[str, Any] = {"required": False, "allow_blank": True}


class StateQuery(PageQuery):
    """Which page, and of which version."""

    version = VersionNumber(help_text="Default: the draft, else the newest version.")


class QueriesQuery(StateQuery):
    """Which queries."""

    query_key = Text(required=False, trim_whitespace=False)


class QueryChange(StrictSerializer):
    """The fields to change; the others stay."""

    query_text = Text(required=False, max_length=LENGTHS["text"])
    slices = serializers.ListField(child=Text(max_length=SLICE_LENGTH), required=False)
    category = Text(**BLANK, max_length=LENGTHS["category"])
    difficulty = Text(**BLANK, max_length=LENGTHS["difficulty"])
    query_type = Text(**BLANK, max_length=LENGTHS["query_type"])
    split = Text(**BLANK, max_length=LENGTHS["split"])
    filters = serializers.DictField(required=False, help_text="Document metadata that the search must match.")
    expected_answer = Text(**BLANK)
    evidence = serializers.ListField(child=serializers.JSONField(allow_null=True), required=False)
    notes = Text(**BLANK)
    metadata = serializers.DictField(required=False)


class NewQuery(QueryChange):
    """A new query."""

    query_key = Text(max_length=LENGTHS["key"])
    query_text = Text(max_length=LENGTHS["text"])


class QueryAnswer(ModelAnswer):
    """A query."""

    query_key = serializers.CharField(source="key", help_text="Names the query in all versions.")
    query_text = serializers.CharField(source="text")
    evidence = serializers.ListField(child=serializers.JSONField())

    class Meta:
        model = Query
        fields = [
            *("id", "query_key", "query_text", "slices", "category", "difficulty", "query_type", "split", "filters"),
            *("expected_answer", "evidence", "notes", "metadata", "since", "until"),
        ]
        extra_kwargs = {"id": {"help_text": "Of this wording: a reworded query has another id."}}


QueryPage = page_of("queries", QueryAnswer)


class Queries(Endpoint):
    model = Dataset

    @extend_schema(operation_id="list_queries", parameters=[QueriesQuery], responses=QueryPage)
    def get(self, request: Request, dataset_id: UUID) -> Response:
        """List the queries of a version; without one of the draft, else of the newest version."""
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        query = valid(QueriesQuery, request.query_params)
        rows = find_version(dataset, query.get("version"), edited=True).queries.order_by("id")
        if "query_key" in query:
            rows = rows.filter(key=query["query_key"])
        return answer_page(QueryPage, rows, query)

    @extend_schema(operation_id="add_query", request=NewQuery, responses={201: QueryAnswer})
    def post(self, request: Request, dataset_id: UUID) -> Response:
        """Add a query to the draft; 409 where the dataset has one of that key."""
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        query = add_query(dataset, QueryRecord(**record_fields(valid(NewQuery, request.data))))
        return Response(QueryAnswer(query).data, status=201)


class OneQuery(Endpoint):
    model = Dataset
    acts = {"DELETE": "change"}

    @extend_schema(operation_id="get_query", responses=QueryAnswer)
    def get(self, request: Request, dataset_id: UUID, query_id: int) -> Response:
        """Show a query, one of an older version too."""
        return Response(QueryAnswer(query_at(request, dataset_id, query_id)).data)

    @extend_schema(operation_id="edit_query", request=QueryChange, responses=QueryAnswer)
    def patch(self, request: Request, dataset_id: UUID, query_id: int) -> Response:
        """Change a query in the draft, all but its key.

        The answer has another id where a frozen version holds the wording that was. 409 for a query that was
        reworded or removed since.
        """
        query = query_at(request, dataset_id, query_id)
        return Response(QueryAnswer(edit_query(query, record_fields(valid(QueryChange, request.data)))).data)

    @extend_schema(operation_id="remove_query", responses={204: None})
    def delete(self, request: Request, dataset_id: UUID, query_id: int) -> Response:
        """Take a query and its judgments out of the draft; frozen versions keep it."""
        remove_query(query_at(request, dataset_id, query_id))
        return Response(status=204)


def query_at(request: Request, dataset_id: UUID, query_id: int) -> Query:
    """Return the query of an address; raise as `find_visible` does for it and for its dataset."""
    dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
    return find_visible(dataset.queries.select_related("dataset"), query_id, request.user, through="dataset")


def record_fields(data: dict[str, Any]) -> dict[str, Any]:
    """Return what a request states of a query under the names of its record."""
    names = {"query_key": "key", "query_text": "text"}
    return {names.get(name, name): value for name, value in data.items()}
