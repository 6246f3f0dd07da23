"""Results of a benchmark and of a run, and the rankings of its queries."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import Moment
from apps.api.endpoint import Endpoint, find_visible
from apps.api.fields import StrictSerializer, VersionNumber, valid
from apps.api.openapi import refusals
from apps.api.paging import Page, PageQuery, answer_page
from apps.benchmarks.models import Benchmark, Evaluation, Run
from apps.results.exporters.results_json import query_results, results, run_results
from apps.results.exporting import version_of
from apps.results.leaderboard.coverage import coverage_of
from apps.results.triage.content import NAMES, content_of
from apps.results.triage.queries import values_on
from apps.results.triage.sections import section_means
from benchbench.ir.measures import Measure

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


class MeasuredRunFacts(serializers.Serializer):
    """A run on one version of its dataset."""

    run_id = serializers.UUIDField()
    dataset_version = serializers.IntegerField()


class CoverageRowFacts(serializers.Serializer):
    """A mean beside what it rests on; null where there is no such value."""

    name = serializers.CharField(help_text="Of the measure.")
    value = serializers.FloatField(allow_null=True)
    judged = serializers.FloatField(allow_null=True, help_text="Share of what it looks at that is judged.")
    condensed = serializers.FloatField(allow_null=True, help_text="Its value over judged documents alone.")
    least = serializers.FloatField(allow_null=True, help_text="Its value if no unjudged document is relevant.")
    greatest = serializers.FloatField(
        allow_null=True, help_text="Its value if all unjudged documents are as relevant as possible."
    )


class CoverageFacts(MeasuredRunFacts):
    """How far the values of a run rest on judgments."""

    measures = CoverageRowFacts(many=True)


class SectionRowFacts(serializers.Serializer):
    """Means at one cutoff."""

    k = serializers.IntegerField()
    doc_recall = serializers.FloatField(help_text="Share of judgments whose document is in the first k.")
    section_recall = serializers.FloatField(help_text="Share of judgments one of whose sections is in the first k.")
    section_share = serializers.FloatField(help_text="Mean share of a judgment's sections in the first k.")


class SectionMeansFacts(MeasuredRunFacts):
    """How well a run finds documents and sections, over the judgments that name sections."""

    judgments = serializers.IntegerField(
        help_text="Judgments that name sections and whose query was answered; 0: no means."
    )
    rows = SectionRowFacts(many=True)
    doc_mrr = serializers.FloatField(allow_null=True)
    section_mrr = serializers.FloatField(allow_null=True)


class ContentMeanFacts(serializers.Serializer):
    """A mean over the queries that state something to compare with."""

    name = serializers.ChoiceField(list(NAMES))
    mean = serializers.FloatField(allow_null=True)
    queries = serializers.IntegerField()


class ContentFacts(MeasuredRunFacts):
    """What the first chunks of a run hold of the evidence and the answers that queries state."""

    k = serializers.IntegerField(help_text="Chunks that are looked at.")
    queries = serializers.IntegerField(help_text="That state evidence or an answer and were answered.")
    unanswered = serializers.IntegerField(help_text="That state some, and failed or were not asked.")
    means = ContentMeanFacts(many=True)


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
    return values_on(measured_run(request, run_id), **valid(VersionQuery, request.query_params))


def about(evaluation: Evaluation) -> dict[str, Any]:
    return {"run_id": evaluation.run_id, "dataset_version": evaluation.dataset_version.number}


def measured_run(request: Request, run_id: UUID) -> Run:
    related = (
        "benchmark__mapping__collection",
        "benchmark__mapping__dataset_version",
        "benchmark__dataset_version__dataset",
    )
    rows = Run.objects.select_related("index", *related)
    return find_visible(rows, run_id, request.user, through="benchmark")
