"""Triage: the lost documents of a run, and its weak slices."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import Answer, answer_page, page_of, present
from apps.api.fields import PageQuery, valid
from apps.api.resources.results import RunEndpoint, VersionQuery, measured_run
from apps.results.triage.by_slice import RunSlices, run_slices
from apps.results.triage.causes import CAUSES, CauseRow, cause_rows
from apps.results.triage.lost_documents import LostRow, triage_of
from benchbench.ir.triage import Loss

LOSSES = [loss.value for loss in CAUSES]


class LostDocumentQuery(PageQuery, VersionQuery):
    """Which page of which lost documents."""

    cause = serializers.ChoiceField(LOSSES, required=False, help_text="Default: all causes.")

    def validate_cause(self, value: str) -> Loss:
        return Loss(value)


@dataclass(frozen=True)
class TriageAnswer:
    """The relevant documents that are not among the first k of a run, counted by what kept them out."""

    run_id: UUID
    dataset_version: Annotated[int, "Number of the version whose judgments are meant."]
    k: Annotated[int, "The primary k of the benchmark."]
    queries: Annotated[int, "Those that were answered and for which something is relevant."]
    losing_queries: Annotated[int, "Those of them that lost a document."]
    lost_documents: int
    untraced_queries: Annotated[int, "Those whose stage lists are not kept."]
    is_current: Annotated[bool, "Whether the judgments are the same as when the run was measured."]
    causes: Annotated[list[CauseRow], "In the order of the stages."]


class LostDocumentAnswer(Answer):
    """A relevant document that is not among the first k of a query."""

    document_id = serializers.CharField(
        source="document", allow_null=True, help_text="External id; null: the judgment has no document."
    )
    cause = serializers.ChoiceField(LOSSES, source="loss")

    class Meta:
        dataclass = LostRow
        exclude = ["document", "loss"]
        extra_kwargs = {
            "reference": {"help_text": "How the judgment names it, where there is no document."},
            "share": {"help_text": "The share of the ideal DCG@k that it would add."},
            "sentence": {"help_text": "What happened to it."},
        }


LostDocumentPage = page_of("documents", LostDocumentAnswer)


class Triage(RunEndpoint):
    @extend_schema(operation_id="triage_run", parameters=[VersionQuery], responses=TriageAnswer)
    def get(self, request: Request, run_id: UUID) -> Response:
        """Count the relevant documents that a run lost, by what kept them out.

        409 where the run has no values, and for a run that was made elsewhere, whose stages are not known.
        """
        triage = triage_of(measured_run(request, run_id), **valid(VersionQuery, request.query_params))
        losses = triage.losses
        return present(
            TriageAnswer(
                run_id=run_id,
                dataset_version=triage.evaluation.dataset_version.number,
                k=triage.k,
                queries=len(losses.judged),
                losing_queries=len(losses.queries),
                lost_documents=triage.count(),
                untraced_queries=losses.untraced,
                is_current=losses.is_current,
                causes=cause_rows(losses),
            )
        )


class LostDocuments(RunEndpoint):
    @extend_schema(operation_id="list_lost_documents", parameters=[LostDocumentQuery], responses=LostDocumentPage)
    def get(self, request: Request, run_id: UUID) -> Response:
        """List the relevant documents that a run lost, of the worst query first, with what happened to each."""
        run = measured_run(request, run_id)
        query = valid(LostDocumentQuery, request.query_params)
        cause = query.get("cause")
        triage = triage_of(run, version=query.get("version"))
        tell = partial(triage.documents, cause=cause)
        return answer_page(LostDocumentPage, range(triage.count(cause)), query, tell=tell)


class Slices(RunEndpoint):
    @extend_schema(operation_id="slice_run", parameters=[VersionQuery], responses=RunSlices)
    def get(self, request: Request, run_id: UUID) -> Response:
        """Show the means of a run over each slice of the queries, and which slices are weak.

        409 where the run has no values, or its mapping was resolved again since.
        """
        run = measured_run(request, run_id)
        return present(run_slices(run, **valid(VersionQuery, request.query_params)))
