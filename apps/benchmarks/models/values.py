"""Values of runs: those of one batch's rankings, and evaluations."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.lookups import GreaterThanOrEqual

from apps.benchmarks.models.benchmarks import Run
from apps.datasets.models import DatasetVersion
from apps.operations.models import Batch
from benchbench.ir.losses import MOST_LOST_PERCENT, why_unranked


class BatchValues(models.Model):
    """The values of a batch's rankings of one run, by query, until the run ends and its evaluation has them."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="batch_values")
    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="+")
    measures = ArrayField(models.CharField(max_length=100))
    query_ids = ArrayField(models.BigIntegerField(), help_text="Those that have values.")
    failed_query_ids = ArrayField(models.BigIntegerField())
    values = models.BinaryField(help_text="Per measure, per query: float64, the lowest byte first; NaN: no value.")
    truth_hash = models.CharField(max_length=64, help_text="Of the grades of these queries that they rest on.")

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
