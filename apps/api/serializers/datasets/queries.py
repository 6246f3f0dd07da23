"""Queries of datasets on the wire."""

from typing import Any

from rest_framework import serializers

from apps.api.fields import AnyJSON, AnyObject, ListOf, StrictSerializer, Text, VersionNumber
from apps.api.paging import Page, PageQuery
from apps.datasets.records import LENGTHS, SLICE_LENGTH

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
    slices = ListOf(child=Text(max_length=SLICE_LENGTH), required=False)
    category = Text(**BLANK, max_length=LENGTHS["category"])
    difficulty = Text(**BLANK, max_length=LENGTHS["difficulty"])
    query_type = Text(**BLANK, max_length=LENGTHS["query_type"])
    split = Text(**BLANK, max_length=LENGTHS["split"])
    filters = AnyObject(required=False, help_text="Document metadata that the search must match.")
    expected_answer = Text(**BLANK)
    evidence = ListOf(child=AnyJSON(allow_null=True), required=False)
    notes = Text(**BLANK)
    metadata = AnyObject(required=False)


class NewQuery(QueryChange):
    """A new query."""

    query_key = Text(max_length=LENGTHS["key"])
    query_text = Text(max_length=LENGTHS["text"])


class QueryFacts(serializers.Serializer):
    """A query in the API."""

    id = serializers.IntegerField(help_text="Of this wording: a reworded query has another id.")
    query_key = serializers.CharField(source="key", help_text="Names the query in all versions.")
    query_text = serializers.CharField(source="text")
    slices = serializers.ListField(child=serializers.CharField())
    category = serializers.CharField(help_text="May be empty, like the next fields.")
    difficulty = serializers.CharField()
    query_type = serializers.CharField()
    split = serializers.CharField()
    filters = serializers.DictField()
    expected_answer = serializers.CharField()
    evidence = serializers.ListField(child=serializers.JSONField())
    notes = serializers.CharField()
    metadata = serializers.DictField()
    since = serializers.IntegerField(min_value=1, help_text="First version that has it.")
    until = serializers.IntegerField(allow_null=True, help_text="First version that has it no more.")


class QueryPage(Page):
    """A page of queries."""

    queries = QueryFacts(many=True)
