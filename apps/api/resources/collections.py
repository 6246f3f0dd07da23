"""Collections and their documents: make, fill, look, edit, delete."""

from typing import Any
from uuid import UUID

from django.http import QueryDict
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import TIMES, Answer, ModelAnswer, answer_page, page_of
from apps.api.endpoint import Endpoint, find_visible
from apps.api.fields import Flag, PageQuery, StrictSerializer, Text, Whole, valid
from apps.api.parsers import CorpusParser, StrictJSONParser
from apps.collections.importing import (
    ImportReport,
    create_collection,
    delete_collection,
    edit_collection,
    import_documents,
)
from apps.collections.models import Collection, Document, Section, live
from apps.collections.records import LIMITS, SECTION_ID_LENGTH, URI_BYTES, DocumentRecord, SectionRecord
from apps.collections.uploading import upload_collection, upload_documents
from benchbench.access import visible
from benchbench.names import MAX_LENGTH

MOST_DOCUMENTS = 1000
MOST_CHARACTERS = 2**31 - 1
FILE = (
    "A BEIR corpus (.jsonl, .jsonl.gz), or a .zip: of a folder of Markdown, HTML and text files, of sectioned "
    "documents, or of a corpus."
)
PREFIX = "The uri of each file of a zip is this prefix followed by its path. Default: the path is the uri."


class NewCollection(StrictSerializer):
    """An empty collection."""

    name = Text(max_length=MAX_LENGTH)
    description = Text(default="", allow_blank=True, max_length=10_000)


class CollectionUpload(NewCollection):
    """A file of documents, and what to call them."""

    file = serializers.FileField(help_text=FILE)
    uri_prefix = Text(default="", allow_blank=True, max_length=URI_BYTES, help_text=PREFIX)


class CollectionChange(StrictSerializer):
    """The fields to change; the others stay."""

    name = Text(required=False, max_length=MAX_LENGTH)
    description = Text(required=False, allow_blank=True, max_length=10_000)


class CollectionAnswer(ModelAnswer):
    """A collection."""

    class Meta:
        model = Collection
        fields = ["id", "name", "description", "kind", "owner_id", "document_count", "fingerprint", *TIMES]
        extra_kwargs = {
            "kind": {"help_text": "`external` holds only the ids that external runs name."},
            "fingerprint": {"help_text": "Changes with its documents. Empty: it never had documents."},
        }


CollectionPage = page_of("collections", CollectionAnswer)


class SectionStated(StrictSerializer):
    """A part of a document's text that judgments may point at."""

    section_id = Text(max_length=SECTION_ID_LENGTH, trim_whitespace=False, help_text="Local to the document.")
    heading = Text(default="", allow_blank=True, trim_whitespace=False)
    level = Whole(default=1, min_value=1, max_value=100)
    start = Whole(min_value=0, max_value=MOST_CHARACTERS, help_text="First character in the document's text.")
    end = Whole(min_value=0, max_value=MOST_CHARACTERS, help_text="One past the last character.")


class DocumentStated(StrictSerializer):
    """A document as its source states it."""

    external_id = Text(max_length=LIMITS["external_id"], trim_whitespace=False, help_text="One in the collection.")
    text = Text(allow_blank=True, trim_whitespace=False)
    title = Text(default="", allow_blank=True, trim_whitespace=False)
    uri = Text(default="", allow_blank=True, trim_whitespace=False, max_length=URI_BYTES)
    file_name = Text(default="", allow_blank=True, trim_whitespace=False, max_length=LIMITS["file_name"])
    content_hash = Text(
        default="",
        allow_blank=True,
        max_length=LIMITS["content_hash"],
        help_text="SHA-256 of the file's bytes. Default: that of title, newline, text.",
    )
    metadata = serializers.DictField(default=dict, help_text="What filters of queries may ask for.")
    sections = SectionStated(many=True, default=list, help_text="In the document's order, depth first.")


class DocumentRecords(StrictSerializer):
    """Documents to be in a collection: new ones are added, known ones brought to this state."""

    documents = serializers.ListField(child=DocumentStated(), min_length=1, max_length=MOST_DOCUMENTS)
    remove_missing = Flag(default=False, help_text="Remove the documents that are not stated here.")


class DocumentsUpload(StrictSerializer):
    """The same as a file, for any number of documents."""

    file = serializers.FileField(help_text=FILE)
    uri_prefix = Text(default="", allow_blank=True, max_length=URI_BYTES, help_text=PREFIX)
    remove_missing = Flag(default=False, help_text="Remove the documents that the file lacks.")


class ImportAnswer(Answer):
    """What an import did."""

    document_count = serializers.IntegerField(min_value=0, help_text="Documents in the collection now.")

    class Meta:
        dataclass = ImportReport


class DocumentQuery(PageQuery):
    """Which documents."""

    external_id = Text(required=False, trim_whitespace=False, max_length=LIMITS["external_id"])


class DocumentSummary(ModelAnswer):
    """A document in a list."""

    id = serializers.UUIDField(source="uuid")

    class Meta:
        model = Document
        fields = ["id", "external_id", "uri", "content_hash", "file_name", "title", *TIMES]


DocumentPage = page_of("documents", DocumentSummary)


