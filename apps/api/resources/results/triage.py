"""Triage: the lost documents of a run, and its weak slices."""

from functools import partial
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access.addressed import find_visible
from apps.api.endpoint import Endpoint
from apps.api.fields import valid
from apps.api.openapi import refusals
from apps.api.paging import answer_page
from apps.api.serializers.results.results import VersionQuery
from apps.api.serializers.results.triage import LostDocumentPage, LostDocumentQuery, SlicesFacts, TriageFacts
from apps.benchmarks.models import Run
from apps.results.triage.by_slice import slice_facts
from apps.results.triage.losing import cause_rows
from apps.results.triage.lost_documents import triage_of


class Triage(Endpoint):
    model = Run
    acts = {"GET": "view"}

    @extend_schema(
        operation_id="triage_run",
        parameters=[VersionQuery],
        responses={200: TriageFacts} | refusals(409),
        tags=["runs"],
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """Count the relevant documents that a run lost, by what kept them out.

        409 where the run has no values, and for a run that was made elsewhere, whose stages are not known.
        """
        triage = triage_of(find(request, run_id), **valid(VersionQuery, request.query_params))
        losses = triage.losses
        facts = {
            "run_id": run_id,
            "dataset_version": triage.evaluation.dataset_version.number,
            "k": triage.k,
            "queries": len(losses.judged),
            "losing_queries": len(losses.queries),
            "lost_documents": triage.count(),
            "untraced_queries": losses.untraced,
            "is_current": losses.is_current,
            "causes": cause_rows(losses),
        }
        return Response(TriageFacts(facts).data)


class LostDocuments(Endpoint):
    model = Run
    acts = {"GET": "view"}

    @extend_schema(
        operation_id="list_lost_documents",
        parameters=[LostDocumentQuery],
        responses={200: LostDocumentPage} | refusals(409),
        tags=["runs"],
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """List the relevant documents that a run lost, of the worst query first, with what happened to each."""
        run = find(request, run_id)
        query = valid(LostDocumentQuery, request.query_params)
        cause = query.get("cause")
        triage = triage_of(run, version=query.get("version"))
        tell = partial(triage.documents, cause=cause)
        return answer_page(LostDocumentPage, range(triage.count(cause)), query, tell=tell)


class Slices(Endpoint):
    model = Run
    acts = {"GET": "view"}

    @extend_schema(
        operation_id="slice_run", parameters=[VersionQuery], responses={200: SlicesFacts} | refusals(409), tags=["runs"]
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """Show the means of a run over each slice of the queries, and which slices are weak.

        409 where the run has no values, or its mapping was resolved again since.
        """
        run = find(request, run_id)
        return Response(SlicesFacts(slice_facts(run, **valid(VersionQuery, request.query_params))).data)


def find(request: Request, run_id: UUID) -> Run:
    related = (
        "benchmark__mapping__collection",
        "benchmark__mapping__dataset_version",
        "benchmark__dataset_version__dataset",
    )
    rows = Run.objects.select_related("index", *related)
    return find_visible(rows, run_id, request.user, through="benchmark")
