"""Benchmarks: matrices of configurations, their runs, and the values of those."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.lookups import GreaterThanOrEqual

from apps.collections.models import Collection
from apps.datasets.models import Dataset, DatasetVersion, Query
from apps.mappings.models import Mapping
from apps.operations.models import Batch, Operation, Status
from apps.retrieval.models import ChunkSet, Index
from benchbench.ir.losses import MOST_LOST_PERCENT, why_unranked
from benchbench.models import OwnedModel, PublicModel


class Benchmark(OwnedModel):
    """A mapping, a configuration matrix and the measures."""

    made_by = "run_benchmark"

    class Execution(models.TextChoices):
        SHARED = "shared"
        ISOLATED = "isolated"

    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    mapping = models.ForeignKey(Mapping, on_delete=models.PROTECT, related_name="benchmarks")
    dataset_version = models.ForeignKey(DatasetVersion, on_delete=models.PROTECT, related_name="benchmarks")
    matrix = models.JSONField(help_text="The configuration matrix as validated.")
    measures = ArrayField(models.CharField(max_length=100), default=list)
    primary_k = models.PositiveIntegerField(default=10)
    k_values = ArrayField(models.PositiveIntegerField(), default=list)
    execution = models.CharField(max_length=10, choices=Execution, default=Execution.SHARED)
    runs_per_query = models.PositiveSmallIntegerField(default=1)
    seed = models.BigIntegerField(default=42)
    unresolved = models.CharField(max_length=10, default="count", choices=[("count", "count"), ("drop", "drop")])
    empty_queries = models.CharField(max_length=10, default="zero", choices=[("zero", "zero"), ("skip", "skip")])
    reranker_revisions = models.JSONField(
        default=dict,
        blank=True,
        editable=False,
        help_text="The revision of each reranker's model that its first worker had: the others need the same.",
    )
    allow_missing = models.BooleanField(
        default=False, help_text="Of module queries: it was made although the collection lacks modules."
    )
    manifest = models.JSONField(default=dict, blank=True, editable=False)
    experiment = models.JSONField(
        default=dict,
        blank=True,
        editable=False,
        help_text="What it was made from by an experiment file: its id, and its config, the file with every default.",
    )
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING, editable=False)
    operation = models.ForeignKey(
        Operation, null=True, blank=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )
    total_runs = models.PositiveIntegerField(default=0, editable=False)
    started_at = models.DateTimeField(null=True, blank=True, editable=False)
    completed_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta(OwnedModel.Meta):
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["-created_at"], name="benchmark_created")]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=Status.values), name="benchmark_status"),
            models.CheckConstraint(condition=Q(execution__in=["shared", "isolated"]), name="benchmark_execution"),
            models.CheckConstraint(condition=Q(unresolved__in=["count", "drop"]), name="benchmark_unresolved"),
            models.CheckConstraint(condition=Q(empty_queries__in=["zero", "skip"]), name="benchmark_empty_queries"),
            models.CheckConstraint(condition=Q(runs_per_query__gte=1), name="benchmark_runs_per_query"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def status_word(self) -> str:
        """What pages call the status: a benchmark that was started is queued until a worker took it up."""
        queued = self.status == Status.RUNNING and self.operation and self.operation.status == Status.PENDING
        return "queued" if queued else self.status

    @property
    def is_external(self) -> bool:
        """Whether its runs are rankings that were made elsewhere: nothing of it can be searched again."""
        return self.mapping.collection.kind == Collection.Kind.EXTERNAL


class Run(PublicModel):
    """One configuration over all queries, or an external run: rankings from a file."""

    class Status(models.TextChoices):
        PENDING = "pending"
        INDEXING = "indexing"
        EVALUATING = "evaluating"
        COMPLETED = "completed"
        FAILED = "failed"
        CANCELLED = "cancelled"

    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="runs")
    run_order = models.PositiveIntegerField(help_text="From 1.")
    label = models.CharField(max_length=300)
    is_external = models.BooleanField(default=False)
    config = models.JSONField(default=dict)
    config_hash = models.CharField(max_length=64)
    index = models.ForeignKey(Index, null=True, blank=True, on_delete=models.PROTECT, related_name="runs")
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING)
    error_message = models.TextField(blank=True)
    warnings = models.JSONField(default=list, blank=True)
    timing = models.JSONField(default=dict, blank=True)
    embed_calls = models.PositiveIntegerField(default=0)
    llm_calls = models.PositiveIntegerField(default=0)
    provenance = models.JSONField(default=dict, blank=True)
    failed_queries = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["benchmark", "run_order"]
        constraints = [
            models.UniqueConstraint(fields=["benchmark", "run_order"], name="run_order"),
            models.UniqueConstraint(fields=["benchmark", "config_hash"], name="run_config"),
            models.CheckConstraint(
                condition=Q(status__in=["pending", "indexing", "evaluating", "completed", "failed", "cancelled"]),
                name="run_status",
            ),
        ]

    def __str__(self) -> str:
        return self.label


class StageList(models.Model):
    """The list of one distinct stage for one query; many runs may read it."""

    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="stage_lists")
    stage_key = models.CharField(max_length=1000)
    query = models.ForeignKey(Query, on_delete=models.CASCADE, related_name="+")
    chunk_ids = ArrayField(models.BigIntegerField())
    scores = ArrayField(models.FloatField())
    threshold_scores = ArrayField(
        models.FloatField(), null=True, help_text="What thresholds compare, where that is not what orders."
    )
    duration_ms = models.FloatField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["benchmark", "stage_key", "query"], name="stage_list_once")]

    def __str__(self) -> str:
        return self.stage_key


class PairList(models.Model):
    """What a reranker scored of one query's pairs at once. A pair is in one list: none is scored twice."""

    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="pair_lists")
    reranker = models.CharField(max_length=500)
    revision = models.CharField(max_length=1000)
    chunk_set = models.ForeignKey(ChunkSet, on_delete=models.CASCADE, related_name="+")
    query = models.ForeignKey(Query, on_delete=models.CASCADE, related_name="+")
    positions = ArrayField(models.BigIntegerField(), help_text="Of the chunks in their set.")
    scores = ArrayField(models.FloatField(), help_text="What orders, raw.")
    threshold_scores = ArrayField(models.FloatField(), help_text="What thresholds compare, raw.")
    duration_ms = models.FloatField()

    class Meta:
        indexes = [models.Index(fields=["benchmark", "query"], name="pair_list_query")]

    def __str__(self) -> str:
        return f"{len(self.positions)} pairs by {self.reranker}"


