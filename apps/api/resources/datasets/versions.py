"""Versions of a dataset: look, freeze the draft, discard it."""

from dataclasses import asdict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access.addressed import find_visible
from apps.api.endpoint import Endpoint
from apps.api.fields import valid
from apps.api.idempotency import idempotent
from apps.api.paging import PageQuery, answer_page
from apps.api.serializers.datasets.versions import (
    ChangeFacts,
    DifferenceQuery,
    FreezeRequest,
    VersionDetail,
    VersionDifferenceFacts,
    VersionFacts,
    VersionPage,
)
from apps.datasets.editing.differences import KINDS
from apps.datasets.editing.drafts import changes_of, difference_of, discard_draft, freeze, require_draft
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.versions import counted


class Versions(Endpoint):
    model = Dataset
    acts = {"GET": "view", "POST": "change"}

    @extend_schema(operation_id="list_versions", parameters=[PageQuery], responses=VersionPage)
    def get(self, request: Request, dataset_id: UUID) -> Response:
        """List the versions of a dataset, newest first; the draft is the first where there is one."""
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        query = valid(PageQuery, request.query_params)
        rows = dataset.versions.order_by("-number")
        return answer_page(VersionPage, rows, query, tell=lambda shown: [counted(row) for row in shown])

    @extend_schema(operation_id="freeze_draft", request=FreezeRequest, responses={201: VersionFacts})
    @idempotent
    def post(self, request: Request, dataset_id: UUID) -> Response:
        """Freeze the draft: it becomes the newest version and never changes again; 409 where nothing was edited.

        `seen` of its difference freezes just what was looked at: 409 where it was edited since.
        """
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        version = freeze(dataset, **valid(FreezeRequest, request.data))
        return Response(VersionFacts(version).data, status=201)


class OneVersion(Endpoint):
    model = Dataset
    acts = {"GET": "view", "DELETE": "change"}

    @extend_schema(operation_id="get_version", responses=VersionDetail)
    def get(self, request: Request, dataset_id: UUID, number: int) -> Response:
        """Show a version; of the draft also what it changes."""
        version = version_at(request, dataset_id, number)
        changes = None
        if version.frozen_at is None:
            counts = changes_of(version)
            changes = ChangeFacts(asdict(counts) | {"sentence": counts.sentence}).data
        return Response({**VersionFacts(counted(version)).data, "changes": changes})

    @extend_schema(operation_id="discard_draft", responses={204: None})
    def delete(self, request: Request, dataset_id: UUID, number: int) -> Response:
        """Discard the draft and every edit in it, for good; 409 for a frozen version, which goes with its dataset."""
        version = version_at(request, dataset_id, number)
        require_draft(version)
        discard_draft(version.dataset)
        return Response(status=204)


class VersionDifference(Endpoint):
    model = Dataset
    acts = {"GET": "view"}

    @extend_schema(operation_id="get_difference", parameters=[DifferenceQuery], responses=VersionDifferenceFacts)
    def get(self, request: Request, dataset_id: UUID, number: int) -> Response:
        """Show row by row what a version or the draft changes of the version before it."""
        limit = valid(DifferenceQuery, request.query_params)["limit"]
        difference = difference_of(version_at(request, dataset_id, number))
        rows = {kind: getattr(difference, kind)[:limit] for kind in KINDS}
        names = ("version", "since", "counts", "digest", "totals")
        return Response(VersionDifferenceFacts({name: getattr(difference, name) for name in names} | rows).data)


def version_at(request: Request, dataset_id: UUID, number: int) -> DatasetVersion:
    """Return the version of an address; raise as `find_visible` does for its dataset."""
    dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
    version = dataset.versions.select_related("dataset").filter(number=number).first()
    if version is None:
        raise NotFound(f'The dataset "{dataset}" has no version {number}.')
    return version
