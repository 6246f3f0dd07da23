"""Benchmarks: plan, make, list, look, delete; start, cancel, retry."""

import json
from collections.abc import Mapping as MappingType
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.answers import Answer, ModelAnswer, build_page
from apps.api.errors import prefix_matrix_fields
from apps.api.fields import Flag, Identifier, Int, PageQuery, StrictSerializer, Text, Validated, as_int
from apps.api.resource import Resource, delete, find_visible, get, post
from apps.execution.defining.choosing import add_modes
from apps.execution.defining.creating import (
    CHOICES,
    MAX_REPETITIONS,
    MAX_SEED,
    BenchmarkOptions,
    create_benchmark,
    require_published,
)
from apps.execution.defining.previewing import Preview as Plan
from apps.execution.defining.previewing import preview
from apps.execution.launching import cancel, delete_benchmark, launch, retry
from apps.mappings.models import Mapping
from apps.operations.models import Priority, Status
from apps.records.finding import add_run_counts
from apps.records.measuring.measures import MAX_MEASURES, list_extra_measures
from apps.records.models import Benchmark
from apps.retrieval.encoders.admitting import PUBLISHED
from benchbench.database.failures import read_again, refresh
from benchbench.ir.measures.spelling import MAX_NAME_LENGTH
from benchbench.ir.planning.axes import BY_KEY
from benchbench.ir.planning.axes.kinds import CUTOFF, MAX_TOP_K
from benchbench.ir.planning.matrix import DEFAULT_CUTOFFS, DEFAULT_PRIMARY_K
from benchbench.models import MAX_TAGS, TAG_LENGTH
from benchbench.names import MAX_LENGTH

VALUES: dict[str, dict[str, object]] = {
    "k_values_for_metrics": CUTOFF.schema,
    **{key: axis.kind.schema for key, axis in BY_KEY.items()},
    "rerankers": {"type": ["string", "null"], "pattern": f"^{PUBLISHED.pattern}$"},
}
INTS = {"primary_k", *(key for key, values in VALUES.items() if '"integer"' in json.dumps(values))}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "primary_k": CUTOFF.schema | {"default": DEFAULT_PRIMARY_K},
        **{
            key: {"type": "array", "items": values, "minItems": 1, "uniqueItems": True}
            for key, values in VALUES.items()
        },
    },
    "description": "A list of values for each key; every combination is a run. What is left out has its default: "
    "without `search_modes` all that the indexes can search, without `indexes` the newest there is. The newest, "
    "of a name too, is the newest ready index of the current documents.",
}


class Starting(StrictSerializer):
    """Options of a start."""

    priority = serializers.ChoiceField(
        Priority.choices, default=Priority.NORMAL, help_text="Workers take higher ones first; high is for superusers."
    )


@extend_schema_field(SCHEMA)
class MatrixField(serializers.DictField):
    """A matrix as received; the use case checks it and names the key at fault."""

    def to_internal_value(self, data: object) -> MappingType[str, object]:
        return {key: _to_int(value) if key in INTS else value for key, value in super().to_internal_value(data).items()}


def _to_int(value: object) -> Any:
    return [as_int(item) for item in value] if isinstance(value, list) else as_int(value)


def add_defaults(matrix: MappingType[str, object], top_k: int | None) -> dict[str, object]:
    """Return a matrix with the defaults of the earlier API for missing keys.

    Its depth is `top_k`. The cutoffs are the usual ones up to the smallest depth, since the earlier API's default depth
    is 10.
    """
    axes = dict(matrix)
    if top_k is not None:
        axes.setdefault("top_k_values", [top_k])
    depths = axes.get("top_k_values", [BY_KEY["top_k_values"].default])
    if "k_values_for_metrics" not in axes and isinstance(depths, list) and all(type(depth) is int for depth in depths):
        reached = [k for k in DEFAULT_CUTOFFS if k <= min(depths, default=0)]
        axes["k_values_for_metrics"] = reached or [axes.get("primary_k", DEFAULT_PRIMARY_K)]
    return axes


def build_choice(name: str, help_text: str) -> Any:
    """Return a field for one of a benchmark's options, whose first value is the default."""
    return serializers.ChoiceField(CHOICES[name], default=CHOICES[name][0], help_text=help_text)


