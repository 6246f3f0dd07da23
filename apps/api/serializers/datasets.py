"""Datasets on the wire."""

from rest_framework import serializers

from apps.api.paging import Page
from apps.api.serializers.base import Choice, FilePart, Moment, StrictSerializer, Text
from apps.datasets.readers import FORMATS
from benchbench.names import MAX_LENGTH


class DatasetUpload(StrictSerializer):
    """A file of judged queries, and what to call them."""

    name = Text(max_length=MAX_LENGTH)
    description = Text(required=False, default="", allow_blank=True, max_length=10_000)
    file = FilePart(
        help_text="JSON of schema 1.0, module queries, ground_truth.json, CSV or JSON Lines with a row for each "
        "judgment; a zip of a directory: BEIR, Flowbaby, TREC, ground_truth.json with documents/. Any may be a .gz."
    )
    format = Choice(list(FORMATS), required=False, help_text="Without it the content tells.")
    split = Text(required=False, max_length=50, help_text="Of BEIR (test without it) and Flowbaby (all).")


class DatasetFacts(serializers.Serializer):
    """A dataset as the API tells it."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    description = serializers.CharField(help_text="May be empty.")
    owner_id = serializers.IntegerField(allow_null=True, help_text="null: it belongs to the whole staff.")
    query_count = serializers.IntegerField(min_value=0, help_text="Of the newest frozen version.")
    schema_version = serializers.CharField()
    created_at = Moment()
    updated_at = Moment()


class UploadedFacts(DatasetFacts):
    """A dataset that was uploaded, and what looks wrong in the file."""

    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="Sentences, such as which queries nobody judged."
    )


class DatasetPage(Page):
    """A page of datasets."""

    datasets = DatasetFacts(many=True)
