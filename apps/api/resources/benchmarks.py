"""Benchmarks: plan, make, list, look, delete; start, cancel, retry."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import Answer, ModelAnswer, answer_page, page_of
from apps.api.endpoint import Endpoint, find_visible
from apps.api.errors import naming, naming_matrix
from apps.api.fields import Flag, Identifier, PageQuery, StrictSerializer, Text, Whole, require_empty, valid
from apps.api.matrices import MatrixField, completed
from apps.api.openapi import refusals
from apps.benchmarks.defining.choosing import with_modes
from apps.benchmarks.defining.creating import (
    CHOICES,
    MAX_REPETITIONS,
    MAX_SEED,
    BenchmarkOptions,
    create_benchmark,
    require_published,
)
from apps.benchmarks.defining.previewing import Preview as Plan
from apps.benchmarks.defining.previewing import preview
from apps.benchmarks.launching import cancel, delete_benchmark, launch, retry
from apps.benchmarks.measuring.measures import LONGEST, MOST, besides_the_usual
from apps.benchmarks.models import Benchmark
from apps.benchmarks.runs import with_run_counts
from apps.mappings.models import Mapping
from apps.operations.models import Status
from benchbench.access import visible
from benchbench.database.failures import read_again, refresh
from benchbench.ir.planning.axes import MAX_TOP_K
from benchbench.names import MAX_LENGTH


def choice(name: str, help_text: str) -> Any:
    """Return a field for one of a benchmark's options, whose first value is the default."""
    return serializers.ChoiceField(CHOICES[name], default=CHOICES[name][0], help_text=help_text)


class MatrixRequest(StrictSerializer):
    """What is searched how, and by which measures."""

    mapping_id = Identifier(help_text="A resolved mapping, partially or wholly.")
    config_matrix = MatrixField()
    top_k = Whole(
        required=False,
        min_value=1,
        max_value=MAX_TOP_K,
        help_text="Chunks that a run returns, where config_matrix has no top_k_values.",
    )
    metrics_to_compute = serializers.ListField(
        child=Text(max_length=LONGEST),
        default=list,
        max_length=MOST,
        help_text="precision, recall, ndcg, mrr and ap are always computed; any other measure by its name (map@10, "
        "ERR@20) comes on top of them.",
    )
    allow_missing = Flag(default=False, help_text="Run module queries although the collection lacks modules.")


class BenchmarkPreview(MatrixRequest):
    """A matrix to be planned."""


class NewBenchmark(MatrixRequest):
    """A new benchmark."""

    name = Text(max_length=MAX_LENGTH)
    description = Text(default="", allow_blank=True, allow_null=True, max_length=10_000)
    execution = choice("execution", "shared does once what runs have in common; isolated gives honest latencies.")
    runs_per_query = Whole(default=1, min_value=1, max_value=MAX_REPETITIONS)
    seed = Whole(default=42, min_value=0, max_value=MAX_SEED)
    unresolved = choice("unresolved", "Judgments without a document: count them as not found, or drop them.")
    empty_queries = choice("empty_queries", "Queries with nothing relevant: count them as zero, or skip them.")


class BenchmarkQuery(PageQuery):
    """Which page of which benchmarks."""

    status_filter = serializers.ChoiceField(Status.choices, required=False)


class BenchmarkAnswer(ModelAnswer):
    """A benchmark."""

    completed_runs = serializers.IntegerField()
    failed_runs = serializers.IntegerField()
    operation_uuid = serializers.UUIDField(source="operation_id", allow_null=True, help_text="The last start's.")

    class Meta:
        model = Benchmark
        fields = [
            *("id", "name", "description", "owner_id", "mapping_id", "status", "total_runs", "completed_runs"),
            *("failed_runs", "created_at", "started_at", "completed_at", "operation_uuid"),
        ]


BenchmarkPage = page_of("benchmarks", BenchmarkAnswer)


class StartedAnswer(ModelAnswer):
    """A benchmark that was started, and the operation to watch."""

    operation_uuid = serializers.UUIDField(source="operation_id")
    message = serializers.CharField()

    class Meta:
        model = Benchmark
        fields = ["id", "status", "operation_uuid", "message"]


class PreviewAnswer(Answer):
    """The size of a benchmark: its runs by label, and the distinct work over all its queries."""

    total_runs = serializers.IntegerField()

    class Meta:
        dataclass = Plan
        extra_kwargs = {
            "labels": {"help_text": "Labels of the runs, in their order."},
            "distinct": {"help_text": "Distinct work over all queries."},
            "estimate_seconds": {"help_text": "Time of one worker in shared execution, without `builds`."},
            "builds": {"help_text": "Made before any query."},
            "indexes": {"help_text": "Those that are searched."},
            "resident_bytes": {"help_text": "Memory that a worker needs."},
        }


# Of a request, by our words.
KEYS = {"mapping": "mapping_id", "matrix": "config_matrix", "measures": "metrics_to_compute"}


