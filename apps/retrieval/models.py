"""Models of indexes, chunks, and caches of answers and vectors."""

from dataclasses import dataclass, field
from typing import Any

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from apps.collections.models import Collection, Document, Section
from apps.operations.models import Operation, Status
from benchbench.models import NamedModel, OwnedModel, PublicModel


class ChunkSet(PublicModel):
    """The chunks of one state of a collection, shared by indexes with equal chunking."""

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="chunk_sets")
    collection_fingerprint = models.CharField(max_length=64)
    strategy = models.CharField(max_length=50)
    parameters = models.JSONField(default=dict)
    fingerprint = models.CharField(
        max_length=64, unique=True, help_text="SHA-256 over collection, its fingerprint, strategy and parameters."
    )
    chunk_count = models.PositiveIntegerField(default=0, help_text="Chunks of level 0, at positions from 0.")
    summary_count = models.PositiveIntegerField(
        default=0, help_text="Summaries of higher levels, at the positions after the chunks."
    )
    completed_at = models.DateTimeField(null=True, blank=True)
    build_seconds = models.FloatField(
        default=0, db_default=0.0, editable=False, help_text="Time to split and summarise."
    )

    def __str__(self) -> str:
        return f"{self.strategy} chunks of {self.collection}"

    @property
    def vector_count(self) -> int:
        """Return the number of positions. Each has a vector in an index with an encoder."""
        return self.chunk_count + self.summary_count

    @property
    def leaves(self) -> "models.QuerySet[Chunk]":
        """Return the chunks that searches return, without the summaries above them."""
        return self.chunks.filter(level=0)


class Chunk(models.Model):
    """The unit of indexing. A summary (level > 0) belongs to the documents of the leaves below it."""

    # No index of its own: with it, PostgreSQL reads a whole set that it has no statistics of to find some positions.
    chunk_set = models.ForeignKey(ChunkSet, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    document = models.ForeignKey(Document, null=True, blank=True, on_delete=models.RESTRICT, related_name="chunks")
    section = models.ForeignKey(Section, null=True, blank=True, on_delete=models.SET_NULL, related_name="chunks")
    children = models.ManyToManyField("self", symmetrical=False, related_name="parents", blank=True)
    level = models.PositiveSmallIntegerField(default=0)
    ordinal = models.PositiveIntegerField(help_text="Place in its document, from 0.")
    position = models.PositiveIntegerField(
        help_text="Row in the set's vectors. Ascending position is the tie order: level, external_id, then ordinal."
    )
    text = models.TextField()
    text_hash = models.CharField(max_length=64, help_text="SHA-256 of the encoded text.")
    start = models.PositiveIntegerField(default=0)
    end = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["chunk_set_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["chunk_set", "position"], name="chunk_position"),
            models.CheckConstraint(
                condition=Q(level__gt=0) | Q(document__isnull=False), name="chunk_leaf_has_document"
            ),
        ]

    def __str__(self) -> str:
        return f"chunk {self.position}"


class LexicalIndex(PublicModel):
    """The inverted index of a chunk set, stored in pieces so that any worker on any machine can load it."""

    chunk_set = models.ForeignKey(ChunkSet, on_delete=models.CASCADE, related_name="lexical_indexes")
    engine = models.CharField(max_length=16, default="bm25")
    parameters = models.JSONField(default=dict)
    fingerprint = models.CharField(max_length=64, unique=True, help_text="SHA-256 over chunk set, engine, parameters.")
    size_bytes = models.PositiveBigIntegerField(default=0)
    completed_at = models.DateTimeField(null=True, blank=True)
    build_seconds = models.FloatField(default=0, db_default=0.0, editable=False, help_text="Time to build it.")

    class Meta:
        verbose_name_plural = "lexical indexes"

    def __str__(self) -> str:
        return f"{self.engine} of {self.chunk_set}"


class LexicalPiece(models.Model):
    """At most 8 MiB of a serialised lexical index."""

    lexical_index = models.ForeignKey(LexicalIndex, on_delete=models.CASCADE, related_name="pieces")
    ordinal = models.PositiveIntegerField()
    data = models.BinaryField()
    sha256 = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["lexical_index", "ordinal"], name="lexical_piece_ordinal")]

    def __str__(self) -> str:
        return f"piece {self.ordinal}"