class QueryResult(models.Model):
    """One ranking of one run: documents best first, each with the chunk that brought it and its score."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="query_results")
    query = models.ForeignKey(Query, on_delete=models.PROTECT, related_name="results")
    repetition = models.PositiveSmallIntegerField(default=1)
    document_ids = ArrayField(models.BigIntegerField())
    chunk_ids = ArrayField(models.BigIntegerField(), help_text="Empty for external runs.")
    scores = ArrayField(models.FloatField())
    encode_ms = models.FloatField(null=True)
    search_ms = models.FloatField(null=True)
    fuse_ms = models.FloatField(null=True)
    rerank_ms = models.FloatField(null=True)
    total_ms = models.FloatField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["run", "query", "repetition"]
        constraints = [
            models.UniqueConstraint(fields=["run", "query", "repetition"], name="query_result_once"),
            models.CheckConstraint(condition=Q(repetition__gte=1), name="query_result_repetition"),
            models.CheckConstraint(condition=Q(document_ids__len=models.F("scores__len")), name="query_result_lengths"),
        ]

    def __str__(self) -> str:
        return f"{self.run} / {self.query}"


class BatchValues(models.Model):
    """The values of a batch's rankings of one run, by query, until the run ends and its evaluation has them."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="batch_values")
    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="+")
    measures = ArrayField(models.CharField(max_length=100))
    query_ids = ArrayField(models.BigIntegerField(), help_text="Those that have values.")
    failed_query_ids = ArrayField(models.BigIntegerField())
    values = models.BinaryField(help_text="Per measure, per query: float64, the lowest byte first; NaN: no value.")
    truth_hash = models.CharField(max_length=64, help_text="Of the grades of these queries that they rest on.")
    rankings_hash = models.CharField(max_length=64, help_text="Of the run's rankings, where the batch made them all.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "batch"], name="batch_values_once")]

    def __str__(self) -> str:
        return f"{self.run} in {self.batch}"


class Evaluation(models.Model):
    """A run measured against one dataset version under stated policies."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="evaluations")
    dataset_version = models.ForeignKey(DatasetVersion, on_delete=models.PROTECT, related_name="evaluations")
    policies = models.JSONField(help_text="unresolved, empty_queries.")
    policies_hash = models.CharField(max_length=64)
    means = models.JSONField(help_text="Measure name to mean over the queries that count.")
    measures = ArrayField(models.CharField(max_length=100))
    query_ids = ArrayField(models.BigIntegerField())
    values = ArrayField(ArrayField(models.FloatField(null=True)), help_text="Per measure, per query; null: failed.")
    query_count = models.PositiveIntegerField(help_text="Queries in the means.")
    failed_queries = models.PositiveIntegerField(default=0)
    unsearched_queries = models.PositiveIntegerField(default=0, help_text="Queries of the version not asked so far.")
    truth_hash = models.CharField(max_length=64, blank=True, help_text="Of the grades it was measured against.")
    unresolved_count = models.PositiveIntegerField(default=0)
    unresolved_share = models.FloatField(default=0, help_text="Share of the ideal gain that unresolved judgments hold.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(fields=["run", "dataset_version", "policies_hash"], name="evaluation_once"),
        ]

    def __str__(self) -> str:
        return f"{self.run} on {self.dataset_version}"

    @property
    def unranked(self) -> str:
        """Why these means rank, win and pass nothing, in a sentence: too many queries were lost; "" where few were."""
        return why_unranked(counted=self.query_count, failed=self.failed_queries, unsearched=self.unsearched_queries)

    @classmethod
    def ranked(cls) -> Q:
        """Return which evaluations are not `unranked`, for the database."""
        lost = F("failed_queries") + F("unsearched_queries")
        return Q(GreaterThanOrEqual((F("query_count") + lost) * MOST_LOST_PERCENT, lost * 100))


class Baseline(PublicModel):
    """An approved run of a dataset, against which others are held."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="baselines")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="baselines")
    name = models.CharField(max_length=200, default="baseline")
    reason = models.TextField()
    approved_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    retired_at = models.DateTimeField(null=True, blank=True)
    retired_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["dataset", "name"], condition=Q(retired_at__isnull=True), name="baseline_one_current"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.run}"
