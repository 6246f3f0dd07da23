"""Results of a benchmark and of a run, and the rankings of its queries."""

from dataclasses import dataclass, replace
from typing import Annotated, Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from apps.api.answers import Answer, Moment, Page, answer_page
from apps.api.fields import PageQuery, StrictSerializer, Validated, VersionNumber
from apps.api.resource import Resource, find_visible, get
from apps.records.lists.reading import require_rankings
from apps.records.models import Benchmark, Evaluation, Run
from apps.results.exporters.results_json import (
    QueryOutcome,
    RunResult,
    build_results,
    load_query_outcomes,
    load_run_result,
)
from apps.results.exporters.results_json import Results as Outcome
from apps.results.exporting import load_version
from apps.results.triage.queries import require_values
from apps.results.triage.sections import ContentMean, SectionMeans, load_content, load_section_means
from apps.verdicts.coverage import CoverageRow, load_coverage
from apps.verdicts.ranked_runs import WEIGHTING
from benchbench.ir.measures import Measure

MEAN = {"type": ["number", "null"]}
AT_CUTOFFS = {"type": "object", "additionalProperties": MEAN, "description": 'By cutoff, as in {"10": 0.4}.'}


class VersionQuery(StrictSerializer):
    """The version of the dataset that runs are measured on."""

    version = VersionNumber(help_text="Number of the version. Default: the benchmark's own.")


class RunQueryQuery(PageQuery, VersionQuery):
    """Query parameters for listing the rankings of a run."""


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
    """Means by family of measures."""

    def to_representation(self, value: object) -> Any:
        return value


class RunAnswer(Answer):
    """A run with its means."""

    metrics = MetricsField()

    class Meta:
        dataclass = RunResult


class ResultsAnswer(Answer):
    """The results of a benchmark: its runs in order, and a summary."""

    runs = RunAnswer(many=True)

    class Meta:
        dataclass = Outcome


class WholeRunAnswer(RunAnswer):
    """A run with its means and provenance."""

    benchmark_id = serializers.UUIDField()
    is_external = serializers.BooleanField(help_text="Whether its rankings were made elsewhere.")
    index_id = serializers.UUIDField(allow_null=True)
    embed_calls = serializers.IntegerField()
    llm_calls = serializers.IntegerField()
    started_at = Moment(allow_null=True)
    completed_at = Moment(allow_null=True)
    provenance = serializers.DictField(help_text="Data, index, models, code and machines; empty before the run ended.")


class AnswerPage(Page):
    """A page of the rankings of a run, in the order of the queries' ids."""

    run_id = serializers.UUIDField()
    primary_k = serializers.IntegerField()
    results = Answer(dataclass=QueryOutcome, many=True)


@dataclass(frozen=True)
class MeasuredRun:
    """A run on one version of its dataset."""

    run_id: UUID
    dataset_version: int


@dataclass(frozen=True)
class CoverageAnswer(MeasuredRun):
    """Shares of judged documents in a run."""

    weighting: Annotated[str, WEIGHTING]
    measures: list[CoverageRow]


@dataclass(frozen=True)
class SectionMeansAnswer(SectionMeans, MeasuredRun):
    """Means of a run over judgments that name sections, for documents and sections; each judgment counts alike."""


@dataclass(frozen=True)
class ContentAnswer(MeasuredRun):
    """Coverage of the evidence and answers of queries by the first chunks of a run; each query counts alike."""

    k: Annotated[int, "Chunks that are looked at."]
    queries: Annotated[int, "That state evidence or an answer and were answered."]
    unanswered: Annotated[int, "That state some, and failed or were not asked."]
    means: list[ContentMean]


class Results(Resource):
    model = Benchmark
    route = "benchmarks"

    @get("/<id:benchmark_id>/results", ResultsAnswer, VersionQuery)
    def get_results(self, benchmark: Benchmark, query: Validated) -> Outcome:
        """Show the runs of a benchmark in order, with their final means, at any status."""
        return build_results(benchmark, version=load_version(benchmark, query.get("version")))

    def rows(self) -> QuerySet[Benchmark]:
        return Benchmark.objects.select_related("dataset_version")


class BenchmarkRuns(Resource):
    """The runs of a benchmark."""

    model = Run
    route = "benchmarks/<id:benchmark_id>/runs/<id:run_id>"

    @get("", WholeRunAnswer, VersionQuery)
    def get_run(self, run: Run, query: Validated) -> dict[str, object]:
        """Show a run with its means and provenance."""
        run_fields = {name: getattr(run, name) for name in set(WholeRunAnswer().fields) if hasattr(run, name)}
        return run_fields | vars(load_run_result(run, version=load_version(run, query.get("version"))))

    @get("/queries", AnswerPage, RunQueryQuery)
    def list_run_queries(self, run: Run, query: Validated) -> Response:
        """List the rankings of a run for the queries searched so far."""
        version = load_version(run, query.get("version"))
        require_rankings(run.benchmark)
        rows = run.query_results.order_by("query_id").values_list("query_id", flat=True).distinct()
        return answer_page(
            AnswerPage,
            rows,
            query,
            prepare=lambda query_ids: load_query_outcomes(run, list(query_ids), version=version),
            run_id=run.pk,
            primary_k=run.benchmark.primary_k,
        )

    def find(self, benchmark_id: UUID, run_id: UUID) -> Run:
        rows = Run.objects.filter(benchmark=benchmark_id).select_related("benchmark__dataset_version", "index")
        return find_visible(rows, run_id, self.user, through="benchmark")


class RunResource(Resource):
    """Reports on a measured run; 409 for one without values."""

    model = Run
    route = "runs/<id:run_id>"
    through = "benchmark"

    def rows(self) -> QuerySet[Run]:
        return Run.objects.select_related(
            "index",
            "benchmark__mapping__collection",
            "benchmark__mapping__dataset_version",
            "benchmark__dataset_version__dataset",
        )


class RunMeasures(RunResource):
    @get("/coverage", CoverageAnswer, VersionQuery, refuses=[409])
    def get_run_coverage(self, run: Run, query: Validated) -> CoverageAnswer:
        """Show the shares of judged documents in a run."""
        evaluation = require_values(run, **query)
        rows = [replace(row, name=Measure.parse(row.name).wire) for row in load_coverage(evaluation)]
        return CoverageAnswer(*get_run_version(evaluation), evaluation.weighting, rows)

    @get("/sections", SectionMeansAnswer, VersionQuery, refuses=[409])
    def get_run_sections(self, run: Run, query: Validated) -> SectionMeansAnswer:
        """Show the means of a run for the sections that judgments name."""
        evaluation = require_values(run, **query)
        return SectionMeansAnswer(*get_run_version(evaluation), **vars(load_section_means(evaluation)))

    @get("/content", ContentAnswer, VersionQuery, refuses=[409])
    def get_run_content(self, run: Run, query: Validated) -> ContentAnswer:
        """Show how far the first chunks of a run cover the evidence and answers of queries."""
        evaluation = require_values(run, **query)
        content = load_content(evaluation)
        counts = content.k, len(content.queries), content.unanswered
        return ContentAnswer(*get_run_version(evaluation), *counts, content.means)


def get_run_version(evaluation: Evaluation) -> tuple[UUID, int]:
    return evaluation.run_id, evaluation.dataset_version.number