class MatrixRequest(StrictSerializer):
    """A mapping, a matrix of configurations, and measures."""

    mapping_id = Identifier(help_text="A resolved mapping, partially or wholly.")
    config_matrix = MatrixField()
    top_k = Int(
        required=False,
        min_value=1,
        max_value=MAX_TOP_K,
        help_text="Chunks that a run returns, where config_matrix has no top_k_values.",
    )
    metrics_to_compute = serializers.ListField(
        child=Text(max_length=MAX_NAME_LENGTH),
        default=list,
        max_length=MAX_MEASURES,
        help_text="precision, recall, ndcg, mrr and ap are always computed; any other measure by its name (map@10, "
        "ERR@20) comes on top of them.",
    )
    allow_missing = Flag(default=False, help_text="Run module queries although the collection lacks modules.")
    execution = build_choice("execution", "shared does once what runs have in common; isolated gives honest latencies.")
    runs_per_query = Int(default=1, min_value=1, max_value=MAX_REPETITIONS)
    exclude_self = Flag(default=False, help_text="Leave out the document whose id is the query's key, before the cut.")
    identical_texts = build_choice(
        "identical_texts", "Documents with the text of a judged one: judge each by itself, or give them its grade."
    )


class BenchmarkPreview(MatrixRequest):
    """A matrix to be planned."""


class NewBenchmark(MatrixRequest):
    """A new benchmark."""

    name = Text(max_length=MAX_LENGTH)
    description = Text(default="", allow_blank=True, allow_null=True, max_length=10_000)
    tags = serializers.ListField(
        child=Text(max_length=TAG_LENGTH), default=list, max_length=MAX_TAGS, help_text="Words to filter lists by."
    )
    seed = Int(default=42, min_value=0, max_value=MAX_SEED)
    unresolved = build_choice("unresolved", "Judgments without a document: count them as not found, or drop them.")
    empty_queries = build_choice("empty_queries", "Queries with nothing relevant: count them as zero, or skip them.")
    weighting = serializers.ChoiceField(
        CHOICES["weighting"],
        required=False,
        help_text="Means count queries alike, or by their weights; by default by weights if these differ.",
    )


class BenchmarkQuery(PageQuery):
    """Query parameters for listing benchmarks."""

    status_filter = serializers.ChoiceField(Status.choices, required=False)


class BenchmarkAnswer(ModelAnswer):
    """A benchmark."""

    completed_runs = serializers.IntegerField()
    failed_runs = serializers.IntegerField()
    operation_uuid = serializers.UUIDField(source="operation_id", allow_null=True, help_text="The last start's.")

    class Meta:
        model = Benchmark
        fields = [
            *("id", "name", "description", "tags", "owner_id", "mapping_id", "status", "total_runs", "completed_runs"),
            *("failed_runs", "weighting", "exclude_self", "identical_texts", "created_at", "started_at"),
            *("completed_at", "operation_uuid"),
        ]


BenchmarkPage = build_page("benchmarks", BenchmarkAnswer)


class StartedAnswer(ModelAnswer):
    """A started benchmark, and the operation to watch."""

    operation_uuid = serializers.UUIDField(source="operation_id")
    message = serializers.CharField()

    class Meta:
        model = Benchmark
        fields = ["id", "status", "operation_uuid", "message"]


class PreviewAnswer(Answer):
    """The size of a benchmark: its runs by label, and the work over all its queries."""

    total_runs = serializers.IntegerField()

    class Meta:
        dataclass = Plan


# Of a request, by our words.
KEYS = {"mapping": "mapping_id", "matrix": "config_matrix", "measures": "metrics_to_compute"}


class BenchmarkResource(Resource):
    """Benchmarks, each with the collection that says whether it is external."""

    model = Benchmark
    route = "benchmarks"

    def rows(self) -> QuerySet[Benchmark]:
        return Benchmark.objects.select_related("mapping__collection")


