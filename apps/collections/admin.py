"""Admin pages of collections and documents."""

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Left, Length
from django.forms import ModelForm
from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import Truncator
from unfold.decorators import display

from apps.collections import views
from apps.collections.editing import delete_collection
from apps.collections.languages import set_language
from apps.collections.models import Collection, Document
from benchbench.site.admin import FactsFirstAdmin, LargeAdmin
from benchbench.site.lists import VisibleFilter, filter_empty
from benchbench.site.panels import Button, Page, Panel, add_button, build_list_url

BEGINNING = 300  # characters of a text in the list


@admin.register(Collection)
class CollectionAdmin(FactsFirstAdmin):
    list_display = ("name", "document_total", "kind", "owner", "updated_at")
    list_filter = ("kind",)
    actions = ("bin_selected",)
    search_fields = ("name", "description")
    autocomplete_fields = ("owner",)
    pages = (
        Page("add/", views.upload_collection, "collections_collection_add"),
        Page("preview/", views.preview_collection, "collection_preview"),
    )
    editable = ("name", "description", "language", "owner", "team")
    facts = ("document_total", "kind", "language_guess", "read_columns", "owner", "team", "created_at", "updated_at")
    edited = "name, description, language and owner"
    fieldsets = (
        (None, {"fields": ("name", "description", "language", ("owner", "team"))}),
        ("Facts", {"fields": ("fingerprint",)}),
    )

    @display(description="documents", ordering="document_count")
    def document_total(self, collection: Collection) -> str:
        return f"{collection.document_count:,}"

    @display(description="language of the documents")
    def language_guess(self, collection: Collection) -> str:
        return collection.language_words

    @display(description="read of the file")
    def read_columns(self, collection: Collection) -> str:
        return " ".join(collection.metadata.get("read", ()))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        readonly = super().get_readonly_fields(request, obj)
        return [*readonly, "language"] if obj and obj.indexes.exists() else readonly

    def save_model(self, request: HttpRequest, obj: Collection, form: ModelForm, change: bool) -> None:
        if "language" in form.changed_data:
            set_language(obj, form.cleaned_data["language"])
        super().save_model(request, obj, form, change)

    def delete_row(self, obj: Collection) -> None:
        delete_collection(obj)

    def list_buttons(self, request: HttpRequest, obj: Collection) -> list[Button]:
        return [
            add_button("Build an index", "manage_search", "retrieval.index", collection=obj.pk),
            Button(
                "Try a query",
                "search",
                href=reverse("admin:collection_try", args=[obj.pk]),
                needs="retrieval.view_index",
            ),
            add_button("Map a dataset", "join_inner", "mappings.mapping", collection=obj.pk),
        ]

    def list_panels(self, request: HttpRequest, obj: Collection) -> list[Panel]:
        documents = Document.objects.filter(collection=obj, removed_at=None).order_by("external_id")
        every = build_list_url(Document, collection__id__exact=obj.pk)
        columns = ("title_or_id", "external_id", "uri")
        return [Panel("Documents", documents, columns, total=obj.document_count, every=every, last=True)]


@admin.register(Document)
class DocumentAdmin(LargeAdmin):
    through = "collection"
    list_display = ("title_or_id", "beginning", "characters", "external_id", "file_name", "in_collection", "removed_at")
    hidden_columns = ("file_name",)
    phone_columns = ("beginning", "characters")
    list_select_related = ("collection",)
    list_filter = (("collection", VisibleFilter), ("removed_at", filter_empty("state", "Present", "Removed")))
    search_fields = ("=external_id", "title", "opening", "=uri", "=content_hash")
    search_help_text = "Words of the name; or an exact id, uri or content hash"
    ordering = ("collection_id", "external_id")

    def get_queryset(self, request: HttpRequest) -> Any:
        documents = super().get_queryset(request)
        match = request.resolver_match
        on_its_page = match is not None and match.url_name == "collections_document_change"
        return documents if on_its_page else documents.defer("text", "metadata")

    def annotate_rows(self, request: HttpRequest, rows: QuerySet[Document]) -> QuerySet[Document]:
        """Return the rows with their lengths and first characters, so that no list loads a text."""
        one = Document.objects.filter(pk=OuterRef("pk")).order_by()  # computed for the rows of a page, after sorting
        values = {"head": Left("text", BEGINNING), "length": Length("text")}
        subqueries = {name: Subquery(one.annotate(**{name: value}).values(name)) for name, value in values.items()}
        return super().annotate_rows(request, rows.annotate(**subqueries))

    @display(description="text", empty_value="–")
    def beginning(self, document: Any) -> str:
        """Return how the text begins; of a document without a title, how it continues after its name."""
        words = " ".join(document.head.split())
        return words if document.title else words.removeprefix(str(document).removesuffix(" …")).lstrip()

    @display(description="characters", ordering="length")
    def characters(self, document: Any) -> str:
        return f"{document.length:,}"

    @display(description="document", ordering="title")
    def title_or_id(self, document: Document) -> str:
        return Truncator(str(document)).chars(120)

    @display(description="collection", ordering="collection_id")  # as the list is ordered, so that it is marked so
    def in_collection(self, document: Document) -> str:
        return str(document.collection)

    def list_trail(self, obj: Document) -> list[Any]:
        return [obj.collection]
