"""Further measures of a run: how far it is judged, its sections, the texts that it found."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.endpoint import Endpoint
from apps.api.fields import valid
from apps.api.openapi import refusals
from apps.api.resources.results.triage import find
from apps.api.serializers.results.results import VersionQuery
from apps.api.serializers.results.run_measures import ContentFacts, CoverageFacts, SectionMeansFacts
from apps.benchmarks.models import Evaluation, Run
from apps.results.leaderboard.coverage import coverage_of
from apps.results.triage.content import NAMES, content_of
from apps.results.triage.queries import values_on
from apps.results.triage.sections import section_means
from benchbench.ir.measures import Measure


class Coverage(Endpoint):
    model = Run
    acts = {"GET": "view"}

    @extend_schema(
        operation_id="get_run_coverage",
        parameters=[VersionQuery],
        responses={200: CoverageFacts} | refusals(409),
        tags=["runs"],
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """Show how much of the values of a run rests on judgments."""
        evaluation = measured(request, run_id)
        rows = [asdict(row) | {"name": Measure.parse(row.name).wire} for row in coverage_of(evaluation)]
        return Response(CoverageFacts(about(evaluation) | {"measures": rows}).data)


class Sections(Endpoint):
    model = Run
    acts = {"GET": "view"}

    @extend_schema(
        operation_id="get_run_sections",
        parameters=[VersionQuery],
        responses={200: SectionMeansFacts} | refusals(409),
        tags=["runs"],
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """Show how well a run finds the sections that judgments name."""
        evaluation = measured(request, run_id)
        means = section_means(evaluation)
        facts = {
            "judgments": means.n if means else 0,
            "rows": means.rows if means else [],
            "doc_mrr": means and means.doc_mrr,
            "section_mrr": means and means.section_mrr,
        }
        return Response(SectionMeansFacts(about(evaluation) | facts).data)


class Content(Endpoint):
    model = Run
    acts = {"GET": "view"}

    @extend_schema(
        operation_id="get_run_content",
        parameters=[VersionQuery],
        responses={200: ContentFacts} | refusals(409),
        tags=["runs"],
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """Show what the first chunks of a run hold of the evidence and the answers that queries state."""
        evaluation = measured(request, run_id)
        content = content_of(evaluation)
        facts = {
            "k": content.k,
            "queries": len(content.queries),
            "unanswered": content.unanswered,
            "means": [
                {"name": name, "mean": mean, "queries": queries}
                for name, (_, mean, queries) in zip(NAMES, content.means, strict=True)
            ],
        }
        return Response(ContentFacts(about(evaluation) | facts).data)


def measured(request: Request, run_id: UUID) -> Evaluation:
    return values_on(find(request, run_id), **valid(VersionQuery, request.query_params))


def about(evaluation: Evaluation) -> dict[str, Any]:
    return {"run_id": evaluation.run_id, "dataset_version": evaluation.dataset_version.number}
