"""Triage: the lost documents of a run, and its weak slices."""

from functools import partial
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.endpoint import Endpoint
from apps.api.fields import Choice, valid
from apps.api.openapi import refusals
from apps.api.paging import Page, PageQuery, answer_page
from apps.api.resources.results import VersionQuery, measured_run
from apps.benchmarks.models import Run
from apps.results.causes import CAUSES
from apps.results.triage.by_slice import slice_facts
from apps.results.triage.losing import cause_rows
from apps.results.triage.lost_documents import triage_of
from benchbench.ir.triage import Loss

LOSSES = [(loss.value, cause.name) for loss, cause in CAUSES.items()]


class LostDocumentQuery(PageQuery, VersionQuery):
    """Which page of which lost documents."""

    cause = Choice(LOSSES, required=False, help_text="Default: all causes.")

    def validate_cause(self, value: str) -> Loss:
        return Loss(value)


class CauseFacts(serializers.Serializer):
    """One way in which a run lost documents."""

    cause = serializers.ChoiceField(LOSSES, source="value")
    name = serializers.CharField()
    remedy = serializers.CharField()
    documents = serializers.IntegerField(min_value=1)
    queries = serializers.IntegerField(min_value=1)


class TriageFacts(serializers.Serializer):
    """The relevant documents that are not among the first k of a run, counted by what kept them out."""

    run_id = serializers.UUIDField()
    dataset_version = serializers.IntegerField(help_text="Number of the version whose judgments are meant.")
    k = serializers.IntegerField(help_text="The primary k of the benchmark.")
    queries = serializers.IntegerField(help_text="Those that were answered and for which something is relevant.")
    losing_queries = serializers.IntegerField(help_text="Those of them that lost a document.")
    lost_documents = serializers.IntegerField()
    untraced_queries = serializers.IntegerField(help_text="Those whose stage lists are not kept.")
    is_current = serializers.BooleanField(help_text="Whether the judgments are the same as when the run was measured.")
    causes = CauseFacts(many=True, help_text="In the order of the stages.")


class LostDocumentFacts(serializers.Serializer):
    """A relevant document that is not among the first k of a query."""

    query_id = serializers.IntegerField()
    query_key = serializers.CharField()
    query_text = serializers.CharField()
    document_id = serializers.CharField(
        source="document", allow_null=True, help_text="External id; null: the judgment has no document."
    )
    reference = serializers.CharField(help_text="How the judgment names it, where there is no document.")
    grade = serializers.IntegerField()
    cause = serializers.ChoiceField(LOSSES, source="loss")
    share = serializers.FloatField(help_text="The share of the ideal DCG@k that it would add.")
    sentence = serializers.CharField(help_text="What happened to it.")
    remedy = serializers.CharField()


class LostDocumentPage(Page):
    """A page of lost documents."""

    documents = LostDocumentFacts(many=True)


class WeakFacts(serializers.Serializer):
    """Why a slice is an area to improve: it is significantly below all other queries."""

    mean = serializers.FloatField()
    others = serializers.FloatField(help_text="The mean over all other queries.")
    p = serializers.FloatField(help_text="Adjusted for the number of slices.")


class SliceFacts(serializers.Serializer):
    """The means of a run over one kind of queries."""

    name = serializers.CharField(help_text="The value for the parameter `slice`.")
    partition = serializers.CharField()
    label = serializers.CharField(allow_blank=True)
    queries = serializers.IntegerField(help_text="Those that are in the mean of the primary measure.")
    is_small = serializers.BooleanField(help_text="Too few queries to conclude anything from.")
    metrics_flat = serializers.DictField(child=serializers.FloatField(allow_null=True))
    weak = WeakFacts(allow_null=True)


class SlicesFacts(serializers.Serializer):
    """A run by the slices of the dataset's queries."""

    run_id = serializers.UUIDField()
    dataset_version = serializers.IntegerField()
    primary = serializers.CharField(help_text="The measure by which slices are weak.")
    metrics_flat = serializers.DictField(child=serializers.FloatField(allow_null=True), help_text="Over all queries.")
    slices = SliceFacts(many=True)


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
        triage = triage_of(measured_run(request, run_id), **valid(VersionQuery, request.query_params))
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
        run = measured_run(request, run_id)
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
        run = measured_run(request, run_id)
        return Response(SlicesFacts(slice_facts(run, **valid(VersionQuery, request.query_params))).data)
