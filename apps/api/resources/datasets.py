"""Datasets: upload, list, look, delete."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.response import Response

from apps.api.answers import TIMES, ModelAnswer, build_page, present
from apps.api.fields import Identifier, Int, PageQuery, StrictSerializer, Text, Validated, VersionNumber
from apps.api.openapi import WARNINGS, list_file_headers
from apps.api.parsers import DatasetParser
from apps.api.resource import Resource, delete, find_visible, get, post
from apps.datasets.formats.registry import FORMATS, JSON, SOURCES, WRITERS
from apps.datasets.formats.table import read_columns
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset, Query
from apps.datasets.records import LABEL_LENGTH
from apps.datasets.uploading import MOST_FILES, read_upload, upload_turn
from apps.datasets.versions import add_query_count, find_version
from apps.mappings.creating import delete_dataset
from apps.mappings.exporting import export_dataset
from benchbench.access import may_view
from benchbench.database.failures import read_again
from benchbench.files.columns import parse_choices
from benchbench.names import MAX_LENGTH
from benchbench.site.downloads import attachment


class DatasetUpload(StrictSerializer):
    """A file of judged queries, with the name of a new dataset or the id of an existing one."""

    name = Text(required=False, max_length=MAX_LENGTH, help_text="Required without dataset_id, whose name it keeps.")
    description = Text(default="", allow_blank=True, max_length=10_000)
    file = serializers.ListField(
        child=serializers.FileField(), min_length=1, max_length=MOST_FILES, help_text=f"One or several. {SOURCES}"
    )
    format = serializers.ChoiceField(list(FORMATS), required=False, help_text="Default: detected from the content.")
    split = Text(required=False, max_length=50, help_text="Of BEIR (test without it) and Flowbaby (all).")
    columns = serializers.ListField(
        child=Text(allow_blank=True, max_length=500),
        required=False,
        help_text="Of a table, FIELD=COLUMN for each whose name says something else; =COLUMN is not read.",
    )
    grade_factor = Int(required=False, min_value=1, help_text="Multiplies ratings, such as 0.7.")
    sample = Text(required=False, max_length=50, help_text="Of a log of queries: 100 of each stratum; 50,100,200; all.")
    seed = Int(required=False, min_value=0, help_text="Of the sample.")
    dataset_id = Identifier(required=False, help_text="The file becomes the next version of this dataset.")
    version = Text(
        required=False,
        max_length=LABEL_LENGTH,
        help_text="Label of the version, such as 2026-11. Default: the one in the file, if any.",
    )

    def validate(self, data: Validated) -> dict[str, Any]:
        if "name" not in data and "dataset_id" not in data:
            raise serializers.ValidationError({"name": ["This field is required without dataset_id."]})
        return data


class DatasetAnswer(ModelAnswer):
    """A dataset."""

    query_count = serializers.IntegerField(help_text="Of the newest frozen version.")

    class Meta:
        model = Dataset
        fields = ["id", "name", "description", "tags", "owner_id", "query_count", "schema_version", *TIMES]


DatasetPage = build_page("datasets", DatasetAnswer)


class UploadedAnswer(DatasetAnswer):
    """An uploaded dataset, with warnings about its file."""

    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="Sentences, such as which queries have no judgments."
    )

    class Meta(DatasetAnswer.Meta):
        fields = [*DatasetAnswer.Meta.fields, "warnings"]


class ExportQuery(StrictSerializer):
    """Query parameters for exporting a dataset."""

    format = serializers.ChoiceField(list(WRITERS))
    version = VersionNumber(help_text="Default: the newest frozen version.")
    mapping_id = Identifier(required=False, help_text="Of the dataset, resolved for the version.")


@dataclass(frozen=True)
class UploadFormat:
    """A format for uploads."""

    name: str
    label: str


@dataclass(frozen=True)
class ExportFormat(UploadFormat):
    """A format for exports; a directory comes as a zip."""

    content_type: str
    extension: str


@dataclass(frozen=True)
class DatasetFormats:
    """Formats by the names that `format` takes."""

    uploads: list[UploadFormat]
    exports: list[ExportFormat]


FILES: dict[Any, object] = {(200, writer.content_type): OpenApiTypes.BINARY for writer in WRITERS.values()}
FILES[200, JSON] = OpenApiTypes.ANY
HEADERS = list_file_headers("what the format cannot hold of the dataset.")


READING = ("format", "split", "grade_factor", "sample", "seed")  # options of `read_dataset`


class Datasets(Resource):
    model = Dataset
    route = "benchmark-datasets"

    @get("", DatasetPage, PageQuery)
    def list_datasets(self, query: Validated) -> QuerySet[Dataset]:
        """List datasets, newest first."""
        return self.newest()

    @post(
        "",
        UploadedAnswer,
        form=DatasetUpload,
        parser=DatasetParser,
        act="add",
        statuses=(201, 200),
        history="Upload a dataset.",
    )
    def upload_dataset(self, data: Validated) -> Response:
        """Upload a dataset.

        201 if it created a dataset or a version; 200 with the existing dataset for the same name and
        content. 409 if the content differs and neither the file nor `version` gives a new version; with `dataset_id` it
        always becomes the next version of that dataset. `warnings` lists what looks wrong in the file, and what a log
        of queries gave.
        """
        before = self.find_changeable(self.rows(), data["dataset_id"]) if "dataset_id" in data else None
        with upload_turn():
            chosen = {name: data[name] for name in READING if name in data}
            record = read_upload(data["file"], **chosen, **read_columns(parse_choices(data.get("columns", ()))))
            imported = import_dataset(
                replace(record, label=data.get("version", record.label)),
                name=data.get("name"),
                description=data["description"],
                owner=self.user,
                next_of=before,
            )
        dataset: Any = read_again(self.rows(), imported.version.dataset_id)
        dataset.warnings = imported.report.sentences
        return present(UploadedAnswer, dataset, 200 if imported.report.outcome == "unchanged" else 201)

    @get("/formats", DatasetFormats)
    def list_dataset_formats(self) -> DatasetFormats:
        """List the formats that datasets are uploaded and exported in."""
        uploads = [UploadFormat(name, format.label) for name, format in FORMATS.items()]
        exports = [
            ExportFormat(name, writer.label, writer.content_type, writer.extension or "zip")
            for name, writer in WRITERS.items()
        ]
        return DatasetFormats(uploads, exports)

    @get("/<id:dataset_id>", DatasetAnswer)
    def get_dataset(self, dataset: Dataset) -> Dataset:
        """Show a dataset."""
        return dataset

    @delete("/<id:dataset_id>", history="Delete a dataset with all its versions and mappings.")
    def delete_dataset(self, dataset: Dataset) -> None:
        """Delete a dataset with all its versions and mappings; 409 while a benchmark uses one of them."""
        delete_dataset(dataset)

    @get("/<id:dataset_id>/export", FILES, ExportQuery, parameters=HEADERS)
    def export_dataset(self, dataset: Dataset, query: Validated) -> HttpResponseBase:
        """Download a version in one of the formats.

        With a mapping, judgments name documents by the ids of the collection, and a BEIR directory contains the corpus;
        you must be allowed to view the mapping and its collection.
        400 if the format cannot represent the dataset, 409 if the mapping is not resolved for the version.
        """
        version = find_version(dataset, query.get("version"))
        mapping = None
        if "mapping_id" in query:
            mapping = find_visible(dataset.mappings.select_related("collection"), query["mapping_id"], self.user)
            if not (may_view(mapping, self.user) and may_view(mapping.collection, self.user)):
                raise PermissionDenied(
                    "The export would show the documents of the mapping, and you may not view the mapping "
                    "or its collection: ask the owner to share them with your team, or leave mapping_id out."
                )
        export = export_dataset(version, query["format"], mapping=mapping)
        answer = attachment(export.write, export.name, export.writer.content_type)
        answer[WARNINGS] = json.dumps(export.warnings)  # in ASCII, as a header must be
        return answer

    def rows(self) -> QuerySet[Dataset]:
        return add_query_count(Dataset.objects.all())


class DatasetPart(Resource):
    """A resource below a dataset."""

    model: ClassVar[type[Model]] = Dataset
    route = "benchmark-datasets/<id:dataset_id>"

    def lock(self, row: Model) -> Model:
        """Return the dataset: every edit locks it."""
        return Dataset(pk=self.kwargs["dataset_id"])

    def list_affected(self, row: Model) -> Iterable[Model]:
        return Query.objects.filter(pk=self.kwargs["query_id"]) if "query_id" in self.kwargs else ()

    def find(self, dataset_id: UUID, query_id: Any = None) -> Any:
        dataset = find_visible(Dataset.objects.all(), dataset_id, self.user)
        if query_id is None:
            return dataset
        return find_visible(dataset.queries.select_related("dataset"), query_id, self.user, through="dataset")


class StateQuery(PageQuery):
    """Query parameters for listing queries or judgments of a version."""

    version = VersionNumber(help_text="Default: the draft, else the newest version.")
