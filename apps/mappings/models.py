"""Tables of mappings and resolutions."""

from django.db import models
from django.db.models import Q

from apps.collections.models import Collection, Document
from apps.datasets.models import Dataset, DatasetVersion, Judgment
from benchbench.models import NamedModel, OwnedModel


class Mapping(NamedModel, OwnedModel):
    """A dataset connected to a collection. Resolving it gives each judgment a document or a reason."""

    made_by = "run_benchmark --queries FILE --collection NAME"
    name_scope = ("owner",)

    class Status(models.TextChoices):
        PENDING = "pending"
        PARTIAL = "partial"
        RESOLVED = "resolved"

    name = models.CharField(max_length=200)
    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="mappings")
    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="mappings")
    dataset_version = models.ForeignKey(
        DatasetVersion,
        null=True,
        blank=True,
        editable=False,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The version whose judgments are counted.",
    )
    collection_fingerprint = models.CharField(max_length=64, blank=True, editable=False)
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING, editable=False)
    counts = models.JSONField(default=dict, blank=True, editable=False, help_text="Judgments by outcome.")
    mapped_count = models.PositiveIntegerField(default=0, editable=False)
    total_count = models.PositiveIntegerField(default=0, editable=False)
    resolved_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta(OwnedModel.Meta):
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "dataset", "collection"], nulls_distinct=False, name="mapping_dataset_collection"
            ),
            models.UniqueConstraint(fields=["owner", "name"], nulls_distinct=False, name="mapping_name"),
            models.CheckConstraint(condition=Q(status__in=["pending", "partial", "resolved"]), name="mapping_status"),
            models.CheckConstraint(condition=Q(mapped_count__lte=models.F("total_count")), name="mapping_counts"),
        ]

    def __str__(self) -> str:
        return self.name


class Resolutions(models.QuerySet["Resolution"]):
    """Outcomes of references; `at` selects those in one state of the collection, which every reader does."""

    def at(self, state: int | None) -> "Resolutions":
        """Return the resolutions among the documents of a searched state of the collection; None: of today."""
        return self.filter(filter_at(state))


def filter_at(state: int | None) -> Q:
    """Return the condition for resolutions among the documents of a searched state of the collection; None: of today.

    The resolution of a collection that never changed holds in every state.
    """
    ended = Q(until=None)
    return ended if state is None else Q(since__lte=state) & (ended | Q(until__gt=state))


class Resolution(models.Model):
    """The outcome of looking up one judgment's reference in one mapping.

    It holds from the collection's state `since` to before `until`: runs that searched an older state are measured by
    the documents of that state.
    """

    class Outcome(models.TextChoices):
        RESOLVED = "resolved"
        AMBIGUOUS = "ambiguous"
        NOT_FOUND = "not_found", "Not found"
        INVALID_REF = "invalid_ref", "Invalid reference"

    mapping = models.ForeignKey(Mapping, on_delete=models.CASCADE, related_name="resolutions")
    judgment = models.ForeignKey(Judgment, on_delete=models.CASCADE, related_name="resolutions")
    document = models.ForeignKey(Document, null=True, blank=True, on_delete=models.PROTECT, related_name="resolutions")
    outcome = models.CharField(max_length=16, choices=Outcome)
    key = models.CharField(max_length=20, blank=True, help_text="The key of the reference that decided.")
    reason = models.TextField(blank=True)
    since = models.PositiveIntegerField(default=0, db_default=0, help_text="Number of the first state it holds in.")
    until = models.PositiveIntegerField(null=True, blank=True, help_text="Empty: it holds today.")

    objects = Resolutions.as_manager()

    class Meta:
        ordering = ["mapping_id", "judgment_id"]
        # Listing and counting the judgments of a mapping by outcome.
        indexes = [models.Index(fields=["mapping", "outcome"], name="resolution_outcome")]
        constraints = [
            models.UniqueConstraint(fields=["mapping", "judgment", "since"], name="resolution_once_in_state"),
            models.CheckConstraint(
                condition=Q(outcome="resolved", document__isnull=False)
                | (Q(outcome__in=["ambiguous", "not_found", "invalid_ref"]) & Q(document__isnull=True)),
                name="resolution_document_iff_resolved",
            ),
        ]

    def __str__(self) -> str:
        return self.outcome

    @property
    def reason_in_words(self) -> str:
        """Return the reason with the key in words: "No document has the document id …"."""
        words = "URI" if self.key == "uri" else self.key.replace("_", " ")
        return self.reason.replace(f"the {self.key} ", f"the {words} ", 1) if self.key else self.reason
