"""Datasets: upload, list, look, delete."""

import json
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import TIMES, ModelAnswer, answer_page, page_of, present
from apps.api.endpoint import Endpoint, find_visible
from apps.api.fields import Identifier, PageQuery, StrictSerializer, Text, VersionNumber, valid
from apps.api.openapi import WARNINGS, file_headers
from apps.api.parsers import DatasetParser
from apps.datasets.formats.registry import FORMATS, JSON, SOURCES, WRITERS
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset
from apps.datasets.records import LABEL_LENGTH
from apps.datasets.uploading import read_upload, upload_turn
from apps.datasets.versions import find_version, with_query_count
from apps.mappings.creating import delete_dataset
from apps.mappings.exporting import export_dataset
from benchbench.access import may_change, may_view, visible
from benchbench.database.failures import read_again
from benchbench.names import MAX_LENGTH
from benchbench.site.downloads import attachment


class DatasetUpload(StrictSerializer):
    """A file of judged queries, and what to call them; or which dataset they are the next version of."""

    name = Text(required=False, max_length=MAX_LENGTH, help_text="Required without dataset_id, whose name it keeps.")
    description = Text(default="", allow_blank=True, max_length=10_000)
    file = serializers.FileField(help_text=SOURCES)
    format = serializers.ChoiceField(list(FORMATS), required=False, help_text="Default: detected from the content.")
    split = Text(required=False, max_length=50, help_text="Of BEIR (test without it) and Flowbaby (all).")
    dataset_id = Identifier(required=False, help_text="The file becomes the next version of this dataset.")
    version = Text(
        required=False,
        max_length=LABEL_LENGTH,
        help_text="Label of the version, such as 2026-11. Default: the one in the file, if any.",
    )

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        if "name" not in data and "dataset_id" not in data:
            raise serializers.ValidationError({"name": ["This field is required without dataset_id."]})
        return data


class DatasetAnswer(ModelAnswer):
    """A dataset."""

    query_count = serializers.IntegerField(help_text="Of the newest frozen version.")

    class Meta:
        model = Dataset
        fields = ["id", "name", "description", "owner_id", "query_count", "schema_version", *TIMES]


DatasetPage = page_of("datasets", DatasetAnswer)


class UploadedAnswer(DatasetAnswer):
    """A dataset that was uploaded, and what looks wrong in the file."""

    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="Sentences, such as which queries nobody judged."
    )

    class Meta(DatasetAnswer.Meta):
        fields = [*DatasetAnswer.Meta.fields, "warnings"]


class ExportQuery(StrictSerializer):
    """What is downloaded, and how documents are named in it."""

    format = serializers.ChoiceField(list(WRITERS))
    version = VersionNumber(help_text="Default: the newest frozen version.")
    mapping_id = Identifier(required=False, help_text="Of the dataset, resolved for the version.")


@dataclass(frozen=True)
class UploadFormat:
    """A format that is read."""

    name: str
    label: str


@dataclass(frozen=True)
class ExportFormat(UploadFormat):
    """A format that is written; a directory comes as a zip."""

    content_type: str
    extension: str


@dataclass(frozen=True)
class DatasetFormats:
    """Formats by the names that `format` takes."""

    uploads: list[UploadFormat]
    exports: list[ExportFormat]


