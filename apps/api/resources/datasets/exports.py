"""Datasets as files, and the formats of those."""

import json
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access.addressed import find_visible
from apps.api.endpoint import Endpoint
from apps.api.fields import valid
from apps.api.openapi import WARNINGS, file_headers, refusals
from apps.api.serializers.datasets.exports import DatasetFormats, ExportQuery
from apps.datasets.formats.registry import FORMATS, JSON, WRITERS
from apps.datasets.models import Dataset
from apps.datasets.versions import find_version
from apps.mappings.exporting import export_dataset
from benchbench.access import may_view
from benchbench.site.downloads import attachment

FILES: dict[Any, Any] = {(200, writer.content_type): OpenApiTypes.BINARY for writer in WRITERS.values()}
FILES[200, JSON] = OpenApiTypes.ANY


class Formats(Endpoint):
    model = Dataset
    acts = {"GET": "view"}

    @extend_schema(operation_id="list_dataset_formats", responses=DatasetFormats)
    def get(self, request: Request) -> Response:
        """List the formats that datasets are uploaded and exported in."""
        uploads = [{"name": name, "label": format.label} for name, format in FORMATS.items()]
        exports = [
            {
                "name": name,
                "label": writer.label,
                "content_type": writer.content_type,
                "extension": writer.extension or "zip",
            }
            for name, writer in WRITERS.items()
        ]
        return Response(DatasetFormats({"uploads": uploads, "exports": exports}).data)


class DatasetExport(Endpoint):
    model = Dataset
    acts = {"GET": "view"}

    @extend_schema(
        operation_id="export_dataset",
        parameters=[ExportQuery, *file_headers("what the format cannot hold of the dataset.")],
        responses=FILES | refusals(409),
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
