"""Datasets on the wire."""

from typing import Any

from rest_framework import serializers

from apps.api import sentences
from apps.api.fields import Choice, FilePart, Identifier, Moment, StrictSerializer, Text
from apps.api.paging import Page
from apps.datasets.formats.registry import FORMATS, SOURCES
from apps.datasets.records import LABEL_LENGTH
from benchbench.names import MAX_LENGTH


class DatasetUpload(StrictSerializer):
    """A file of judged queries, and what to call them; or which dataset they are the next version of."""

    name = Text(required=False, max_length=MAX_LENGTH, help_text="Required without dataset_id, whose name it keeps.")
    description = Text(required=False, default="", allow_blank=True, max_length=10_000)
    file = FilePart(help_text=SOURCES)
    format = Choice(list(FORMATS), required=False, help_text="Default: detected from the content.")
    split = Text(required=False, max_length=50, help_text="Of BEIR (test without it) and Flowbaby (all).")
    dataset_id = Identifier(required=False, help_text="The file becomes the next version of this dataset.")
    version = Text(
        required=False,
        max_length=LABEL_LENGTH,
        help_text="Label of the version, such as 2026-11. Default: the one in the file, if any.",
    )

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        if "name" not in data and "dataset_id" not in data:
            raise serializers.ValidationError({"name": [sentences.FIELD["required"].format()]})
        return data


class DatasetFacts(serializers.Serializer):
    """A dataset in the API."""

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
