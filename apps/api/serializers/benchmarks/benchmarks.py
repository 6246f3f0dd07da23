"""Benchmarks on the wire."""

from typing import Any

from rest_framework import serializers

from apps.api.fields import Choice, Flag, Identifier, ListOf, Moment, StrictSerializer, Text, Whole
from apps.api.paging import Page, PageQuery
from apps.api.serializers.benchmarks.matrices import MatrixField
from apps.benchmarks.defining.options import CHOICES, MAX_REPETITIONS, MAX_SEED
from apps.benchmarks.measuring.measures import LONGEST, MOST
from apps.operations.models import Status
from benchbench.ir.planning.axes import MAX_TOP_K
from benchbench.names import MAX_LENGTH


def choice(name: str, help_text: str) -> Any:
    """Return a field for one of a benchmark's options, whose first value is the default."""
    return Choice(CHOICES[name], required=False, default=CHOICES[name][0], help_text=help_text)


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
    metrics_to_compute = ListOf(
        child=Text(max_length=LONGEST),
        required=False,
        default=list,
        max_length=MOST,
        help_text="precision, recall, ndcg, mrr and ap are always computed; any other measure by its name (map@10, "
        "ERR@20) comes on top of them.",
    )
    allow_missing = Flag(
        required=False, default=False, help_text="Run module queries although the collection lacks modules."
    )


class BenchmarkPreview(MatrixRequest):
    """A matrix to be planned."""


class NewBenchmark(MatrixRequest):
    """A new benchmark."""

    name = Text(max_length=MAX_LENGTH)
    description = Text(required=False, default="", allow_blank=True, allow_null=True, max_length=10_000)
    execution = choice("execution", "shared does once what runs have in common; isolated gives honest latencies.")
    runs_per_query = Whole(required=False, default=1, min_value=1, max_value=MAX_REPETITIONS)
    seed = Whole(required=False, default=42, min_value=0, max_value=MAX_SEED)
    unresolved = choice("unresolved", "Judgments without a document: count them as not found, or drop them.")
    empty_queries = choice("empty_queries", "Queries with nothing relevant: count them as zero, or skip them.")


class BenchmarkQuery(PageQuery):
    """Which page of which benchmarks."""

    status_filter = Choice(Status.choices, required=False)


class BenchmarkFacts(serializers.Serializer):
    """A benchmark in the API."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    description = serializers.CharField(help_text="May be empty.")
    owner_id = serializers.IntegerField(allow_null=True, help_text="null: it belongs to the whole staff.")
    mapping_id = serializers.UUIDField()
    status = serializers.ChoiceField(Status.choices)
    total_runs = serializers.IntegerField(min_value=0)
    completed_runs = serializers.IntegerField(min_value=0)
    failed_runs = serializers.IntegerField(min_value=0)
    created_at = Moment()
    started_at = Moment(allow_null=True)
    completed_at = Moment(allow_null=True)
    operation_uuid = serializers.UUIDField(source="operation_id", allow_null=True, help_text="The last start's.")


class BenchmarkPage(Page):
    """A page of benchmarks."""

    benchmarks = BenchmarkFacts(many=True)


class StartedFacts(serializers.Serializer):
    """A benchmark that was started, and the operation to watch."""

    id = serializers.UUIDField()
    status = serializers.ChoiceField(Status.choices)
    operation_uuid = serializers.UUIDField(source="operation_id")
    message = serializers.CharField()


class PreviewFacts(serializers.Serializer):
    """What a matrix would do."""

    total_runs = serializers.IntegerField(min_value=1)
    labels = serializers.ListField(child=serializers.CharField(), help_text="Labels of the runs, in their order.")
    queries = serializers.IntegerField(min_value=0)
    distinct = serializers.DictField(child=serializers.IntegerField(), help_text="Distinct work over all queries.")
    estimate_seconds = serializers.FloatField(help_text="Time of one worker in shared execution, without `builds`.")
    builds = serializers.ListField(child=serializers.CharField(), help_text="Made before any query.")
    indexes = serializers.ListField(child=serializers.CharField(), help_text="Those that are searched.")
    resident_bytes = serializers.IntegerField(min_value=0, help_text="Memory that a worker needs.")
    warnings = serializers.ListField(child=serializers.CharField())
    explanation = serializers.CharField()