class SectionAnswer(ModelAnswer):
    """A part of a document's text."""

    class Meta:
        model = Section
        fields = ["section_id", "heading", "level", "start", "end"]


class DocumentAnswer(DocumentSummary):
    """A whole document."""

    sections = SectionAnswer(many=True)

    class Meta(DocumentSummary.Meta):
        fields = [*DocumentSummary.Meta.fields, "text", "metadata", "removed_at", "sections"]
        extra_kwargs = {"removed_at": {"help_text": "When it was removed: rankings may still name it."}}


class Collections(Endpoint):
    model = Collection
    acts = {"POST": "add"}
    throttles = {"POST": "upload"}
    parser_classes = [StrictJSONParser, CorpusParser]

    @extend_schema(operation_id="list_collections", parameters=[PageQuery], responses=CollectionPage)
    def get(self, request: Request) -> Response:
        """List collections, newest first."""
        query = valid(PageQuery, request.query_params)
        rows = visible(Collection.objects.order_by("-created_at", "id"), request.user)
        return answer_page(CollectionPage, rows, query)

    @extend_schema(
        operation_id="create_collection",
        request={"application/json": NewCollection, "multipart/form-data": CollectionUpload},
        responses={201: CollectionAnswer},
    )
    def post(self, request: Request) -> Response:
        """Make a collection: by JSON an empty one, by a form one of a file's documents.

        409 where you have one of that name.
        """
        if isinstance(request.data, QueryDict):
            data = valid(CollectionUpload, request.data)
            collection, _ = upload_collection(data.pop("file"), owner=request.user, **data)
        else:
            collection = create_collection(owner=request.user, **valid(NewCollection, request.data))
        return Response(CollectionAnswer(collection).data, status=201)


class OneCollection(Endpoint):
    model = Collection

    @extend_schema(operation_id="get_collection", responses=CollectionAnswer)
    def get(self, request: Request, collection_id: UUID) -> Response:
        """Show a collection."""
        return Response(CollectionAnswer(find_collection(request, collection_id)).data)

    @extend_schema(operation_id="edit_collection", request=CollectionChange, responses=CollectionAnswer)
    def patch(self, request: Request, collection_id: UUID) -> Response:
        """Give a collection another name or description; 409 where its owner has one of that name."""
        collection = find_collection(request, collection_id)
        edit_collection(collection, **valid(CollectionChange, request.data))
        return Response(CollectionAnswer(collection).data)

    @extend_schema(operation_id="delete_collection", responses={204: None})
    def delete(self, request: Request, collection_id: UUID) -> Response:
        """Delete a collection with its documents; 409 while a mapping or an index uses it."""
        delete_collection(find_collection(request, collection_id))
        return Response(status=204)


class Documents(Endpoint):
    model = Collection
    throttles = {"POST": "upload"}
    parser_classes = [StrictJSONParser, CorpusParser]

    @extend_schema(operation_id="list_documents", parameters=[DocumentQuery], responses=DocumentPage)
    def get(self, request: Request, collection_id: UUID) -> Response:
        """List the documents of a collection, or the one of an `external_id`, without their texts."""
        collection = find_collection(request, collection_id)
        query = valid(DocumentQuery, request.query_params)
        rows = live(collection).order_by("external_id").defer("text", "metadata")
        if "external_id" in query:
            rows = rows.filter(external_id=query["external_id"])
        return answer_page(DocumentPage, rows, query)

    @extend_schema(
        operation_id="import_documents",
        request={"application/json": DocumentRecords, "multipart/form-data": DocumentsUpload},
        responses=ImportAnswer,
    )
    def post(self, request: Request, collection_id: UUID) -> Response:
        """Import documents into a collection, all of them or none, and tell what that did.

        New ones are added, those of a known `external_id` brought to the state that is stated. What was built and
        resolved before does not change: build a new version of the index, and resolve the mapping again.
        """
        collection = find_collection(request, collection_id)
        if isinstance(request.data, QueryDict):
            data = valid(DocumentsUpload, request.data)
            report = upload_documents(collection, data.pop("file"), **data)
        else:
            data = valid(DocumentRecords, request.data)
            records = [_record(number, document) for number, document in enumerate(data["documents"])]
            report = import_documents(collection, records, remove_missing=data["remove_missing"])
        return Response(ImportAnswer(vars(report) | {"document_count": collection.document_count}).data)


class OneDocument(Endpoint):
    model = Collection

    @extend_schema(operation_id="get_document", responses=DocumentAnswer)
    def get(self, request: Request, collection_id: UUID, document_id: UUID) -> Response:
        """Show a document with its text, metadata and sections; one that was removed, too."""
        collection = find_collection(request, collection_id)
        document = collection.documents.filter(uuid=document_id).prefetch_related("sections").first()
        if document is None:
            raise NotFound(f"There is no document {document_id} here.")
        return Response(DocumentAnswer(document).data)


def find_collection(request: Request, collection_id: UUID) -> Collection:
    return find_visible(Collection.objects.all(), collection_id, request.user)


def _record(number: int, data: dict[str, Any]) -> DocumentRecord:
    sections = [SectionRecord(**section) for section in data["sections"]]
    return DocumentRecord(**(data | {"sections": sections}), place=f"documents[{number}]")
