"""Comparisons of runs."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.endpoint import Endpoint, find_visible
from apps.api.fields import GREATEST, Identifier, ListOf, StrictSerializer, Text, VersionNumber, Whole, valid
from apps.api.openapi import refusals
from apps.api.paging import Page, PageQuery, answer_page
from apps.benchmarks.comparability import RELATED
from apps.benchmarks.measuring.measures import LONGEST
from apps.benchmarks.models import Run
from apps.datasets.finding import find_version
from apps.results.comparison.comparing import MOST_RUNS, STANDINGS, RunComparison, compare_runs
from apps.results.comparison.query_differences import every_difference, told_differences
from apps.results.comparison_report import comparison_facts
from benchbench.access import visible


class MeasuredOn(StrictSerializer):
    """By which measure, on which queries."""

    version = VersionNumber(help_text="Version of the dataset. Default: the newest on which all runs have values.")
    measure = Text(required=False, max_length=LONGEST, help_text="Such as mrr. Default: the primary measure.")
    slice = Text(required=False, max_length=500, trim_whitespace=False, help_text="Such as `category: billing`.")


class ComparisonQuery(MeasuredOn):
    """Which runs are held against each other."""

    run = ListOf(
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


@extend_schema_field({"type": ["array", "null"], "items": {"type": "number"}, "minItems": 2, "maxItems": 2})
class IntervalField(serializers.Field):
    """The ends of an interval: [low, high]."""

    def to_representation(self, value: list[float]) -> list[float]:
        return value


class ComparedRunFacts(serializers.Serializer):
    """A run among those that are compared."""

    id = serializers.UUIDField()
    label = serializers.CharField(help_text="Distinct among these runs.")
    benchmark = serializers.CharField(help_text="Name of the benchmark.")
    benchmark_id = serializers.UUIDField()
    config = serializers.DictField()
    git_sha = serializers.CharField(allow_null=True)
    failed_queries = serializers.IntegerField()
    duration_ms = serializers.IntegerField(allow_null=True, help_text="Time of its own searches.")
    execution = serializers.CharField(allow_null=True, help_text="How that was timed: shared, or isolated.")
    mean = serializers.FloatField(help_text="Over the compared queries.")
    standing = serializers.ChoiceField(STANDINGS, allow_null=True, help_text="null: nothing is tested.")


class DifferenceFacts(serializers.Serializer):
    """A run against another: `run` − `against`."""

    run = serializers.UUIDField()
    against = serializers.UUIDField()
    difference = serializers.FloatField()
    interval = IntervalField(help_text="95 % bootstrap interval of this difference alone.")
    simultaneous = IntervalField(allow_null=True, help_text="The interval that holds for all differences at once.")
    p = serializers.FloatField(allow_null=True, help_text="Adjusted for all that are compared; null: not tested.")
    significant = serializers.BooleanField(allow_null=True)
    effect = serializers.FloatField(allow_null=True, help_text="Cohen's d.")
    wins = serializers.IntegerField(help_text="Queries on which `run` is better.")
    ties = serializers.IntegerField()
    losses = serializers.IntegerField()


class DescribedFacts(serializers.Serializer):
    """One measure of one run, and how far it is from the reference. It describes: nothing is tested."""

    run = serializers.UUIDField()
    mean = serializers.FloatField(allow_null=True, help_text="Over the queries that it answered.")
    difference = serializers.FloatField(allow_null=True, help_text="Over those that the reference answered too.")
    interval = IntervalField(allow_null=True)


class ComparisonFacts(serializers.Serializer):
    """Runs compared query by query."""

    verdict = serializers.CharField(allow_null=True, help_text="A sentence; null where nothing is tested.")
    tested = serializers.BooleanField(help_text="Only the primary measure is tested, and no slice that is small.")
    about = serializers.ListField(child=serializers.CharField(), help_text="What was compared, and what was left out.")
    dataset_version = serializers.CharField()
    measure = serializers.CharField()
    slice = serializers.CharField(allow_null=True)
    queries = serializers.IntegerField(help_text="Those that every run answered.")
    seed = serializers.IntegerField()
    alpha = serializers.FloatField()
    baseline = serializers.UUIDField(allow_null=True)
    reference = serializers.UUIDField(help_text="The baseline, or else the best run.")
    runs = ComparedRunFacts(many=True, help_text="Best first.")
    differences = DifferenceFacts(many=True)
    measures = serializers.DictField(child=DescribedFacts(many=True), help_text="Of every measure that all have.")
    warnings = serializers.ListField(child=serializers.CharField(), help_text="What else differs between the runs.")


class QueryDifferenceFacts(serializers.Serializer):
    """One query of two runs: `difference` is `value` − `baseline_value`."""

    query_id = serializers.IntegerField(source="query.pk")
    query_key = serializers.CharField(source="query.key")
    query_text = serializers.CharField(source="query.text")
    value = serializers.FloatField()
    baseline_value = serializers.FloatField(source="reference_value")
    difference = serializers.FloatField()


class QueryDifferencePage(Page):
    """A page of queries on which two runs differ."""

    results = QueryDifferenceFacts(many=True)


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
