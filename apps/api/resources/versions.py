"""Queries of a dataset, whose edits gather in its draft, and its versions: look, freeze the draft, discard it."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.response import Response

from apps.api.answers import Answer, ModelAnswer, answer_page, build_page
from apps.api.fields import Int, Key, Number, PageQuery, StrictSerializer, Text, Validated
from apps.api.resource import delete, get, patch, post
from apps.api.resources.datasets import DatasetPart, StateQuery
from apps.api.resources.judgments import JudgmentAnswer
from apps.datasets.editing.differences import KINDS, Changes
from apps.datasets.editing.drafts import build_difference, count_changes, discard_draft, freeze, require_draft
from apps.datasets.editing.queries import add_query, edit_query, remove_query
from apps.datasets.models import Dataset, DatasetVersion, Query
from apps.datasets.records import LABEL_LENGTH, LENGTHS, SLICE_LENGTH, QueryRecord
from apps.datasets.versions import add_counts, find_version
from benchbench.ir.demand import GREATEST_WEIGHT, LEAST_WEIGHT

BLANK: dict[str, object] = {"required": False, "allow_blank": True}


class QueriesQuery(StateQuery):
    """Query parameters for listing queries."""

    query_key = Key(required=False)


class QueryChange(StrictSerializer):
    """The fields to change; the others stay."""

    query_text = Text(source="text", required=False, max_length=LENGTHS["text"])
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
    weight = Number(required=False, min_value=LEAST_WEIGHT, max_value=GREATEST_WEIGHT, help_text="Its demand.")


class NewQuery(QueryChange):
    """A new query."""

    query_key = Key(source="key", max_length=LENGTHS["key"])
    query_text = Text(source="text", max_length=LENGTHS["text"])


class QueryAnswer(ModelAnswer):
    """A query."""

    query_key = serializers.CharField(source="key", help_text="Names the query in all versions.")
    query_text = serializers.CharField(source="text")
    evidence = serializers.ListField(child=serializers.JSONField())

    class Meta:
        model = Query
        fields = [
            *("id", "query_key", "query_text", "slices", "category", "difficulty", "query_type", "split", "filters"),
            *("expected_answer", "evidence", "notes", "metadata", "weight", "since", "until"),
        ]
        extra_kwargs = {"id": {"help_text": "Of this wording: a reworded query has another id."}}


QueryPage = build_page("queries", QueryAnswer)


class Queries(DatasetPart):
    @get("/queries", QueryPage, QueriesQuery)
    def list_queries(self, dataset: Dataset, query: Validated) -> QuerySet[Query]:
        """List the queries of a version; by default of the draft, else of the newest version."""
        rows = find_version(dataset, query.get("version"), edited=True).queries.order_by("id")
        return rows.filter(key=query["query_key"]) if "query_key" in query else rows

    @post("/queries", QueryAnswer, NewQuery, status=201, history="Add a query to the draft.")
    def add_query(self, dataset: Dataset, data: Validated) -> Query:
        """Add a query to the draft; 409 if the dataset has one with that key."""
        return add_query(dataset, QueryRecord(**data))

    @get("/queries/<int:query_id>", QueryAnswer)
    def get_query(self, query: Query) -> Query:
        """Show a query of any version."""
        return query

    @patch("/queries/<int:query_id>", QueryAnswer, QueryChange, history="Change a query in the draft.")
    def edit_query(self, query: Query, data: Validated) -> Query:
        """Change a query in the draft; its key stays.

        The answer has a new id if a frozen version contains the old wording. 409 if the query was reworded or removed
        since.
        """
        return edit_query(query, data)

    @delete("/queries/<int:query_id>", act="change", history="Remove a query and its judgments from the draft.")
    def remove_query(self, query: Query) -> None:
        """Remove a query and its judgments from the draft; frozen versions keep them."""
        remove_query(query)


class FreezeRequest(StrictSerializer):
    """Label and notes of the version that the draft becomes."""

    label = Text(default="", allow_blank=True, max_length=LABEL_LENGTH, help_text="Such as 2026-11.")
    note = Text(default="", allow_blank=True, max_length=10_000)
    digest = Text(
        default="",
        max_length=64,
        help_text="`digest` of the difference that you looked at: 409 if the draft was edited since.",
    )


class VersionAnswer(ModelAnswer):
    """A version of a dataset."""

    is_draft = serializers.SerializerMethodField()

    class Meta:
        model = DatasetVersion
        fields = [
            *("number", "label", "is_draft", "content_hash", "query_count", "judgment_count", "note"),
            *("created_at", "frozen_at"),
        ]
        extra_kwargs = {"content_hash": {"help_text": "Empty for a draft."}}

    def get_is_draft(self, version: DatasetVersion) -> bool:
        return version.frozen_at is None


VersionPage = build_page("versions", VersionAnswer)


class ChangesAnswer(Answer):
    """Changes of a draft to the version before it."""

    sentence = serializers.CharField()

    class Meta:
        dataclass = Changes


class VersionDetail(VersionAnswer):
    """A version; a draft with its changes."""

    changes = ChangesAnswer(allow_null=True)

    class Meta(VersionAnswer.Meta):
        fields = [*VersionAnswer.Meta.fields, "changes"]


class DifferenceQuery(StrictSerializer):
    """Query parameters for listing differences."""

    limit = Int(default=50, min_value=1, max_value=500, help_text="Rows of each kind.")


class ChangedQuery(QueryAnswer):
    """A query whose text or description changed."""

    text_before = serializers.CharField()
    weight_before = serializers.FloatField()

    class Meta(QueryAnswer.Meta):
        fields = [*QueryAnswer.Meta.fields, "text_before", "weight_before"]


class ChangedJudgment(JudgmentAnswer):
    """A judgment that was changed."""

    grade_before = serializers.IntegerField()

    class Meta(JudgmentAnswer.Meta):
        fields = [*JudgmentAnswer.Meta.fields, "grade_before"]


class DifferenceAnswer(serializers.Serializer):
    """Differences of a version to the one before it: the first rows of each kind, by key.

    Judgments are those of queries that both have. Removed rows are shown as they were.
    """

    number = serializers.IntegerField(min_value=1, source="version.number")
    since = serializers.IntegerField(min_value=0, help_text="The previous version; 0 for the first.")
    sentence = serializers.CharField(source="counts.sentence")
    digest = serializers.CharField(help_text="For freezing exactly this: it changes with every edit.")
    totals = inline_serializer("Totals", {kind: serializers.IntegerField() for kind in KINDS})
    judgments_added = JudgmentAnswer(many=True)
    judgments_changed = ChangedJudgment(many=True)
    judgments_removed = JudgmentAnswer(many=True)
    queries_added = QueryAnswer(many=True)
    queries_changed = ChangedQuery(many=True)
    queries_removed = QueryAnswer(many=True)


class Versions(DatasetPart):
    @get("/versions", VersionPage, PageQuery)
    def list_versions(self, dataset: Dataset, query: Validated) -> Response:
        """List the versions of a dataset, newest first, beginning with the draft."""
        rows = dataset.versions.order_by("-number")
        return answer_page(VersionPage, rows, query, prepare=lambda page_rows: [add_counts(row) for row in page_rows])

    @post("/versions", VersionAnswer, FreezeRequest, status=201, history="Freeze the draft.")
    def freeze_draft(self, dataset: Dataset, data: Validated) -> DatasetVersion:
        """Freeze the draft: it becomes the newest version and never changes again; 409 without edits.

        With the `digest` of its difference, only that content is frozen: 409 if it was edited since.
        """
        return freeze(dataset, **data)

    @get("/versions/<int:number>", VersionDetail)
    def get_version(self, version: DatasetVersion) -> DatasetVersion:
        """Show a version; for a draft also its changes."""
        vars(version)["changes"] = count_changes(version) if version.frozen_at is None else None
        return add_counts(version)

    @delete("/versions/<int:number>", act="change", history="Discard the draft.")
    def discard_draft(self, version: DatasetVersion) -> None:
        """Discard the draft and all its edits permanently; 409 for a frozen version, deleted only with its dataset."""
        require_draft(version)
        discard_draft(version.dataset)

    @get("/versions/<int:number>/difference", DifferenceAnswer, DifferenceQuery)
    def get_difference(self, version: DatasetVersion, query: Validated) -> dict[str, object]:
        """Show the changes of a version or draft row by row."""
        difference = build_difference(version)
        rows = {kind: getattr(difference, kind)[: query["limit"]] for kind in KINDS}
        names = ("version", "since", "counts", "digest", "totals")
        return {name: getattr(difference, name) for name in names} | rows

    def find(self, dataset_id: UUID, number: int | None = None) -> Any:
        dataset = super().find(dataset_id)
        if number is None:
            return dataset
        version = dataset.versions.select_related("dataset").filter(number=number).first()
        if version is None:
            raise NotFound(f'The dataset "{dataset}" has no version {number}.')
        return version