class Benchmarks(Endpoint):
    model = Benchmark
    acts = {"POST": "add"}

    @extend_schema(operation_id="list_benchmarks", parameters=[BenchmarkQuery], responses=BenchmarkPage)
    def get(self, request: Request) -> Response:
        """List benchmarks, newest first."""
        query = valid(BenchmarkQuery, request.query_params)
        rows = visible(Benchmark.objects.order_by("-created_at", "id"), request.user)
        if "status_filter" in query:
            rows = rows.filter(status=query["status_filter"])
        return answer_page(BenchmarkPage, with_run_counts(rows), query)

    @extend_schema(
        operation_id="create_benchmark", request=NewBenchmark, responses={201: BenchmarkAnswer} | refusals(404)
    )
    def post(self, request: Request) -> Response:
        """Make a benchmark: a run for each configuration of the matrix, all of them pending.

        A matrix error names its key. 409 where the mapping was not resolved, or not since its dataset or collection
        changed.
        """
        data = valid(NewBenchmark, request.data)
        mapping, asked = searched(request, data)
        with naming(**KEYS), naming_matrix(data["config_matrix"]):
            made = create_benchmark(mapping, BenchmarkOptions.among(data, **asked), owner=request.user)
        return Response(shown(made), status=201)


class Preview(Endpoint):
    model = Benchmark
    acts = {"POST": "view"}
    refuses = (404,)

    @extend_schema(operation_id="preview_benchmark", request=BenchmarkPreview, responses=PreviewAnswer)
    def post(self, request: Request) -> Response:
        """Show what a matrix would do, without making anything; refuses what making a benchmark of it would refuse."""
        data = valid(BenchmarkPreview, request.data)
        mapping, asked = searched(request, data)
        with naming(**KEYS), naming_matrix(data["config_matrix"]):
            planned = preview(mapping, owner=request.user, **asked)
        return Response(PreviewAnswer(vars(planned) | {"total_runs": len(planned.labels)}).data)


class OneBenchmark(Endpoint):
    model = Benchmark

    @extend_schema(operation_id="get_benchmark", responses=BenchmarkAnswer)
    def get(self, request: Request, benchmark_id: UUID) -> Response:
        """Show a benchmark."""
        return Response(shown(find(request, benchmark_id)))

    @extend_schema(operation_id="delete_benchmark", responses={204: None})
    def delete(self, request: Request, benchmark_id: UUID) -> Response:
        """Delete a benchmark with its runs and results; 409 while it runs, or while a run of it is a baseline."""
        delete_benchmark(find(request, benchmark_id))
        return Response(status=204)


class Start(Endpoint):
    model = Benchmark
    throttles = {"POST": "start"}

    @extend_schema(operation_id="start_benchmark", request=None, responses=StartedAnswer)
    def post(self, request: Request, benchmark_id: UUID) -> Response:
        """Start a benchmark, or resume one that was cancelled: runs that completed or failed are left as they are.

        409 while it runs, where no run is left, where the mapping or an index is not current, and where you have as
        many running as one may (`quota`).
        """
        benchmark = find(request, benchmark_id)
        require_empty(request.data)
        launch(benchmark, by=request.user)
        return started(benchmark, "The benchmark is started.")


class Retry(Endpoint):
    model = Benchmark
    throttles = {"POST": "start"}

    @extend_schema(operation_id="retry_benchmark", request=None, responses=StartedAnswer)
    def post(self, request: Request, benchmark_id: UUID) -> Response:
        """Run what failed again: failed runs, and queries that failed in the others; 409 where nothing did."""
        benchmark = find(request, benchmark_id)
        require_empty(request.data)
        retry(benchmark, by=request.user)
        return started(benchmark, "The failed runs are started again.")


class Cancel(Endpoint):
    model = Benchmark

    @extend_schema(operation_id="cancel_benchmark", request=None, responses=BenchmarkAnswer)
    def post(self, request: Request, benchmark_id: UUID) -> Response:
        """Cancel a running benchmark, which can be resumed by starting it; 409 where it does not run."""
        benchmark = find(request, benchmark_id)
        require_empty(request.data)
        cancel(benchmark)
        return Response(shown(benchmark))


def find(request: Request, benchmark_id: UUID) -> Benchmark:
    return find_visible(Benchmark.objects.select_related("mapping__collection"), benchmark_id, request.user)


def shown(benchmark: Benchmark) -> Any:
    """Return what is told of a benchmark, as it is now."""
    return BenchmarkAnswer(read_again(with_run_counts(Benchmark.objects.all()), benchmark.pk)).data


def started(benchmark: Benchmark, message: str) -> Response:
    refresh(benchmark)
    benchmark.message = message  # type: ignore[attr-defined]
    return Response(StartedAnswer(benchmark).data)


def searched(request: Request, data: dict[str, Any]) -> tuple[Mapping, dict[str, Any]]:
    """Return the mapping that a request names, and the matrix and the measures as use cases take them."""
    rows = Mapping.objects.select_related("collection", "dataset", "dataset_version")
    mapping = find_visible(rows, data["mapping_id"], request.user)
    with naming(**KEYS), naming_matrix(data["config_matrix"]):
        require_published(data["config_matrix"])
        measures = besides_the_usual(data["metrics_to_compute"])
        whole = completed(data["config_matrix"], data.get("top_k"))
        matrix = with_modes(mapping, whole, owner=request.user)
    return mapping, {
        "matrix": matrix,
        "measures": measures,
        "allow_missing": data["allow_missing"],
    }