class Benchmarks(BenchmarkResource):
    @get("", BenchmarkPage, BenchmarkQuery)
    def list_benchmarks(self, query: Validated) -> QuerySet[Benchmark]:
        """List benchmarks, newest first."""
        rows = add_run_counts(self.newest().select_related(None))
        return rows.filter(status=query["status_filter"]) if "status_filter" in query else rows

    @post(
        "",
        BenchmarkAnswer,
        NewBenchmark,
        act="add",
        status=201,
        names=KEYS,
        refuses=[404],
        history="Create a benchmark.",
    )
    def create_benchmark(self, data: Validated) -> Benchmark:
        """Create a benchmark with a pending run for each configuration of the matrix.

        A matrix error names its key. 409 if the mapping is not resolved for the current dataset and collection.
        """
        with prefix_matrix_fields(data["config_matrix"]):
            mapping, options = self.find_inputs(data)
            return reload_benchmark(
                create_benchmark(mapping, BenchmarkOptions.from_values(data, **options), owner=self.user)
            )

    @post("/preview", PreviewAnswer, BenchmarkPreview, act="view", names=KEYS, refuses=[404])
    def preview_benchmark(self, data: Validated) -> Plan:
        """Show the runs and the cost of a matrix without creating anything. Raises the same errors as creating."""
        with prefix_matrix_fields(data["config_matrix"]):
            mapping, options = self.find_inputs(data)
            names = ("execution", "runs_per_query", "exclude_self", "identical_texts")
            options |= {name: data[name] for name in names}
            return preview(mapping, owner=self.user, **options)

    @get("/<id:benchmark_id>", BenchmarkAnswer)
    def get_benchmark(self, benchmark: Benchmark) -> Benchmark:
        """Show a benchmark."""
        return reload_benchmark(benchmark)

    @delete("/<id:benchmark_id>", history="Delete a benchmark with its runs and results.")
    def delete_benchmark(self, benchmark: Benchmark) -> None:
        """Delete a benchmark with its runs and results; 409 while it runs, or while a run of it is a baseline."""
        delete_benchmark(benchmark)

    @post("/<id:benchmark_id>/start", StartedAnswer, Starting, throttle="start", history="Start or resume a benchmark.")
    def start_benchmark(self, benchmark: Benchmark, data: Validated) -> Benchmark:
        """Start a benchmark, or resume a cancelled one: runs that completed or failed do not change.

        409 while it runs, if no run is pending, if the mapping or an index is not current, or if you are at your limit
        of running benchmarks (`quota`).
        """
        launch(benchmark, by=self.user, priority=data["priority"])
        return add_message(benchmark, "The benchmark is started.")

    @post("/<id:benchmark_id>/cancel", BenchmarkAnswer, history="Cancel a running benchmark.")
    def cancel_benchmark(self, benchmark: Benchmark) -> Benchmark:
        """Cancel a running benchmark; starting it resumes it. 409 if it is not running."""
        cancel(benchmark)
        return reload_benchmark(benchmark)

    @post("/<id:benchmark_id>/retry", StartedAnswer, throttle="start", history="Retry failed runs and queries.")
    def retry_benchmark(self, benchmark: Benchmark) -> Benchmark:
        """Retry failed runs, and failed queries of other runs; 409 if nothing failed."""
        retry(benchmark, by=self.user)
        return add_message(benchmark, "The failed runs are started again.")

    def find_inputs(self, data: Validated) -> tuple[Mapping, dict[str, Any]]:
        """Return the mapping, matrix and measures of a request, in the form that use cases take."""
        rows = Mapping.objects.select_related("collection", "dataset", "dataset_version")
        mapping = find_visible(rows, data["mapping_id"], self.user)
        require_published(data["config_matrix"])
        measures = list_extra_measures(data["metrics_to_compute"])
        axes = add_defaults(data["config_matrix"], data.get("top_k"))
        matrix = add_modes(mapping, axes, owner=self.user)
        return mapping, {"matrix": matrix, "measures": measures, "allow_missing": data["allow_missing"]}


def reload_benchmark(benchmark: Benchmark) -> Benchmark:
    """Return the current benchmark with the fields of its answer."""
    return read_again(add_run_counts(Benchmark.objects.all()), benchmark.pk)


def add_message(benchmark: Benchmark, message: str) -> Benchmark:
    refresh(benchmark)
    benchmark.message = message  # type: ignore[attr-defined]
    return benchmark
