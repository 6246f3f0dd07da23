"""Collections of documents: what is searched."""

import uuid

from django.db import models
from django.db.models import Q

from benchbench.models import OwnedModel


class Collection(OwnedModel):
    """A named set of documents that is searched."""

    made_by = "import_collection"

    class Kind(models.TextChoices):
        DOCUMENTS = "documents"
        EXTERNAL = "external", "external (ids only, for rankings made elsewhere)"

    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.DOCUMENTS)
    fingerprint = models.CharField(
        max_length=64, blank=True, editable=False, help_text="SHA-256 over the ids and hashes of its documents."
    )
    document_count = models.PositiveIntegerField(default=0, editable=False)
    metadata = models.JSONField(default=dict, blank=True)

    class Meta(OwnedModel.Meta):
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], nulls_distinct=False, name="collection_name"),
            models.CheckConstraint(condition=Q(kind__in=["documents", "external"]), name="collection_kind"),
        ]

    def __str__(self) -> str:
        return self.name


class Document(models.Model):
    """The unit that is judged. Removed by a date, since rankings point at it."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="documents")
    external_id = models.CharField(max_length=500, db_collation="C")
    uri = models.CharField(max_length=2000, blank=True)
    content_hash = models.CharField(
        max_length=64, help_text="SHA-256 of the file's bytes, or of title, newline, text for records."
    )
    file_name = models.CharField(max_length=500, blank=True)
    title = models.TextField(blank=True)
    text = models.TextField(blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    removed_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["collection", "external_id"]
        indexes = [
            models.Index(fields=["collection", "uri"], name="document_uri"),
            models.Index(fields=["collection", "content_hash"], name="document_hash"),
            models.Index(fields=["collection", "file_name"], name="document_file_name"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["collection", "external_id"], name="document_external_id"),
            models.CheckConstraint(condition=~Q(external_id=""), name="document_has_external_id"),
        ]

    def __str__(self) -> str:
        return self.title or self.external_id


class Section(models.Model):
    """A part of a document that a judgment may point at."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="sections")
    section_id = models.CharField(max_length=200, help_text="Local to the document.")
    ordinal = models.PositiveIntegerField(help_text="Place in the document, depth first.")
    heading = models.TextField(blank=True)
    level = models.PositiveSmallIntegerField(default=1)
    start = models.PositiveIntegerField(default=0, help_text="First character in the document's text.")
    end = models.PositiveIntegerField(default=0, help_text="One past the last character.")

    class Meta:
        ordering = ["document", "ordinal"]
        constraints = [
            models.UniqueConstraint(fields=["document", "section_id"], name="section_id_in_document"),
            models.UniqueConstraint(fields=["document", "ordinal"], name="section_ordinal"),
            models.CheckConstraint(condition=Q(end__gte=models.F("start")), name="section_span"),
        ]

    def __str__(self) -> str:
        return self.heading or self.section_id