class Datasets(Endpoint):
    model = Dataset
    acts = {"POST": "add"}
    throttles = {"POST": "upload"}
    parser_classes = [DatasetParser]

    @extend_schema(operation_id="list_datasets", parameters=[PageQuery], responses=DatasetPage)
    def get(self, request: Request) -> Response:
        """List datasets, newest first."""
        query = valid(PageQuery, request.query_params)
        rows = with_query_count(visible(Dataset.objects.order_by("-created_at", "id"), request.user))
        return answer_page(DatasetPage, rows, query)

    @extend_schema(
        operation_id="upload_dataset",
        request={"multipart/form-data": DatasetUpload},
        responses={201: UploadedAnswer, 200: UploadedAnswer},
    )
    def post(self, request: Request) -> Response:
        """Upload a dataset.

        201 where that made a dataset, or the next version of one; 200 where you have a dataset of that name and content
        already, which is answered. 409 where its content is other and neither the file nor `version` states a new
        version; `dataset_id` makes it the next one of that dataset, whatever the file states. `warnings` says what was
        read and looks wrong.
        """
        data = valid(DatasetUpload, request.data)
        before = _next_of(request, data)
        with upload_turn():
            record = read_upload(data["file"], format=data.get("format", ""), split=data.get("split", ""))
            imported = import_dataset(
                replace(record, label=data.get("version", record.label)),
                name=data.get("name"),
                description=data["description"],
                owner=request.user,
                next_of=before,
            )
        dataset = read_again(with_query_count(Dataset.objects.all()), imported.version.dataset_id)
        facts = {**DatasetAnswer(dataset).data, "warnings": imported.report.sentences}
        return Response(facts, status=200 if imported.report.outcome == "unchanged" else 201)


def _next_of(request: Request, data: dict[str, Any]) -> Dataset | None:
    """Return the dataset whose next version is uploaded, which changes it."""
    if "dataset_id" not in data:
        return None
    dataset = find_visible(Dataset.objects.all(), data["dataset_id"], request.user)
    if not may_change(dataset, request.user):
        raise PermissionDenied("You may not change any dataset: ask an administrator for the permission.")
    return dataset


class OneDataset(Endpoint):
    model = Dataset

    @extend_schema(operation_id="get_dataset", responses=DatasetAnswer)
    def get(self, request: Request, dataset_id: UUID) -> Response:
        """Show a dataset."""
        return Response(
            DatasetAnswer(find_visible(with_query_count(Dataset.objects.all()), dataset_id, request.user)).data
        )

    @extend_schema(operation_id="delete_dataset", responses={204: None})
    def delete(self, request: Request, dataset_id: UUID) -> Response:
        """Delete a dataset with all its versions and mappings; 409 while a benchmark uses one of them."""
        delete_dataset(find_visible(Dataset.objects.all(), dataset_id, request.user))
        return Response(status=204)


FILES: dict[Any, Any] = {(200, writer.content_type): OpenApiTypes.BINARY for writer in WRITERS.values()}
FILES[200, JSON] = OpenApiTypes.ANY


class Formats(Endpoint):
    model = Dataset

    @extend_schema(operation_id="list_dataset_formats", responses=DatasetFormats)
    def get(self, request: Request) -> Response:
        """List the formats that datasets are uploaded and exported in."""
        uploads = [UploadFormat(name, format.label) for name, format in FORMATS.items()]
        exports = [
            ExportFormat(name, writer.label, writer.content_type, writer.extension or "zip")
            for name, writer in WRITERS.items()
        ]
        return present(DatasetFormats(uploads, exports))


class DatasetExport(Endpoint):
    model = Dataset

    @extend_schema(
        operation_id="export_dataset",
        parameters=[ExportQuery, *file_headers("what the format cannot hold of the dataset.")],
        responses=FILES,
    )
    def get(self, request: Request, dataset_id: UUID) -> HttpResponseBase:
        """Download a version in one of the formats.

        With a mapping every judgment names its document as the collection does, and a BEIR directory holds the corpus.
        For that you must see the mapping and its collection.
        400 where the format would make the dataset wrong, 409 where the mapping was not resolved for the version.
        """
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        query = valid(ExportQuery, request.query_params)
        version = find_version(dataset, query.get("version"))
        mapping = None
        if "mapping_id" in query:
            mapping = find_visible(dataset.mappings.select_related("collection"), query["mapping_id"], request.user)
            if not (may_view(mapping, request.user) and may_view(mapping.collection, request.user)):
                raise PermissionDenied(
                    "The export would show the documents of the mapping, and you may not view the mapping "
                    "or its collection: ask the owner to share them with your team, or leave mapping_id out."
                )
        export = export_dataset(version, query["format"], mapping=mapping)
        answer = attachment(export.write, export.name, export.writer.content_type)
        answer[WARNINGS] = json.dumps(export.warnings)  # in ASCII, as a header must be
        return answer
