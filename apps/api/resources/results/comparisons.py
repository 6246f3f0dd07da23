"""Comparisons of runs."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access.addressed import find_visible
from apps.api.endpoint import Endpoint
from apps.api.fields import valid
from apps.api.openapi import refusals
from apps.api.paging import answer_page
from apps.api.serializers.results.comparisons import (
    ComparisonFacts,
    ComparisonQuery,
    QueryDifferencePage,
    QueryDifferenceQuery,
)
from apps.benchmarks.comparability import RELATED
from apps.benchmarks.models import Run
from apps.datasets.versions import find_version
from apps.results.comparison.comparing import RunComparison, compare_runs
from apps.results.comparison.query_differences import every_difference, told_differences
from apps.results.comparison_report import comparison_facts
from benchbench.access import visible


class Comparison(Endpoint):
    model = Run
    acts = {"GET": "view"}

    @extend_schema(
        operation_id="compare_runs",
        parameters=[ComparisonQuery],
        responses={200: ComparisonFacts} | refusals(404, 409),
        tags=["comparison"],
    )
    def get(self, request: Request) -> Response:
        """Compare runs of one dataset query by query: all pairs, or all with a baseline.

        409 (`incomparable`) where they were measured against different truths: `detail` says how they differ, and
        what to do. A comparison does not judge: a gate does.
        """
        query = valid(ComparisonQuery, request.query_params)
        return Response(ComparisonFacts(comparison_facts(compared(request, query, query["run"]))).data)


class ComparisonQueries(Endpoint):
    model = Run
    acts = {"GET": "view"}

    @extend_schema(
        operation_id="list_query_differences",
        parameters=[QueryDifferenceQuery],
        responses={200: QueryDifferencePage} | refusals(404, 409),
        tags=["comparison"],
    )
    def get(self, request: Request) -> Response:
        """List the queries that two runs answered, those first on which they are furthest apart."""
        query = valid(QueryDifferenceQuery, request.query_params)
        comparison = compared(request, query, [query["run"]])
        place = next(place for place, run in enumerate(comparison.runs) if run.pk == query["run"])
        return answer_page(QueryDifferencePage, every_difference(comparison, place), query, tell=told_differences)


def compared(request: Request, query: dict[str, Any], run_ids: Sequence[UUID]) -> RunComparison:
    """Return the comparison that a query string asks for."""
    baseline_id = query.get("baseline")
    runs = find_all(request, {*run_ids, *([baseline_id] if baseline_id else [])})
    number, own = query.get("version"), next(iter(runs.values())).benchmark.dataset_version
    return compare_runs(
        runs.values(),
        measure=query.get("measure"),
        baseline=runs[baseline_id] if baseline_id else None,
        slice=query.get("slice"),
        seed=query.get("seed"),
        version=None if number is None else own if number == own.number else find_version(own.dataset, number),
    )


def find_all(request: Request, run_ids: set[UUID]) -> dict[UUID, Run]:
    """Return the runs of these ids; NotFound or PermissionDenied for the first that there is not, or is another's."""
    rows = Run.objects.select_related(*RELATED)
    runs = {run.pk: run for run in visible(rows.filter(pk__in=run_ids), request.user, through="benchmark")}
    for missing in sorted(run_ids - runs.keys()):
        find_visible(rows, missing, request.user, through="benchmark")
    return runs
