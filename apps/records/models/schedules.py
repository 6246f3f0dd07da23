"""Schedules that repeat a benchmark, the benchmarks that they started, and the notices of their gates."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils.timezone import localtime

from apps.records.models.benchmarks import Benchmark
from benchbench.ir.gate import Outcome
from benchbench.models import OwnedModel


class GateState(models.TextChoices):
    """The last decided outcome of a schedule's gate."""

    UNKNOWN = "", "–"
    GREEN = "green"
    RED = "red"


class Schedule(OwnedModel):
    """A benchmark that is repeated at the times of a cron expression, and held against a gate each time."""

    made_by = "run_benchmark"

    name = models.CharField(max_length=200)
    benchmark = models.ForeignKey(
        Benchmark,
        on_delete=models.PROTECT,
        related_name="schedules",
        help_text="Each repeat clones its matrix, mapping, measures and options.",
    )
    cron = models.CharField(
        max_length=100,
        help_text='Minute, hour, day, month, weekday in the time zone of the site: "0 3 * * 1-5".',
    )
    newest_indexes = models.BooleanField(
        default=True, help_text="Search the newest ready version of each index, not the versions of the benchmark."
    )
    rules = models.TextField(
        blank=True, help_text="Rules of the gate, as in a file of rules. Empty: compare without a gate."
    )
    baseline = models.CharField(
        max_length=200, blank=True, help_text="Name of a baseline of the dataset; the current one of that name is used."
    )
    notify = models.CharField(
        max_length=100, blank=True, help_text="Where to send a notice when the gate turns. Empty: only here."
    )
    enabled = models.BooleanField(default=True)
    next_run = models.DateTimeField(null=True, editable=False, help_text="Empty: disabled.")
    state = models.CharField(
        max_length=5, choices=GateState, default=GateState.UNKNOWN, blank=True, editable=False, help_text="Of the gate."
    )

    class Meta(OwnedModel.Meta):
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=GateState.values), name="schedule_state"),
        ]

    def __str__(self) -> str:
        return self.name


class Repeat(models.Model):
    """A time of a schedule: the benchmark that started then, or the reason why none did; later the result."""

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="repeats")
    due_at = models.DateTimeField()
    benchmark = models.ForeignKey(Benchmark, null=True, on_delete=models.SET_NULL, related_name="repeats")
    problem = models.TextField(blank=True, help_text="Why no benchmark started.")
    ended_at = models.DateTimeField(null=True, help_text="End of the benchmark that the result is of; null: no result.")
    outcome = models.CharField(
        max_length=9, blank=True, choices=[(outcome.value, outcome.phrase) for outcome in Outcome]
    )
    result = models.TextField(blank=True, help_text="The result in a few sentences.")
    turned = models.CharField(max_length=5, choices=GateState, blank=True, help_text="State that the gate turned to.")

    class Meta:
        ordering = ["-due_at", "-pk"]
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(condition=Q(outcome__in=["", *map(str, Outcome)]), name="repeat_outcome"),
            models.CheckConstraint(condition=Q(turned__in=GateState.values), name="repeat_turned"),
        ]

    def __str__(self) -> str:
        return f"{self.schedule} at {localtime(self.due_at):%Y-%m-%d %H:%M %Z}"


class Notice(models.Model):
    """A notice to send: it is stored with the turn of the gate, and sent until its receiver has accepted it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False, help_text="Key of idempotency.")
    repeat = models.ForeignKey(Repeat, on_delete=models.CASCADE, related_name="notices")
    destination = models.CharField(max_length=100)
    payload = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)
    due_at = models.DateTimeField(null=True, help_text="Time of the next attempt; null: delivered, or given up.")
    delivered_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["created_at"]
        default_permissions = ()

    def __str__(self) -> str:
        return f"notice to {self.destination}"

    @property
    def status_text(self) -> str:
        """Return what became of it: delivered, waiting, or given up, with the last error."""
        if self.delivered_at:
            return f"sent to {self.destination}"
        error = f" ({self.error})" if self.error else ""
        return f"{'waits for' if self.due_at else 'given up:'} {self.destination}{error}"
