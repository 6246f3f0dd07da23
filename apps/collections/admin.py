"""Admin pages of collections and documents."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from unfold.decorators import display

from apps.collections import views
from apps.collections.deleting import delete_collection
from apps.collections.models import Collection, Document
from apps.mappings.models import Mapping
from apps.retrieval.models import Index
from benchbench.access import visible
from benchbench.site.admin import LargeAdmin, OwnedAdmin, VisibleFilter
from benchbench.site.panels import Button, Panel, changelist_url


@admin.register(Collection)
class CollectionAdmin(OwnedAdmin):
    list_display = ("name", "documents", "kind", "owner", "updated_at")
    list_filter = ("kind",)
    search_fields = ("name", "description")
    autocomplete_fields = ("owner",)
    editable = ("name", "description", "owner", "team")
    fieldsets = (
        (None, {"fields": ("name", "description", ("owner", "team"))}),
        ("Facts", {"fields": (("documents", "kind"), ("created_at", "updated_at"), "fingerprint")}),
    )

    @display(description="documents", ordering="document_count")
    def documents(self, collection: Collection) -> str:
        return f"{collection.document_count:,}"

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        return views.upload_collection(request, self)

    def delete_model(self, request: HttpRequest, obj: Collection) -> None:
        delete_collection(obj)

    def buttons(self, request: HttpRequest, obj: Collection) -> list[Button]:
        return [
            Button(
                "Build an index",
                "manage_search",
                href=f"{reverse('admin:retrieval_index_add')}?collection={obj.pk}",
                needs="retrieval.add_index",
            ),
            Button(
                "Map a dataset",
                "join_inner",
                href=f"{reverse('admin:mappings_mapping_add')}?collection={obj.pk}",
                needs="mappings.add_mapping",
            ),
        ]

    def panels(self, request: HttpRequest, obj: Collection) -> list[Panel]:
        documents = Document.objects.filter(collection=obj, removed_at=None).order_by("external_id")
        indexes = visible(Index.objects.filter(collection=obj).order_by("-created_at"), request.user)
        mappings = visible(Mapping.objects.filter(collection=obj).select_related("dataset"), request.user)
        return [
            Panel("Indexes", indexes, ("__str__", "encoder_name", "chunks", "status_label")),
            Panel("Mappings", mappings, ("name", "dataset", "resolved", "status_label")),
            Panel(
                "Documents",
                documents,
                ("title_or_id", "external_id", "uri"),
                total=obj.document_count,
                every=changelist_url(Document, collection__id__exact=obj.pk),
            ),
        ]


@admin.register(Document)
class DocumentAdmin(LargeAdmin):
    through = "collection"
    list_display = ("title_or_id", "external_id", "file_name", "collection", "removed_at")
    list_select_related = ("collection",)
    list_filter = (("collection", VisibleFilter), ("removed_at", admin.EmptyFieldListFilter))
    search_fields = ("=external_id", "title", "=uri", "=content_hash")
    search_help_text = "Words of the title; or an exact id, uri or content hash"
    ordering = ("collection_id", "external_id")
    fieldsets = (
        (None, {"fields": (("external_id", "file_name"), "uri", "title", "text")}),
        ("Facts", {"fields": ("content_hash", ("created_at", "updated_at"), "removed_at", "metadata")}),
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        documents = super().get_queryset(request)
        match = request.resolver_match
        on_its_page = match is not None and match.url_name == "collections_document_change"
        return documents if on_its_page else documents.defer("text", "metadata")

    @display(description="title", ordering="title")
    def title_or_id(self, document: Document) -> str:
        return str(document)[:120]

    def trail(self, obj: Document) -> list[Any]:
        return [obj.collection]
