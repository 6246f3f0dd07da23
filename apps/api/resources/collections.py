"""Collections and their documents: make, fill, look, edit, delete."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.http import QueryDict
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access.addressed import find_visible
from apps.api.endpoint import Endpoint
from apps.api.fields import valid
from apps.api.idempotency import idempotent
from apps.api.paging import PageQuery, answer_page
from apps.api.parsers import CorpusParser, StrictJSONParser
from apps.api.serializers.collections import (
    CollectionChange,
    CollectionFacts,
    CollectionPage,
    CollectionUpload,
    DocumentFacts,
    DocumentPage,
    DocumentQuery,
    DocumentRecords,
    DocumentsUpload,
    ImportFacts,
    NewCollection,
)
from apps.collections.editing import delete_collection, edit_collection
from apps.collections.importing import create_collection, import_documents
from apps.collections.models import Collection, live
from apps.collections.records import DocumentRecord, SectionRecord
from apps.collections.uploading import upload_collection, upload_documents
from benchbench.access import visible


class Collections(Endpoint):
    model = Collection
    acts = {"GET": "view", "POST": "add"}
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
        responses={201: CollectionFacts},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Make a collection: by JSON an empty one, by a form one of a file's documents.

        409 where you have one of that name.
        """
        if isinstance(request.data, QueryDict):
            data = valid(CollectionUpload, request.data)
            collection, _ = upload_collection(data.pop("file"), owner=request.user, **data)
        else:
            collection = create_collection(owner=request.user, **valid(NewCollection, request.data))
        return Response(CollectionFacts(collection).data, status=201)


class OneCollection(Endpoint):
    model = Collection
    acts = {"GET": "view", "PATCH": "change", "DELETE": "delete"}

    @extend_schema(operation_id="get_collection", responses=CollectionFacts)
    def get(self, request: Request, collection_id: UUID) -> Response:
        """Show a collection."""
        return Response(CollectionFacts(find_collection(request, collection_id)).data)

    @extend_schema(operation_id="edit_collection", request=CollectionChange, responses=CollectionFacts)
    def patch(self, request: Request, collection_id: UUID) -> Response:
        """Give a collection another name or description; 409 where its owner has one of that name."""
        collection = find_collection(request, collection_id)
        edit_collection(collection, **valid(CollectionChange, request.data))
        return Response(CollectionFacts(collection).data)

    @extend_schema(operation_id="delete_collection", responses={204: None})
    def delete(self, request: Request, collection_id: UUID) -> Response:
        """Delete a collection with its documents; 409 while a mapping or an index uses it."""
        delete_collection(find_collection(request, collection_id))
        return Response(status=204)


class Documents(Endpoint):
    model = Collection
    acts = {"GET": "view", "POST": "change"}
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
        responses=ImportFacts,
    )
    @idempotent
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
        return Response(ImportFacts(asdict(report) | {"document_count": collection.document_count}).data)


class OneDocument(Endpoint):
    model = Collection
    acts = {"GET": "view"}

    @extend_schema(operation_id="get_document", responses=DocumentFacts)
    def get(self, request: Request, collection_id: UUID, document_id: UUID) -> Response:
        """Show a document with its text, metadata and sections; one that was removed, too."""
        collection = find_collection(request, collection_id)
        document = collection.documents.filter(uuid=document_id).prefetch_related("sections").first()
        if document is None:
            raise NotFound(f"There is no document {document_id} here.")
        return Response(DocumentFacts(document).data)


def find_collection(request: Request, collection_id: UUID) -> Collection:
    return find_visible(Collection.objects.all(), collection_id, request.user)


def _record(number: int, data: dict[str, Any]) -> DocumentRecord:
    sections = [SectionRecord(**section) for section in data["sections"]]
    return DocumentRecord(**(data | {"sections": sections}), place=f"documents[{number}]")
