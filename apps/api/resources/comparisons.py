"""Comparisons of runs."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import answer_page, page_of, present
from apps.api.endpoint import Endpoint, find_visible
from apps.api.fields import GREATEST, Identifier, PageQuery, StrictSerializer, Text, VersionNumber, Whole, valid
from apps.benchmarks.comparability import RELATED
from apps.benchmarks.measuring.measures import LONGEST
from apps.benchmarks.models import Run
from apps.datasets.versions import find_version
from apps.results.comparison.comparing import MOST_RUNS, RunComparison, compare_runs
from apps.results.comparison.describing import every_difference, told_differences
from apps.results.comparison_report import ComparisonReport, comparison_report
from benchbench.access import visible


class MeasuredOn(StrictSerializer):
    """By which measure, on which queries."""

    version = VersionNumber(help_text="Version of the dataset. Default: the newest on which all runs have values.")
    measure = Text(required=False, max_length=LONGEST, help_text="Such as mrr. Default: the primary measure.")
    slice = Text(required=False, max_length=500, trim_whitespace=False, help_text="Such as `category: billing`.")


class ComparisonQuery(MeasuredOn):
    """Which runs are held against each other."""

    run = serializers.ListField(
        child=Identifier(),
        min_length=1,
        max_length=MOST_RUNS,
        help_text="Ids of runs, of any benchmarks: run=…&run=….",
    )
    baseline = Identifier(
        required=False, help_text="The run that all others are compared with. Default: every pair is compared."
    )
    seed = Whole(
        required=False, min_value=0, max_value=GREATEST, help_text="Default: the seed of the oldest benchmark."
    )


class QueryDifferenceQuery(PageQuery, MeasuredOn):
    """Which two runs are held against each other, query by query."""

    run = Identifier()
    baseline = Identifier()


class QueryDifferenceAnswer(serializers.Serializer):
    """One query of two runs: `difference` is `value` − `baseline_value`."""

    query_id = serializers.IntegerField(source="query.pk")
    query_key = serializers.CharField(source="query.key")
    query_text = serializers.CharField(source="query.text")
    value = serializers.FloatField()
    baseline_value = serializers.FloatField(source="reference_value")
    difference = serializers.FloatField()


QueryDifferencePage = page_of("results", QueryDifferenceAnswer)


class Comparison(Endpoint):
    model = Run
    refuses = (404, 409)

    @extend_schema(operation_id="compare_runs", parameters=[ComparisonQuery], responses=ComparisonReport)
    def get(self, request: Request) -> Response:
        """Compare runs of one dataset query by query: all pairs, or all with a baseline.

        409 (`incomparable`) where they were measured against different truths: `detail` says how they differ, and
        what to do. A comparison does not judge: a gate does.
        """
        query = valid(ComparisonQuery, request.query_params)
        return present(comparison_report(compared(request, query, query["run"])))


class ComparisonQueries(Endpoint):
    model = Run
    refuses = (404, 409)

    @extend_schema(
        operation_id="list_query_differences", parameters=[QueryDifferenceQuery], responses=QueryDifferencePage
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
