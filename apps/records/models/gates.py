"""Stored outcomes of gates."""

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from apps.records.models.benchmarks import Baseline, Run
from benchbench.access import AnyUser, visible
from benchbench.ir.gate import Outcome

DATASET = "run__benchmark__dataset_version__dataset"


class GateOutcomes(models.QuerySet["GateOutcome"]):
    """The outcomes of gates; `latest_failed` selects those that later runs did not mend."""

    def with_baselines(self, user: AnyUser) -> "models.QuerySet[GateOutcome]":
        """Return the outcomes with who asked for them, and with the baseline if `user` may see it, else None."""
        baselines = visible(Baseline.objects.all(), user, through="run__benchmark")
        return self.select_related("by").prefetch_related(models.Prefetch("baseline", baselines))

    def latest_failed(self, user: AnyUser) -> "models.QuerySet[GateOutcome]":
        """Return the failed outcomes that `user` may see, newest first, if the dataset's latest by these rules.

        Later outcomes that cannot be decided do not count.
        """
        later = GateOutcome.objects.exclude(outcome=Outcome.UNDECIDED).filter(
            rules=OuterRef("rules"), created_at__gt=OuterRef("created_at"), **{DATASET: OuterRef(DATASET)}
        )
        failed = visible(self, user, through="run__benchmark").filter(~Exists(later), outcome=Outcome.FAILED)
        return failed.select_related("run__benchmark")


class GateOutcome(models.Model):
    """The outcome of a gate for one run, with the rules and the result of each. Runs judged together have one time."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="gate_outcomes")
    baseline = models.ForeignKey(Baseline, null=True, on_delete=models.SET_NULL, related_name="+")
    rules = models.JSONField(help_text="As in a file of rules.")
    outcome = models.CharField(max_length=9, choices=[(outcome.value, outcome.phrase) for outcome in Outcome])
    checks = models.JSONField(help_text="Per rule: name, required, observed, outcome, note.")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    objects = GateOutcomes.as_manager()
    irreplaceable = True  # a person names what it is deleted with

    class Meta:
        ordering = ["-created_at", "id"]
        default_permissions = ()
        constraints = [
            models.CheckConstraint(condition=Q(outcome__in=["passed", "failed", "undecided"]), name="gate_outcome"),
        ]

    def __str__(self) -> str:
        return f"{self.run}: {self.phrase}"

    @property
    def phrase(self) -> str:
        return Outcome(self.outcome).phrase

    @property
    def missed(self) -> list[dict[str, object]]:
        """Return every check that did not pass, failed ones first."""
        missed = [check for check in self.checks if check["outcome"] != Outcome.PASSED]
        return sorted(missed, key=lambda check: check["outcome"] != Outcome.FAILED)
