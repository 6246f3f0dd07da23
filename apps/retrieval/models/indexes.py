"""Models of indexes and their chunks."""

from dataclasses import dataclass, field
from typing import Any

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from apps.collections.models import Collection, Document, Section
from benchbench.ir.encoding import EncoderParameters
from benchbench.models import NamedModel, OwnedModel, PublicModel

PRECISION = "float32, or mixed: products in bfloat16; or bfloat16 or float16: the weights too."


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
    stats = models.JSONField(
        default=dict, db_default={}, editable=False, help_text="Counts of what it leaves out. Empty: not counted."
    )

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
    query_prompt = models.TextField(  # noqa: DJ001  # an empty prompt is another than that of the model
        null=True, blank=True, help_text="Text before each query. Null: that of the model's configuration."
    )
    document_prompt = models.TextField(  # noqa: DJ001
        null=True, blank=True, help_text="Text before each document. Null: that of the model's configuration."
    )
    precision = models.CharField(max_length=10, default="float32", db_default="float32", help_text=PRECISION)
    encoder_revision = models.CharField(max_length=200, blank=True, editable=False)
    prompts = models.JSONField(
        null=True, blank=True, editable=False, help_text="The prompts that the encoder used. Null: not recorded."
    )
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
    def has_vectors(self) -> bool:
        """Return whether the index is searched by vectors."""
        return bool(self.encoder or self.vector_source)

    @property
    def vector_table(self) -> str:
        return f"vectors_{self.id.hex}"

    def count_parts(self) -> dict[str, int]:
        """Return how many rows a deletion takes by table, without those that refer to it."""
        if self.chunk_set is None:
            return {}
        shared = self.chunk_set.index_set.exclude(pk=self.pk).exists()
        positions = self.chunk_set.vector_count
        return {Chunk._meta.db_table: 0 if shared else positions, self.vector_table: positions}

    @property
    def encoder_parameters(self) -> EncoderParameters:
        return EncoderParameters(self.query_prompt, self.document_prompt, self.precision)


class CutChunk(models.Model):
    """A chunk of which the encoder of an index read only the first characters: the others are beyond its window."""

    index = models.ForeignKey(Index, on_delete=models.CASCADE, related_name="cut_chunks", db_index=False)
    position = models.PositiveIntegerField()
    read = models.PositiveIntegerField(help_text="Characters. 0: the tokenizer reports none.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["index", "position"], name="cut_chunk_once")]

    def __str__(self) -> str:
        return f"chunk {self.position} of {self.index}"


@dataclass(frozen=True)
class Ingredients:
    """The parts of an index, apart from its documents. Without `lexical` it is searched by vectors alone."""

    strategy: str
    chunk_parameters: dict[str, Any]
    encoder: str
    llm: str = ""
    llm_parameters: dict[str, Any] = field(default_factory=dict)
    lexical: bool = False
    query_prompt: str | None = None
    document_prompt: str | None = None
    precision: str = "float32"

    @property
    def encoder_parameters(self) -> EncoderParameters:
        return EncoderParameters(self.query_prompt, self.document_prompt, self.precision)
