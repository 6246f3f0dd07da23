"""Results on the wire."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.fields import Moment, StrictSerializer, VersionNumber
from apps.api.paging import Page, PageQuery
from apps.benchmarks.models import Run

MEAN = {"type": ["number", "null"]}
AT_CUTOFFS = {"type": "object", "additionalProperties": MEAN, "description": 'By cutoff, as in {"10": 0.4}.'}


class VersionQuery(StrictSerializer):
    """On which version of the dataset the values are."""

    version = VersionNumber(help_text="Number of the version. Default: the benchmark's own.")


class RunQueryQuery(PageQuery):
    """Which page, and on which version of the dataset the values are."""

    version = VersionNumber(help_text="Number of the version. Default: the benchmark's own.")


@extend_schema_field(
    {
        "type": "object",
        "properties": {"mrr": MEAN, "ap": MEAN, "precision": AT_CUTOFFS, "recall": AT_CUTOFFS, "ndcg": AT_CUTOFFS},
        "required": ["mrr", "ap", "precision", "recall", "ndcg"],
        "additionalProperties": MEAN,
        "description": "Means; null where no query counts. Measures of other families are there by their own names.",
    }
)
class MetricsField(serializers.Field):
    """Means by family, as they come."""

    def to_representation(self, value: Any) -> Any:
        return value


def flat_metrics() -> Any:
    """Return a field for values by their flat names."""
    return serializers.DictField(
        child=serializers.FloatField(allow_null=True), help_text='By name, as in {"precision@10": 0.4}.'
    )


class TimingFacts(serializers.Serializer):
    """What a run costs by itself, in milliseconds; runs are at work together, so the wall clock is the benchmark's."""

    indexing_ms = serializers.IntegerField(allow_null=True, help_text="Building its index.")
    evaluation_ms = serializers.IntegerField(allow_null=True, help_text="Its stages, summed over all its queries.")
    total_ms = serializers.IntegerField(allow_null=True)
    per_query = serializers.DictField(
        help_text="Milliseconds per query by stage, how many were timed, and `execution`: shared or isolated."
    )


class RunFacts(serializers.Serializer):
    """A run with its means."""

    id = serializers.UUIDField()
    run_order = serializers.IntegerField(min_value=1)
    config_hash = serializers.CharField()
    config = serializers.DictField()
    status = serializers.ChoiceField(Run.Status.choices)
    error_message = serializers.CharField(allow_null=True)
    metrics = MetricsField()
    metrics_flat = flat_metrics()
    timing = TimingFacts()
    label = serializers.CharField()
    failed_queries = serializers.IntegerField(min_value=0, help_text="Left out of the means.")
    unranked = serializers.CharField(allow_null=True, help_text="Why it has no rank: it lost too many queries.")
    warnings = serializers.ListField(child=serializers.CharField())


class SummaryFacts(serializers.Serializer):
    """The results of all runs together."""

    total_runs = serializers.IntegerField(min_value=0)
    completed_runs = serializers.IntegerField(min_value=0)
    failed_runs = serializers.IntegerField(min_value=0)
    best_run = serializers.UUIDField(allow_null=True, help_text="By nDCG at the primary k, of the runs that completed.")
    best_primary_metric = serializers.FloatField(allow_null=True)


class ResultsFacts(serializers.Serializer):
    """The outcome of a benchmark: its runs in their order, and a summary."""

    benchmark_id = serializers.UUIDField()
    dataset_version = serializers.IntegerField(min_value=1)
    duration_ms = serializers.IntegerField(allow_null=True, help_text="From start to end, of all runs together.")
    primary_k = serializers.IntegerField(min_value=1)
    k_values_for_metrics = serializers.ListField(child=serializers.IntegerField(min_value=1))
    runs = RunFacts(many=True)
    summary = SummaryFacts()
    total_runs = serializers.IntegerField(min_value=0)


class WholeRunFacts(RunFacts):
    """A run with its means, and what they rest on."""

    benchmark_id = serializers.UUIDField()
    is_external = serializers.BooleanField(help_text="Whether its rankings were made elsewhere.")
    index_id = serializers.UUIDField(allow_null=True)
    embed_calls = serializers.IntegerField(min_value=0)
    llm_calls = serializers.IntegerField(min_value=0)
    started_at = Moment(allow_null=True)
    completed_at = Moment(allow_null=True)
    provenance = serializers.DictField(help_text="Data, index, models, code and machines; empty before the run ended.")


class AnswerFacts(serializers.Serializer):
    """What a run answered to one query. Values are at the benchmark's primary k; null where the query has none."""

    query_id = serializers.IntegerField()
    query_key = serializers.CharField()
    query_text = serializers.CharField()
    retrieved_doc_ids = serializers.ListField(child=serializers.CharField(), help_text="External ids, best first.")
    precision_at_k = serializers.FloatField(allow_null=True)
    recall_at_k = serializers.FloatField(allow_null=True)
    reciprocal_rank = serializers.FloatField(allow_null=True)
    ndcg_at_k = serializers.FloatField(allow_null=True)
    rewrite_time_ms = serializers.FloatField(
        allow_null=True, help_text="What a language model took for the text that was searched for; null: as asked."
    )
    search_time_ms = serializers.FloatField(allow_null=True)
    rerank_time_ms = serializers.FloatField(allow_null=True)
    total_time_ms = serializers.FloatField(allow_null=True, help_text="Of all stages, encoding and fusing too.")
    execution = serializers.CharField(allow_null=True, help_text="How that was timed: shared, or isolated.")
    embed_calls = serializers.IntegerField(
        allow_null=True, min_value=0, help_text="Encodings that the run needs for it alone; null of an external run."
    )
    llm_calls = serializers.IntegerField(
        allow_null=True, min_value=0, help_text="The same of a language model's answers."
    )
    llm_cached = serializers.IntegerField(allow_null=True, min_value=0, help_text="How many of these were kept ones.")
    fallback_used = serializers.BooleanField(
        allow_null=True,
        help_text="Whether a language model named nothing that it was offered, so that the nearest were gone on with.",
    )
    error = serializers.CharField(allow_null=True, help_text="Why there is no ranking, where the query failed.")
    metrics_flat = flat_metrics()


class AnswerPage(Page):
    """A page of what a run answered, in the order of the queries' ids."""

    run_id = serializers.UUIDField()
    primary_k = serializers.IntegerField(min_value=1)
    results = AnswerFacts(many=True)
