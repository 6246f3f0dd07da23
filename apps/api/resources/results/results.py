"""Results of a benchmark and of a run, and the rankings of its queries."""

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access.addressed import find_visible
from apps.api.endpoint import Endpoint
from apps.api.fields import valid
from apps.api.paging import answer_page
from apps.api.serializers.results.results import AnswerPage, ResultsFacts, RunQueryQuery, VersionQuery, WholeRunFacts
from apps.benchmarks.models import Benchmark, Run
from apps.results.exporters.results_json import query_results, results, run_results
from apps.results.exporting import version_of


class Results(Endpoint):
    model = Benchmark
    acts = {"GET": "view"}

    @extend_schema(operation_id="get_results", parameters=[VersionQuery], responses=ResultsFacts)
    def get(self, request: Request, benchmark_id: UUID) -> Response:
        """Show the runs of a benchmark with their means, in their order; at any status, final means only."""
        benchmark = find_visible(Benchmark.objects.select_related("dataset_version"), benchmark_id, request.user)
        query = valid(VersionQuery, request.query_params)
        return Response(ResultsFacts(results(benchmark, version=version_of(benchmark, query.get("version")))).data)


class OneRun(Endpoint):
    model = Run
    acts = {"GET": "view"}

    @extend_schema(operation_id="get_run", parameters=[VersionQuery], responses=WholeRunFacts)
    def get(self, request: Request, benchmark_id: UUID, run_id: UUID) -> Response:
        """Show a run: its means, and what they rest on."""
        run = find(request, benchmark_id, run_id)
        query = valid(VersionQuery, request.query_params)
        own = {name: getattr(run, name) for name in set(WholeRunFacts().fields) if hasattr(run, name)}
        told = run_results(run, version=version_of(run, query.get("version")))
        return Response(WholeRunFacts(own | told).data)


class RunQueries(Endpoint):
    model = Run
    acts = {"GET": "view"}

    @extend_schema(operation_id="list_run_queries", parameters=[RunQueryQuery], responses=AnswerPage)
    def get(self, request: Request, benchmark_id: UUID, run_id: UUID) -> Response:
        """List the rankings of a run, for each query that was searched so far."""
        run = find(request, benchmark_id, run_id)
        query = valid(RunQueryQuery, request.query_params)
        version = version_of(run, query.get("version"))
        asked = run.query_results.order_by("query_id").values_list("query_id", flat=True).distinct()
        return answer_page(
            AnswerPage,
            asked,
            query,
            tell=lambda query_ids: query_results(run, list(query_ids), version=version),
            run_id=run.pk,
            primary_k=run.benchmark.primary_k,
        )


def find(request: Request, benchmark_id: UUID, run_id: UUID) -> Run:
    rows = Run.objects.filter(benchmark=benchmark_id).select_related("benchmark__dataset_version", "index")
    return find_visible(rows, run_id, request.user, through="benchmark")
