"""Datasets: upload, list, look, delete."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access.addressed import find_visible
from apps.api.endpoint import Endpoint
from apps.api.fields import valid
from apps.api.idempotency import idempotent
from apps.api.paging import PageQuery, answer_page
from apps.api.parsers import DatasetParser
from apps.api.serializers.datasets.datasets import DatasetFacts, DatasetPage, DatasetUpload, UploadedFacts
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset
from apps.datasets.uploading import read_upload, upload_turn
from apps.datasets.versions import with_query_count
from apps.mappings.deleting import delete_dataset
from benchbench.access import may_change, visible


class Datasets(Endpoint):
    model = Dataset
    acts = {"GET": "view", "POST": "add"}
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
        responses={201: UploadedFacts, 200: UploadedFacts},
    )
    @idempotent
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
        dataset = with_query_count(Dataset.objects.all()).get(pk=imported.version.dataset_id)
        facts = {**DatasetFacts(dataset).data, "warnings": imported.report.sentences}
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
    acts = {"GET": "view", "DELETE": "delete"}

    @extend_schema(operation_id="get_dataset", responses=DatasetFacts)
    def get(self, request: Request, dataset_id: UUID) -> Response:
        """Show a dataset."""
        return Response(
            DatasetFacts(find_visible(with_query_count(Dataset.objects.all()), dataset_id, request.user)).data
        )

    @extend_schema(operation_id="delete_dataset", responses={204: None})
    def delete(self, request: Request, dataset_id: UUID) -> Response:
        """Delete a dataset with all its versions and mappings; 409 while a benchmark uses one of them."""
        delete_dataset(find_visible(Dataset.objects.all(), dataset_id, request.user))
        return Response(status=204)
