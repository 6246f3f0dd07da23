"""Collections and their documents: make, fill, look, edit, delete."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.exceptions import NotFound

from apps.api.answers import TIMES, Answer, ModelAnswer, build_page
from apps.api.fields import Flag, Int, Key, PageQuery, StrictSerializer, Text, Validated
from apps.api.parsers import CorpusParser
from apps.api.resource import Resource, delete, get, patch, post
from apps.collections import editing, importing
from apps.collections.languages import LANGUAGE_FIELDS
from apps.collections.models import Collection, Document, Section, list_live
from apps.collections.records import LIMITS, SECTION_ID_LENGTH, URI_BYTES, DocumentRecord, SectionRecord
from apps.collections.tables import read_columns
from apps.collections.uploading import upload_collection, upload_documents
from benchbench.files.columns import parse_choices
from benchbench.names import MAX_LENGTH

MOST_DOCUMENTS = 1000
LANGUAGE = "Language of the documents by English name or code, such as german or de. Empty: guessed from them."
LONGEST_DOCUMENT = 2_500_000  # about what the body of a request may have
MOST_CHARACTERS = 2**31 - 1
FILE = (
    "A corpus as BEIR writes it, or another table with a row for each document (.jsonl, .ndjson, .json, .csv, .tsv; "
    "also .gz), or a .zip: of a folder of Markdown, HTML and text files, of sectioned documents, or of a corpus."
)
PREFIX = "The uri of each file of a zip is this prefix followed by its path. Default: the path is the uri."
COLUMNS = (
    "Of a table, FIELD=COLUMN for each whose name says something else, FIELD one of id, text, title, uri and metadata; "
    "=COLUMN is not read."
)


class NewCollection(StrictSerializer):
    """An empty collection."""

    name = Text(max_length=MAX_LENGTH)
    description = Text(default="", allow_blank=True, max_length=10_000)
    language = Text(default="", allow_blank=True, max_length=40, help_text=LANGUAGE)


class CollectionUpload(NewCollection):
    """A file of documents, and what to call them."""

    file = serializers.FileField(help_text=FILE)
    uri_prefix = Text(default="", allow_blank=True, max_length=URI_BYTES, help_text=PREFIX)
    columns = serializers.ListField(child=Text(allow_blank=True, max_length=500), required=False, help_text=COLUMNS)


class CollectionChange(StrictSerializer):
    """The fields to change; the others stay."""

    name = Text(required=False, max_length=MAX_LENGTH)
    description = Text(required=False, allow_blank=True, max_length=10_000)
    language = Text(required=False, allow_blank=True, max_length=40, help_text=LANGUAGE)


class CollectionAnswer(ModelAnswer):
    """A collection."""

    language = serializers.CharField(help_text="Its name. Empty: none was chosen or guessed, and English is assumed.")

    class Meta:
        model = Collection
        fields = [
            *("id", "name", "description", "kind", "owner_id", "document_count", "fingerprint"),
            *(*LANGUAGE_FIELDS, *TIMES),
        ]
        extra_kwargs = {
            "language_agreeing": {"help_text": "Sampled documents in the guessed language; null if it was chosen."},
            "language_sampled": {"help_text": "Documents from which it was guessed."},
            "kind": {"help_text": "`external` holds only the ids that external runs name."},
            "fingerprint": {"help_text": "Changes with its documents. Empty: it never had documents."},
        }


CollectionPage = build_page("collections", CollectionAnswer)


class NewSection(StrictSerializer):
    """A section of a document's text that judgments may refer to."""

    section_id = Key(max_length=SECTION_ID_LENGTH, help_text="Local to the document.")
    heading = Text(default="", allow_blank=True, trim_whitespace=False)
    level = Int(default=1, min_value=1, max_value=100)
    start = Int(min_value=0, max_value=MOST_CHARACTERS, help_text="First character in the document's text.")
    end = Int(min_value=0, max_value=MOST_CHARACTERS, help_text="One past the last character.")


class NewDocument(StrictSerializer):
    """A document to import."""

    external_id = Key(max_length=LIMITS["external_id"], help_text="One in the collection.")
    text = Text(allow_blank=True, trim_whitespace=False, max_length=LONGEST_DOCUMENT)
    title = Text(default="", allow_blank=True, trim_whitespace=False)
    uri = Text(default="", allow_blank=True, trim_whitespace=False, max_length=URI_BYTES)
    file_name = Text(default="", allow_blank=True, trim_whitespace=False, max_length=LIMITS["file_name"])
    content_hash = Text(
        default="",
        allow_blank=True,
        max_length=LIMITS["content_hash"],
        help_text="SHA-256 of the file's bytes. Default: that of title, newline, text.",
    )
    metadata = serializers.DictField(default=dict, help_text="Filters of queries may use these fields.")
    sections = NewSection(many=True, default=list, help_text="In the document's order, depth first.")


class DocumentRecords(StrictSerializer):
    """Documents to import: new ones are added, existing ones updated."""

    documents = serializers.ListField(child=NewDocument(), min_length=1, max_length=MOST_DOCUMENTS)
    remove_missing = Flag(default=False, help_text="Remove the documents that this request does not contain.")


