"""Datasets: judged queries, independent of any collection."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils.text import Truncator

from benchbench.ir.demand import GREATEST_WEIGHT, LEAST_WEIGHT
from benchbench.models import NamedModel, OwnedModel, PublicModel, TaggedModel


class Dataset(TaggedModel, NamedModel, OwnedModel):
    """Queries and their judgments. Edits gather in a draft; freezing it makes the next numbered version."""

    made_by = "import_dataset"
    name_scope = ("owner",)

    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    schema_version = models.CharField(max_length=20, default="1.0", editable=False)
    source_format = models.CharField(max_length=30, blank=True, editable=False)
    metadata = models.JSONField(default=dict, blank=True)
    slice_definitions = models.JSONField(default=dict, blank=True)

    class Meta(OwnedModel.Meta):
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], nulls_distinct=False, name="dataset_name")]

    def __str__(self) -> str:
        return self.name


class DatasetVersion(PublicModel):
    """One numbered state of a dataset: a draft (at most one), or frozen with the hash of its content."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    label = models.CharField(max_length=50, blank=True, help_text="Version label in the imported file.")
    content_hash = models.CharField(max_length=64, blank=True)
    query_count = models.PositiveIntegerField(default=0)
    judgment_count = models.PositiveIntegerField(default=0)
    frozen_at = models.DateTimeField(null=True, blank=True)
    note = models.TextField(blank=True)

    class Meta:
        ordering = ["dataset_id", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["dataset", "number"], name="dataset_version_number"),
            models.UniqueConstraint(fields=["dataset"], condition=Q(frozen_at__isnull=True), name="dataset_one_draft"),
            models.CheckConstraint(
                condition=Q(frozen_at__isnull=True) | ~Q(content_hash=""), name="dataset_version_frozen_has_hash"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.dataset} v{self.number}" + ("" if self.frozen_at else " (draft)")

    @property
    def queries(self) -> models.QuerySet["Query"]:
        return Query.objects.filter(filter_alive(self.number), dataset_id=self.dataset_id)

    @property
    def judgments(self) -> models.QuerySet["Judgment"]:
        return Judgment.objects.filter(
            filter_alive(self.number), filter_alive(self.number, "query__"), query__dataset_id=self.dataset_id
        )


def filter_alive(number: int, prefix: str = "") -> Q:
    """Return the condition of rows that belong to version `number`: since ≤ number < until."""
    ended = Q(**{f"{prefix}until__isnull": True}) | Q(**{f"{prefix}until__gt": number})
    return Q(**{f"{prefix}since__lte": number}) & ended


class Query(models.Model):
    """An information need as text, with a stable key."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="queries")
    key = models.CharField(max_length=200, db_collation="C")
    text = models.TextField()
    slices = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    category = models.CharField(max_length=100, blank=True)
    difficulty = models.CharField(max_length=100, blank=True)
    query_type = models.CharField(max_length=100, blank=True)
    split = models.CharField(max_length=50, blank=True)
    filters = models.JSONField(default=dict, blank=True, help_text="Document metadata that the search must match.")
    expected_answer = models.TextField(blank=True)
    evidence = models.JSONField(default=list, blank=True)
    notes = models.TextField(blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    weight = models.FloatField(
        default=1.0, db_default=1.0, help_text="The demand that it stands for, such as how often it was asked."
    )
    since = models.PositiveIntegerField(default=1, help_text="First version that has it.")
    until = models.PositiveIntegerField(null=True, blank=True, help_text="First version without it.")

    class Meta:
        ordering = ["dataset_id", "id"]
        verbose_name_plural = "queries"
        constraints = [
            models.UniqueConstraint(fields=["dataset", "key", "since"], name="query_key_since"),
            models.UniqueConstraint(
                fields=["dataset", "key"], condition=Q(until__isnull=True), name="query_key_current"
            ),
            models.CheckConstraint(condition=~Q(key="") & ~Q(text=""), name="query_has_key_and_text"),
            models.CheckConstraint(
                condition=Q(weight__gte=LEAST_WEIGHT, weight__lte=GREATEST_WEIGHT), name="query_weight"
            ),
            models.CheckConstraint(condition=Q(until__isnull=True) | Q(until__gt=F("since")), name="query_since_until"),
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def heading(self) -> str:
        """Return the text, shortened, and the key: the title of pages."""
        text = Truncator(self.text).chars(80)
        return text if self.text == self.key else f"{text} · {self.key}"


class Judgment(models.Model):
    """A grade for (query, document), as stated. The document is a reference until a mapping resolves it."""

    class Source(models.TextChoices):
        HUMAN = "human"
        LLM = "llm", "language model"
        IMPORT = "import"

    query = models.ForeignKey(Query, on_delete=models.CASCADE, related_name="judgments")
    doc_ref = models.JSONField(help_text="Any of document_id, uri, content_hash, path, file_name.")
    ref_hash = models.CharField(max_length=64, editable=False, help_text="SHA-256 of the reference's canonical JSON.")
    section_refs = models.JSONField(null=True, blank=True, help_text="Section ids local to the document.")
    grade = models.SmallIntegerField(help_text="Above 0 is relevant, 0 judged not relevant.")
    source = models.CharField(max_length=10, choices=Source, default=Source.IMPORT)
    judge = models.CharField(max_length=200, blank=True)
    judged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    note = models.TextField(blank=True)
    since = models.PositiveIntegerField(default=1)
    until = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["query_id", "id"]
        constraints = [
            models.UniqueConstraint(fields=["query", "ref_hash", "since"], name="judgment_ref_since"),
            models.UniqueConstraint(
                fields=["query", "ref_hash"], condition=Q(until__isnull=True), name="judgment_ref_current"
            ),
            models.CheckConstraint(condition=Q(source__in=["human", "llm", "import"]), name="judgment_source"),
            models.CheckConstraint(
                condition=Q(until__isnull=True) | Q(until__gt=F("since")), name="judgment_since_until"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reference}: grade {self.grade}"

    @property
    def reference(self) -> str:
        """Return the reference on one line, for people."""
        values = self.doc_ref.values() if isinstance(self.doc_ref, dict) else [self.doc_ref]
        return ", ".join(str(value) for value in values)
