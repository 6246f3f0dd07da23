"""Datasets: upload, list, look, delete."""

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access import find_visible
from apps.api.endpoint import Endpoint
from apps.api.idempotency import idempotent
from apps.api.paging import PageQuery, answer_page
from apps.api.parsers import DatasetParser
from apps.api.serializers.base import valid
from apps.api.serializers.datasets import DatasetFacts, DatasetPage, DatasetUpload, UploadedFacts
from apps.datasets.describing import with_query_count
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset
from apps.datasets.uploading import read_upload
from apps.mappings.deleting import delete_dataset
from benchbench.access import visible


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
        already, which is answered. 409 where its content is other and the file states no new version. `warnings` says
        what was read and looks wrong.
        """
        stated = valid(DatasetUpload, request.data)
        record = read_upload(stated["file"], format=stated.get("format", ""), split=stated.get("split", ""))
        imported = import_dataset(record, name=stated["name"], description=stated["description"], owner=request.user)
        dataset = with_query_count(Dataset.objects.all()).get(pk=imported.version.dataset_id)
        facts = {**DatasetFacts(dataset).data, "warnings": list(imported.report.warnings)}
        return Response(facts, status=200 if imported.report.outcome == "unchanged" else 201)


class OneDataset(Endpoint):
    model = Dataset
    acts = {"GET": "view", "DELETE": "delete"}

    @extend_schema(operation_id="get_dataset", responses=DatasetFacts)
    def get(self, request: Request, dataset_id: UUID) -> Response:
        """Tell about a dataset."""
        return Response(
            DatasetFacts(find_visible(with_query_count(Dataset.objects.all()), dataset_id, request.user)).data
        )

    @extend_schema(operation_id="delete_dataset", responses={204: None})
    def delete(self, request: Request, dataset_id: UUID) -> Response:
        """Delete a dataset with all its versions and mappings; 409 while a benchmark uses one of them."""
        delete_dataset(find_visible(Dataset.objects.all(), dataset_id, request.user))
        return Response(status=204)