class Index(NamedModel, OwnedModel):
    """One way to make a collection searchable. Immutable once ready; a rebuild is a new version.

    Its vectors are in a separate table (`vector_table`), created and dropped by `search.vectors`.
    """

    made_by = "build_index"
    name_scope = ("collection",)

    class Status(models.TextChoices):
        PENDING = "pending"
        INDEXING = "indexing"
        READY = "ready"
        FAILED = "failed"
        CANCELLED = "cancelled"

    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="indexes")
    name = models.CharField(max_length=200)
    version = models.PositiveIntegerField(default=1, validators=[MinValueValidator(1)])
    strategy = models.CharField(max_length=50, default="flat")
    chunk_parameters = models.JSONField(
        default=dict,
        blank=True,
        help_text='Parameters of the strategy and its search, sizes in characters: {"size": 500, "overlap": 50}.',
    )
    encoder = models.CharField(
        max_length=500,
        blank=True,
        help_text="Name or local path of the model. Empty: no vectors, or imported vectors of an unnamed model.",
    )
    encoder_revision = models.CharField(max_length=200, blank=True, editable=False)
    dimension = models.PositiveIntegerField(null=True, blank=True, editable=False)
    vector_source = models.CharField(
        max_length=100,
        blank=True,
        editable=False,
        help_text="SHA-256 of the imported file. Empty: encoded here.",
    )
    lexical = models.BooleanField(default=True, help_text="Also build a BM25 index.")
    llm = models.CharField(max_length=500, blank=True)
    llm_parameters = models.JSONField(default=dict, blank=True)
    chunk_set = models.ForeignKey(ChunkSet, null=True, blank=True, editable=False, on_delete=models.PROTECT)
    lexical_index = models.ForeignKey(LexicalIndex, null=True, blank=True, editable=False, on_delete=models.PROTECT)
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING, editable=False)
    fingerprint = models.CharField(max_length=64, blank=True, editable=False)
    stats = models.JSONField(default=dict, blank=True, editable=False)
    error = models.TextField(blank=True, editable=False)
    ready_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta(OwnedModel.Meta):
        ordering = ["name", "-version", "collection_id"]
        verbose_name_plural = "indexes"
        constraints = [
            models.UniqueConstraint(fields=["collection", "name", "version"], name="index_version"),
            models.CheckConstraint(
                condition=Q(status__in=["pending", "indexing", "ready", "failed", "cancelled"]), name="index_status"
            ),
            models.CheckConstraint(
                condition=~Q(status="ready") | (Q(chunk_set__isnull=False) & ~Q(fingerprint="")), name="index_ready"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}" if self.version > 1 else self.name

    @property
    def status_word(self) -> str:
        """Return the status as shown on pages: "queued" until a worker claims a batch."""
        queued = (
            self.status == self.Status.INDEXING
            and not Operation.objects.filter(subject_id=self.pk, status=Status.RUNNING).exists()
        )
        return "queued" if queued else self.status

    @property
    def has_vectors(self) -> bool:
        """Return whether the index is searched by vectors."""
        return bool(self.encoder or self.vector_source)

    @property
    def vector_table(self) -> str:
        return f"vectors_{self.id.hex}"


@dataclass(frozen=True)
class Ingredients:
    """The parts of an index, apart from its documents. Without `lexical` it is searched by vectors alone."""

    strategy: str
    chunk_parameters: dict[str, Any]
    encoder: str
    llm: str = ""
    llm_parameters: dict[str, Any] = field(default_factory=dict)
    lexical: bool = False


class LLMAnswer(models.Model):
    """A cached answer of a language model, so that the same request is free and repeatable."""

    key = models.CharField(
        max_length=64,
        unique=True,
        help_text="SHA-256 over server, model, its revision, prompt and parameters.",
    )
    provider = models.CharField(max_length=100, help_text="The name of the server.")
    model = models.CharField(max_length=500)
    revision = models.CharField(max_length=200, blank=True, help_text="Empty: the server reports none.")
    prompt = models.TextField()
    parameters = models.JSONField(help_text="Parameters of the request: temperature, max_tokens, seed.")
    text = models.TextField()
    ms = models.FloatField(help_text="Time of the model's answer.")
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(auto_now_add=True, help_text="Accurate to the day.")

    class Meta:
        # Estimating the time of a model from its latest answers.
        indexes = [models.Index(fields=["provider", "model", "-id"], name="llm_answer_of_model")]

    def __str__(self) -> str:
        return f"answer of {self.model}"


class VectorSpace(models.Model):
    """A space of comparable vectors in the cache: a model, its revision, and the kind of text.

    The kind matters because models may use different prompts for queries and documents.
    """

    class Kind(models.TextChoices):
        QUERY = "query"
        DOCUMENT = "document"

    encoder = models.CharField(max_length=500)
    revision = models.CharField(max_length=200)
    kind = models.CharField(max_length=10, choices=Kind)
    dimension = models.PositiveIntegerField()

    class Meta:
        ordering = ["encoder", "revision", "kind"]
        verbose_name = "vector cache"
        constraints = [
            models.UniqueConstraint(fields=["encoder", "revision", "kind"], name="vector_space_key"),
            models.CheckConstraint(condition=Q(kind__in=["query", "document"]), name="vector_space_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} vectors of {self.encoder}"


class CachedVector(models.Model):
    """A text's vector in a space. Pinned vectors were imported and cannot be computed again."""

    space = models.ForeignKey(VectorSpace, on_delete=models.CASCADE, related_name="vectors")
    text_hash = models.CharField(max_length=64)
    vector = models.BinaryField(help_text="float32, little endian.")
    encode_ms = models.FloatField(null=True, help_text="Time to encode it, if it was encoded here.")
    pinned = models.BooleanField(default=False)
    used_at = models.DateTimeField(auto_now_add=True, help_text="Accurate to the day.")

    class Meta:
        # Evicting the vectors that were not used for the longest time.
        indexes = [models.Index(fields=["space", "used_at"], condition=Q(pinned=False), name="cached_vector_used")]
        constraints = [models.UniqueConstraint(fields=["space", "text_hash"], name="cached_vector_key")]

    def __str__(self) -> str:
        return self.text_hash[:12]
