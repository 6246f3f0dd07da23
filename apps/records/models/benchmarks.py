"""Benchmarks, their runs, and baselines."""

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Model, Q
from django.utils.functional import cached_property

from apps.collections.models import Collection, CollectionState
from apps.datasets.models import Dataset, DatasetVersion
from apps.mappings.models import Mapping
from apps.operations.models import Operation, Status
from apps.records.models.lists import ListSource
from apps.records.models.provenance import Provenance
from apps.records.models.timing import Timing
from apps.retrieval.models import Index
from benchbench.decimals import counted
from benchbench.ir.demand import name_means
from benchbench.ir.planning.configuration import Configuration
from benchbench.models import NamedModel, OwnedModel, PublicModel, TaggedModel


class Benchmark(TaggedModel, OwnedModel):
    """A mapping, a configuration matrix and the measures."""

    made_by = "run_benchmark"

    class Execution(models.TextChoices):
        SHARED = "shared"
        ISOLATED = "isolated"

    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    mapping = models.ForeignKey(Mapping, on_delete=models.PROTECT, related_name="benchmarks")
    dataset_version = models.ForeignKey(DatasetVersion, on_delete=models.PROTECT, related_name="benchmarks")
    state = models.PositiveIntegerField(
        null=True,
        blank=True,
        editable=False,
        help_text="Number of the state of the collection that it searched. Empty before its launch.",
    )
    matrix = models.JSONField(help_text="The configuration matrix as validated.")
    measures = ArrayField(models.CharField(max_length=100), default=list)
    primary_k = models.PositiveIntegerField(default=10)
    k_values = ArrayField(models.PositiveIntegerField(), default=list)
    execution = models.CharField(max_length=10, choices=Execution, default=Execution.SHARED)
    runs_per_query = models.PositiveSmallIntegerField(default=1)
    seed = models.BigIntegerField(default=42)
    unresolved = models.CharField(max_length=10, default="count", choices=[("count", "count"), ("drop", "drop")])
    empty_queries = models.CharField(max_length=10, default="zero", choices=[("zero", "zero"), ("skip", "skip")])
    weighting = models.CharField(
        max_length=10,
        default="equal",
        db_default="equal",
        choices=[("equal", "equal"), ("demand", "demand")],
        help_text="Whether a mean counts every query alike, or by its weight.",
    )
    exclude_self = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Lists leave out the document whose id is the query's key, before they are cut.",
    )
    identical_texts = models.CharField(
        max_length=10,
        default="different",
        db_default="different",
        choices=[("different", "different"), ("judged", "judged")],
        help_text="Whether a document with the text of a judged one has its grade.",
    )
    allow_missing = models.BooleanField(
        default=False, help_text="Created although the collection lacks modules that module queries expect."
    )
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING, editable=False)
    operation = models.ForeignKey(
        Operation, null=True, blank=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )
    total_runs = models.PositiveIntegerField(default=0, editable=False)
    started_at = models.DateTimeField(null=True, blank=True, editable=False)
    completed_at = models.DateTimeField(null=True, blank=True, editable=False)
    rankings_deleted_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Since then it has values, but no rankings."
    )

    class Meta(OwnedModel.Meta):
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["-created_at"], name="benchmark_created")]  # lists, newest first
        constraints = [
            models.CheckConstraint(condition=Q(status__in=Status.values), name="benchmark_status"),
            models.CheckConstraint(condition=Q(execution__in=["shared", "isolated"]), name="benchmark_execution"),
            models.CheckConstraint(condition=Q(unresolved__in=["count", "drop"]), name="benchmark_unresolved"),
            models.CheckConstraint(condition=Q(empty_queries__in=["zero", "skip"]), name="benchmark_empty_queries"),
            models.CheckConstraint(condition=Q(weighting__in=["equal", "demand"]), name="benchmark_weighting"),
            models.CheckConstraint(
                condition=Q(identical_texts__in=["different", "judged"]), name="benchmark_identical_texts"
            ),
            models.CheckConstraint(condition=Q(runs_per_query__gte=1), name="benchmark_runs_per_query"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def status_word(self) -> str:
        """Return the status for pages: a started benchmark is "queued" until a worker begins it."""
        queued = self.status == Status.RUNNING and self.operation and self.operation.status == Status.PENDING
        return "queued" if queued else self.status

    @cached_property
    def searched(self) -> CollectionState | None:
        """Return the state of the collection that it searched; None if none is recorded, as of external runs."""
        if self.state is None:
            return None
        return CollectionState.objects.filter(collection=self.mapping.collection_id, number=self.state).first()

    @property
    def document_count(self) -> int:
        """Return the number of documents of the collection that was searched."""
        return self.searched.document_count if self.searched else self.mapping.collection.document_count

    @property
    def collection_note(self) -> str:
        """Return a sentence if the documents of the collection have changed since they were searched, else ""."""
        collection = self.mapping.collection
        if self.searched is None or self.searched.fingerprint == collection.fingerprint:
            return ""
        return f"It has changed since, and has {counted(collection.document_count, 'document')} now."

    @property
    def means_name(self) -> str:
        """Return the name of its kind of mean: "weighted by demand", or "" for plain means."""
        return name_means(self.weighting)

    @property
    def identity_note(self) -> str:
        """Return its policies for the documents of queries and for identical texts, or "" for the usual ones."""
        excluded = "each query's document excluded" if self.exclude_self else ""
        alike = "identical texts judged alike" if self.identical_texts == "judged" else ""
        return ", ".join(filter(None, (excluded, alike)))

    @property
    def is_external(self) -> bool:
        """Return whether its runs were made elsewhere, so that it cannot search again."""
        return self.mapping.collection.kind == Collection.Kind.EXTERNAL and not self.matrix

    @property
    def rankings_note(self) -> str:
        """Return a sentence if its rankings were deleted, and how to get them again, else ""."""
        if self.rankings_deleted_at is None:
            return ""
        again = "import its files into a new benchmark" if self.is_external else "clone it and start the clone"
        return (
            f'The rankings of "{self}" were deleted on {self.rankings_deleted_at:%Y-%m-%d} to free disk space; its '
            f"values are kept. To get rankings again, {again}."
        )

    @property
    def manifest(self) -> dict[str, Any]:
        """Return the experiment file of the past benchmark that this one runs again, or {}."""
        return self.origin.manifest if hasattr(self, "origin") else {}

    @property
    def experiment(self) -> dict[str, Any]:
        """Return the `id` and the `config` of the experiment that it was made from, or {}."""
        return self.origin.experiment if hasattr(self, "origin") else {}


class Origin(models.Model):
    """The experiment file that a benchmark was made from."""

    benchmark = models.OneToOneField(Benchmark, on_delete=models.CASCADE, primary_key=True, related_name="origin")
    manifest = models.JSONField(
        default=dict, help_text="Experiment file of an earlier benchmark, whose values are compared."
    )
    experiment = models.JSONField(default=dict, help_text="The id, and the config with all defaults filled in.")

    def __str__(self) -> str:
        return f"the experiment file of {self.benchmark}"


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
    run_order = models.PositiveIntegerField(help_text="Starts at 1.")
    label = models.TextField()
    is_external = models.BooleanField(default=False)
    config = models.JSONField(default=dict)
    config_hash = models.CharField(max_length=64)
    index = models.ForeignKey(Index, null=True, blank=True, on_delete=models.PROTECT, related_name="runs")
    source = models.ForeignKey(
        ListSource,
        null=True,
        editable=False,
        on_delete=models.RESTRICT,
        related_name="runs",
        help_text="Source of its lists.",
    )
    place = models.PositiveSmallIntegerField(
        default=1, editable=False, help_text="Position among the runs that read the same lists, from 1."
    )
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING)
    error_message = models.TextField(blank=True)
    traceback = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Set if the run was refused when the benchmark was created.",
    )
    warnings = models.JSONField(default=list, blank=True)
    timing = models.JSONField(default=dict, blank=True)
    embed_calls = models.PositiveIntegerField(default=0)
    llm_calls = models.PositiveIntegerField(default=0)
    provenance = models.JSONField(default=dict, blank=True)
    failed_queries = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["benchmark_id", "run_order"]
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

    @cached_property
    def configuration(self) -> Configuration:
        """Its configuration; that of an external run is unknown, and has every field at its default."""
        return Configuration.from_dict(self.config)

    @cached_property
    def times(self) -> Timing:
        return Timing.from_dict(self.timing)

    @cached_property
    def lineage(self) -> Provenance:
        return Provenance.from_dict(self.provenance)


class Baseline(NamedModel, PublicModel):
    """An approved run of a dataset that other runs are compared with."""

    name_scope = ("dataset",)
    owned_by = "run__benchmark"
    irreplaceable = True  # a person names what it is deleted with

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

    @classmethod
    def list_rivals(cls, **scope: object) -> models.QuerySet[Model]:
        return super().list_rivals(**scope).filter(retired_at=None)
