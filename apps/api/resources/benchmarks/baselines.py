"""Baselines of a dataset: approve a run, list, look, retire, delete."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access.addressed import find_visible
from apps.api.endpoint import Endpoint
from apps.api.fields import require_empty, valid
from apps.api.idempotency import idempotent
from apps.api.paging import answer_page
from apps.api.serializers.benchmarks.baselines import BaselineFacts, BaselinePage, BaselineQuery, NewBaseline
from apps.benchmarks.gates.baselines import approve, delete_baseline, retire
from apps.benchmarks.models import Baseline, Run
from apps.datasets.models import Dataset
from benchbench.access import visible
from benchbench.database.rereading import read_again

OWNER = "run__benchmark"


class Baselines(Endpoint):
    model = Baseline
    acts = {"GET": "view", "POST": "add"}

    @extend_schema(operation_id="list_baselines", parameters=[BaselineQuery], responses=BaselinePage)
    def get(self, request: Request, dataset_id: UUID) -> Response:
        """List the baselines of a dataset, current and retired, newest first."""
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        query = valid(BaselineQuery, request.query_params)
        rows = visible(told(dataset).order_by("-created_at", "id"), request.user, through=OWNER)
        if "retired" in query:
            rows = rows.filter(retired_at__isnull=not query["retired"])
        return answer_page(BaselinePage, rows, query)

    @extend_schema(operation_id="approve_baseline", request=NewBaseline, responses={201: BaselineFacts})
    @idempotent
    def post(self, request: Request, dataset_id: UUID) -> Response:
        """Approve a completed run of the dataset as a baseline.

        The baseline of that name so far is retired. 409 where the run did not complete, has the name already, or you
        may not see the baseline that has it.
        """
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        data = valid(NewBaseline, request.data)
        runs = Run.objects.filter(benchmark__dataset_version__dataset=dataset)
        run = find_visible(runs, data["run_id"], request.user, through="benchmark")
        made = approve(run, name=data["name"], reason=data["reason"], by=request.user)
        return Response(BaselineFacts(read_again(told(dataset), made.pk)).data, status=201)


class OneBaseline(Endpoint):
    model = Baseline
    acts = {"GET": "view", "DELETE": "delete"}

    @extend_schema(operation_id="get_baseline", responses=BaselineFacts)
    def get(self, request: Request, dataset_id: UUID, baseline_id: UUID) -> Response:
        """Show a baseline."""
        return Response(BaselineFacts(find(request, dataset_id, baseline_id)).data)

    @extend_schema(operation_id="delete_baseline", responses={204: None})
    def delete(self, request: Request, dataset_id: UUID, baseline_id: UUID) -> Response:
        """Delete a retired baseline, which keeps its benchmark from being deleted; 409 while it is current."""
        delete_baseline(find(request, dataset_id, baseline_id))
        return Response(status=204)


class RetireBaseline(Endpoint):
    model = Baseline
    acts = {"POST": "change"}

    @extend_schema(operation_id="retire_baseline", request=None, responses=BaselineFacts)
    @idempotent
    def post(self, request: Request, dataset_id: UUID, baseline_id: UUID) -> Response:
        """Retire a baseline; it stays in the list. 409 where it is retired already."""
        baseline = find(request, dataset_id, baseline_id)
        require_empty(request.data)
        retire(baseline, by=request.user)
        return Response(BaselineFacts(baseline).data)


def told(dataset: Dataset) -> QuerySet[Baseline]:
    """Return the baselines of a dataset with what is told of each."""
    return dataset.baselines.select_related("run", "approved_by", "retired_by")


def find(request: Request, dataset_id: UUID, baseline_id: UUID) -> Any:
    dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
    return find_visible(told(dataset), baseline_id, request.user, through=OWNER)