class DocumentsUpload(StrictSerializer):
    """A file of documents to import, of any number."""

    file = serializers.FileField(help_text=FILE)
    uri_prefix = Text(default="", allow_blank=True, max_length=URI_BYTES, help_text=PREFIX)
    columns = serializers.ListField(child=Text(allow_blank=True, max_length=500), required=False, help_text=COLUMNS)
    remove_missing = Flag(default=False, help_text="Remove the documents that the file lacks.")


class ImportAnswer(Answer):
    """Counts of an import."""

    document_count = serializers.IntegerField(min_value=0, help_text="Documents in the collection now.")

    class Meta:
        dataclass = importing.ImportReport
        extra_kwargs = {
            "notes": {"help_text": "What each column of a table was read as."},
            "warnings": {"help_text": "What of a table may be read wrong."},
        }


class DocumentQuery(PageQuery):
    """Query parameters for listing documents."""

    external_id = Key(required=False, max_length=LIMITS["external_id"])


class DocumentSummary(ModelAnswer):
    """A document in a list."""

    id = serializers.UUIDField(source="uuid")

    class Meta:
        model = Document
        fields = ["id", "external_id", "uri", "content_hash", "file_name", "title", *TIMES]


DocumentPage = build_page("documents", DocumentSummary)


class SectionAnswer(ModelAnswer):
    """A section of a document's text."""

    class Meta:
        model = Section
        fields = ["section_id", "heading", "level", "start", "end"]


class DocumentAnswer(DocumentSummary):
    """A whole document."""

    sections = SectionAnswer(many=True)

    class Meta(DocumentSummary.Meta):
        fields = [*DocumentSummary.Meta.fields, "text", "metadata", "removed_at", "sections"]
        extra_kwargs = {"removed_at": {"help_text": "When it was removed: rankings may still name it."}}


class Collections(Resource):
    model = Collection
    route = "collections"

    @get("", CollectionPage, PageQuery)
    def list_collections(self, query: Validated) -> QuerySet[Collection]:
        """List collections, newest first."""
        return self.newest()

    @post(
        "",
        CollectionAnswer,
        NewCollection,
        form=CollectionUpload,
        parser=CorpusParser,
        act="add",
        status=201,
        history="Make a collection.",
    )
    def create_collection(self, data: Validated) -> Collection:
        """Make a collection: by JSON an empty one, by a form one of a file's documents.

        409 if you have a collection of that name.
        """
        if "file" in data:
            return upload_collection(data.pop("file"), owner=self.user, **_read_options(data))[0]
        return importing.create_collection(owner=self.user, **data)

    @get("/<id:collection_id>", CollectionAnswer)
    def get_collection(self, collection: Collection) -> Collection:
        """Show a collection."""
        return collection

    @patch(
        "/<id:collection_id>",
        CollectionAnswer,
        CollectionChange,
        history="Change a collection.",
    )
    def edit_collection(self, collection: Collection, data: Validated) -> Collection:
        """Change a collection; 409 if its owner has another of that name, or for another language if it has indexes."""
        editing.edit_collection(collection, **data)
        return collection

    @delete("/<id:collection_id>", history="Delete a collection with its documents.")
    def delete_collection(self, collection: Collection) -> None:
        """Delete a collection with its documents; 409 while a mapping or an index uses it."""
        editing.delete_collection(collection)

    @get("/<id:collection_id>/documents", DocumentPage, DocumentQuery)
    def list_documents(self, collection: Collection, query: Validated) -> QuerySet[Document]:
        """List the documents of a collection, or the one of an `external_id`, without their texts."""
        rows = list_live(collection).order_by("external_id").defer("text", "metadata")
        return rows.filter(external_id=query["external_id"]) if "external_id" in query else rows

    @post(
        "/<id:collection_id>/documents",
        ImportAnswer,
        DocumentRecords,
        form=DocumentsUpload,
        parser=CorpusParser,
        history="Import documents into a collection.",
    )
    def import_documents(self, collection: Collection, data: Validated) -> dict[str, object]:
        """Import documents into a collection, all or none, and return the counts.

        New documents are added; those with an existing `external_id` are updated. Indexes and mappings do not change:
        build a new version of the index and resolve the mapping again.
        """
        if "file" in data:
            report = upload_documents(collection, data.pop("file"), **_read_options(data))
        else:
            records = [_record(number, document) for number, document in enumerate(data["documents"])]
            report = importing.import_documents(collection, records, remove_missing=data["remove_missing"])
        return vars(report) | {"document_count": collection.document_count}

    @get("/<id:collection_id>/documents/<id:document_id>", DocumentAnswer)
    def get_document(self, document: Document) -> Document:
        """Show a document, also a removed one, with its text, metadata and sections."""
        return document

    def find(self, collection_id: UUID, document_id: UUID | None = None) -> Any:
        collection = super().find(collection_id=collection_id)
        if document_id is None:
            return collection
        document = collection.documents.filter(uuid=document_id).first()
        if document is None:
            raise NotFound(f"This collection does not contain document {document_id}.")
        return document


def _read_options(data: Validated) -> Validated:
    """Return the fields of a form with the `columns` of a table by their fields."""
    return data | {"columns": read_columns(parse_choices(data.get("columns", ())))}


def _record(number: int, data: Validated) -> DocumentRecord:
    sections = [SectionRecord(**section) for section in data["sections"]]
    return DocumentRecord(**(data | {"sections": sections}), location=f"documents[{number}]")
