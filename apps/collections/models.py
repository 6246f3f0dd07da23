"""Collections of documents, and the hash of a collection's state."""

import uuid
from hashlib import sha256

from django.db import models
from django.db.models import Case, Func, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast, Concat, Left, Trim

from benchbench.decimals import counted
from benchbench.models import NamedModel, OwnedModel
from benchbench.texts.languages import DEFAULT, list_choices

ONE_LANGUAGE = 90  # per cent of the sampled documents; below, the collection may have several
LONGEST_OPENING = 90  # characters of the text that name a document without a title
_SPACED = Func(Left("text", 4 * LONGEST_OPENING), Value(r"\s+"), Value(" "), Value("g"), function="regexp_replace")


class Collection(NamedModel, OwnedModel):
    """A named set of documents that is searched."""

    made_by = "import_collection"
    name_scope = ("owner",)

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
    language = models.CharField(
        max_length=20,
        blank=True,
        default="",
        db_default="",
        choices=list_choices,
        help_text="For lexical search. Empty: guessed from the documents.",
    )
    language_agreeing = models.PositiveIntegerField(null=True, blank=True, editable=False)
    language_sampled = models.PositiveIntegerField(null=True, blank=True, editable=False)

    class Meta(OwnedModel.Meta):
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], nulls_distinct=False, name="collection_name"),
            models.CheckConstraint(condition=Q(kind__in=["documents", "external"]), name="collection_kind"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def language_words(self) -> str:
        """Return the language in words, with the documents that agree if it was guessed.

        Of a collection of several languages it says that those of one script are read by one analyzer.
        """
        name = (self.language or DEFAULT).capitalize()
        if self.language_agreeing is None or not self.language_sampled:
            return name if self.language else f"{name}, because none was chosen"
        share = round(100 * self.language_agreeing / self.language_sampled)
        all_read = "" if share >= ONE_LANGUAGE else f"; all in its script are read as {name}"
        return f"{name}, {share} % of {counted(self.language_sampled, 'sampled document')}{all_read}"


class Document(models.Model):
    """The unit of judgment. It is soft-deleted, because rankings refer to it."""

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
    opening = models.GeneratedField(
        expression=Case(When(title="", then=Left(Trim(_SPACED), LONGEST_OPENING + 1)), default=Value("")),
        output_field=TextField(),
        db_persist=True,
        help_text="The beginning of the text, if the document has no title: names it without loading the text.",
    )
    metadata = models.JSONField(default=dict, blank=True)
    removed_at = models.DateTimeField(null=True, blank=True, editable=False)
    since = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="The first state of the collection that has this content."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["collection_id", "external_id"]
        # Resolving references: each kind of key is looked up in the collection.
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
        """Return its name for people: the title, otherwise how its text begins, otherwise its id."""
        return self.title or _cut_at_word(self.opening) or self.external_id


class CollectionState(models.Model):
    """A state of a collection that was searched. `number` orders them; contents have `since` and `until` numbers."""

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="states")
    number = models.PositiveIntegerField(help_text="Starts at 1.")
    fingerprint = models.CharField(max_length=64)
    document_count = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["collection", "number"], name="collection_state_once")]

    def __str__(self) -> str:
        return f"state {self.number} of {self.collection}"


class FormerDocument(models.Model):
    """A document as it was in searched states, from `since` to before `until`, when an import changed or removed it.

    Its text is in the chunks of the indexes that were built of it.
    """

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="former")
    since = models.PositiveIntegerField()
    until = models.PositiveIntegerField()
    uri = models.CharField(max_length=2000, blank=True)
    content_hash = models.CharField(max_length=64)
    file_name = models.CharField(max_length=500, blank=True)
    metadata = models.JSONField(default=dict)
    sections = models.JSONField(default=list, help_text="Sections in order: first character, one past the last, id.")

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["document", "since"], name="former_document_once"),
            models.CheckConstraint(condition=Q(until__gt=models.F("since")), name="former_document_period"),
        ]

    def __str__(self) -> str:
        return f"{self.document} until state {self.until}"


class Section(models.Model):
    """A part of a document that a judgment may refer to."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="sections")
    section_id = models.CharField(max_length=200, help_text="Local to the document.")
    ordinal = models.PositiveIntegerField(help_text="Place in the document, depth first.")
    heading = models.TextField(blank=True)
    level = models.PositiveSmallIntegerField(default=1)
    start = models.PositiveIntegerField(default=0, help_text="First character in the document's text.")
    end = models.PositiveIntegerField(default=0, help_text="One past the last character.")

    class Meta:
        ordering = ["document_id", "ordinal"]
        constraints = [
            models.UniqueConstraint(fields=["document", "section_id"], name="section_id_in_document"),
            models.UniqueConstraint(fields=["document", "ordinal"], name="section_ordinal"),
            models.CheckConstraint(condition=Q(end__gte=models.F("start")), name="section_span"),
        ]

    def __str__(self) -> str:
        return self.heading or self.section_id


def _cut_at_word(opening: str) -> str:
    if len(opening) <= LONGEST_OPENING:
        return opening
    space = opening.rfind(" ", LONGEST_OPENING // 2)  # -1 in a language without spaces
    return f"{opening[: LONGEST_OPENING if space < 0 else space]} …"


def list_live(collection: Collection) -> QuerySet[Document]:
    """Return the searchable documents of a collection: those not removed."""
    return Document.objects.filter(collection=collection, removed_at__isnull=True)


def compute_fingerprint(collection: Collection) -> str:
    """Return the SHA-256 over the live documents in external_id order: all that resolving, chunking and filters read.

    It includes title and text in addition to the content hash, because a later version of a reader may make another
    text of the same bytes. It includes sections if a document has any. Collections with equal fingerprints resolve,
    chunk, encode and filter alike.
    """
    content = Func(
        Concat("title", Value("\n", TextField()), "text"),
        Value("UTF8"),
        function="convert_to",
        output_field=TextField(),
    )
    text_hash = Func(Func(content, function="sha256"), Value("hex"), function="encode", output_field=TextField())
    rows = (
        list_live(collection)
        .order_by("external_id")
        .values_list("external_id", "content_hash", text_hash, "uri", "file_name", Cast("metadata", TextField()))
    )
    digest = sha256()
    for row in rows.iterator(chunk_size=10_000):
        digest.update("\0".join(row).encode() + b"\n")
    names = ("document__external_id", "section_id", "heading", "level", "start", "end")
    sections = Section.objects.filter(document__in=list_live(collection)).order_by("document__external_id", "ordinal")
    for row in sections.values_list(*names).iterator(chunk_size=10_000):
        digest.update("\0".join(map(str, row)).encode() + b"\n")
    return digest.hexdigest()
