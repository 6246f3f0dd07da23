"""The state of a collection as one hash."""

from hashlib import sha256

from django.db.models import Func, QuerySet, TextField, Value
from django.db.models.functions import Cast, Concat

from apps.collections.models import Collection, Document, Section


def live(collection: Collection) -> QuerySet[Document]:
    """Return the documents of a collection that are searched: those not removed."""
    return Document.objects.filter(collection=collection, removed_at__isnull=True)


def fingerprint(collection: Collection) -> str:
    """Return the SHA-256 over the live documents in external_id order: all that resolving, chunking and filters read.

    Title and text are there beside the content hash, because a later version of a reader may make another text of the
    same bytes. Sections enter where there are any. Collections with equal fingerprints resolve, chunk, encode and
    filter alike.
    """
    content = Func(
        Concat("title", Value("\n", TextField()), "text"),
        Value("UTF8"),
        function="convert_to",
        output_field=TextField(),
    )
    text_hash = Func(Func(content, function="sha256"), Value("hex"), function="encode", output_field=TextField())
    rows = (
        live(collection)
        .order_by("external_id")
        .values_list("external_id", "content_hash", text_hash, "uri", "file_name", Cast("metadata", TextField()))
    )
    digest = sha256()
    for row in rows.iterator(chunk_size=10_000):
        digest.update("\0".join(row).encode() + b"\n")
    names = ("document__external_id", "section_id", "heading", "start", "end")
    sections = Section.objects.filter(document__in=live(collection)).order_by("document__external_id", "ordinal")
    for row in sections.values_list(*names).iterator(chunk_size=10_000):
        digest.update("\0".join(map(str, row)).encode() + b"\n")
    return digest.hexdigest()
