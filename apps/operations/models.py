"""Operations and batches: long work and its resumable parts."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from benchbench.access import AnyUser, visible
from benchbench.models import PERMISSIONS, OwnedModel, PublicModel

# In the payload of a batch: whether its times are exclusive; whether they are not, and it asks no servers.
ALONE, MAY_RUN_TWICE = "alone", "may_run_twice"
PLANNED = "planned_seconds"  # in the parameters of an operation: what the plan takes on one worker
BatchSpec = tuple[dict[str, Any], int]  # payload and units of a batch to add


class Status(models.TextChoices):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @classmethod
    def active(cls) -> tuple["Status", "Status"]:
        return (cls.PENDING, cls.RUNNING)


class Priority(models.TextChoices):
    """The order of operations on a queue, first to last."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class Operation(PublicModel):
    """A long piece of work on one object, split into batches that any worker can claim.

    It stores no owner: it is visible to all users who see its subject. A subject with a new owner takes its operations
    along, including those on open sockets.
    """

    class Kind(models.TextChoices):
        INDEX = "index"
        RESOLVE = "resolve"
        BENCHMARK = "benchmark"
        LLM_JUDGING = "llm_judging", "judging by a model"
        MEASURE = "measure", "measuring again"

    kind = models.CharField(max_length=16, choices=Kind)
    subject_id = models.UUIDField(help_text="The object of the work: an index, a mapping, a benchmark, a round.")
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="User whose quota it counts against. Empty: a command without an owner, or a deleted user.",
    )
    queue = models.CharField(max_length=32, default="default")
    priority = models.CharField(
        max_length=8,
        choices=Priority,
        default=Priority.NORMAL,
        db_default=Priority.NORMAL,
        help_text="Workers take batches of a higher priority first. Scheduled benchmarks have a low one.",
    )
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING)
    parameters = models.JSONField(default=dict, blank=True)
    total_units = models.PositiveBigIntegerField(default=0, help_text="Units of work over all batches.")
    error = models.TextField(blank=True)
    unfit_workers = models.JSONField(
        default=dict,
        blank=True,
        editable=False,
        help_text="Workers that gave back a batch, with the reason; they take no more batches.",
    )
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = PERMISSIONS
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["-created_at"], name="operation_created"),  # lists, newest first
            models.Index(fields=["subject_id", "-created_at"], name="operation_subject"),  # the last one of a subject
        ]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=Status.values), name="operation_status"),
            models.UniqueConstraint(
                fields=["kind", "subject_id"],
                condition=Q(status__in=["pending", "running"]),
                name="operation_one_active_per_subject",
            ),
        ]

    def __str__(self) -> str:
        """Return the kind and, in the rows of `with_subjects`, the name of the subject: "Benchmark: Does it pay?"."""
        return f"{self.get_kind_display()}: {vars(self).get('subject_name') or str(self.id)[:8]}"

    @classmethod
    def active_on(cls, subject: models.Model) -> "Operation | None":
        """Return the pending or running operation on `subject`, or None."""
        return with_subjects(cls.objects.filter(subject_id=subject.pk, status__in=Status.active())).first()

    @classmethod
    def seen_by(cls, user: AnyUser, prefix: str = "") -> Q:
        """Return the filter of operations visible to a user without view_all, for `benchbench.access.visible`.

        The user sees operations on visible subjects and, if the subject is deleted, those that the user started.
        """
        seen = Q(pk__in=[])
        for kind, model in SUBJECTS.items():
            subject = model._default_manager.filter(pk=OuterRef(f"{prefix}subject_id"))
            condition = Q(Exists(visible(subject, user))) | Q(~Exists(subject), **{f"{prefix}started_by": user})
            seen |= Q(condition, **{f"{prefix}kind": kind})
        return seen

    @property
    def subject(self) -> OwnedModel | None:
        """Return the object that the operation works on, or None if it is deleted."""
        return SUBJECTS[self.kind]._default_manager.filter(pk=self.subject_id).first()

    @property
    def is_active(self) -> bool:
        return self.status in Status.active()

    @property
    def planned_seconds(self) -> float | None:
        """Return what all of it takes on one worker by its plan; None without one."""
        return self.parameters.get(PLANNED)

    @property
    def status_word(self) -> str:
        """Return the status as shown on pages: "queued" until a worker claims a batch."""
        return "queued" if self.status == Status.PENDING else self.status


SUBJECTS: dict[str, type[OwnedModel]] = {}  # by kind of operation: what `register_handler` was given


def of_subject(field: str) -> Coalesce:
    """Return an expression for lists of operations: a field of each subject, NULL if it is deleted."""
    subjects = [model._default_manager.filter(pk=OuterRef("subject_id")) for model in dict.fromkeys(SUBJECTS.values())]
    return Coalesce(*(Subquery(rows.values(field)) for rows in subjects))


def with_subjects(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    """Return operations with the name and the owner of each subject: `subject_name`, `owner_name`."""
    return operations.annotate(owner_name=of_subject("owner__username"), subject_name=of_subject("name"))


class Batch(models.Model):
    """A part of an operation that one worker does under a lease, within seconds."""

    class State(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    operation = models.ForeignKey(Operation, on_delete=models.CASCADE, related_name="batches")
    ordinal = models.PositiveIntegerField()
    payload = models.JSONField(default=dict)
    units = models.PositiveBigIntegerField(default=1)
    done_units = models.PositiveBigIntegerField(default=0)
    state = models.CharField(max_length=16, choices=State, default=State.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    lease_owner = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    backup_owner = models.CharField(
        max_length=100,
        db_default="",
        blank=True,
        editable=False,
        help_text="Worker that does the batch too, because it took long.",
    )
    result = models.JSONField(default=dict, blank=True, help_text="The batch's part of the progress.")
    waits_for = models.TextField(blank=True, help_text="Why its worker cannot start yet.")
    hung = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        editable=False,
        help_text="Error of a model that did not answer, by stage and query; without a query for several queries.",
    )
    error = models.TextField(blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["operation_id", "ordinal"]
        verbose_name_plural = "batches"
        indexes = [
            # Sweeping: running batches whose lease has expired.
            models.Index(fields=["lease_until"], condition=Q(state="running"), name="batch_leases"),
            # Claiming and concluding: what is left of an operation.
            models.Index(fields=["operation", "ordinal"], condition=~Q(state="done"), name="batch_left"),
            # Taking turns: when an operation was served last.
            models.Index(fields=["operation", "-started_at"], name="batch_served"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["operation", "ordinal"], name="batch_ordinal"),
            models.CheckConstraint(condition=Q(state__in=["pending", "running", "done", "failed"]), name="batch_state"),
            models.CheckConstraint(
                condition=~Q(state="running") | Q(lease_until__isnull=False), name="batch_running_has_lease"
            ),
        ]

    def __str__(self) -> str:
        return f"batch {self.ordinal}"

    @property
    def is_alone(self) -> bool:
        """Return whether its host does no other work meanwhile."""
        return bool(self.payload.get(ALONE))

    @property
    def may_run_twice(self) -> bool:
        """Return whether a second worker may do it too."""
        return bool(self.payload.get(MAY_RUN_TWICE))
