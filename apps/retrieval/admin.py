"""Admin pages of indexes."""

from dataclasses import asdict
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.http import urlencode
from unfold.decorators import display

from apps.collections.models import Collection
from apps.operations.launching import cancel_operation
from apps.operations.models import Operation, Status
from apps.retrieval import views
from apps.retrieval.deleting import clear_vectors, delete_index
from apps.retrieval.encoders.prompts import quote
from apps.retrieval.encoders.vector_cache import annotate_sizes
from apps.retrieval.indexing import build_index
from apps.retrieval.models import ChunkSet, Index, VectorSpace
from apps.retrieval.strategies import TREES
from apps.retrieval.unread import list_index_warnings, may_fit
from benchbench.access import staff, visible
from benchbench.errors import ConflictError
from benchbench.ir.planning.strategies import INPUTS, STRATEGIES
from benchbench.site.admin import FactAdmin, FactsFirstAdmin
from benchbench.site.lists import VisibleFilter
from benchbench.site.panels import Button, Page, Panel, add_to, build_list_url

SEARCHING = (
    *("error", "warnings", "encoder", "dimension", "prompts_read", "precision", "strategy", "lexical", "chunking"),
    *("chunks", "vectors_from", "routing", "language_model", "size", "created_at", "ready_at", "owner", "team"),
)
# Counts and times of a build: their labels, and how they are written.
FIGURES = {
    "num_documents": ("documents", "{:,}"),
    "num_vectors": ("vectors", "{:,}"),
    "embed_calls": ("texts encoded", "{:,}"),
    "cache_hits": ("vectors from the cache", "{:,}"),
    "llm_calls": ("answers of the language model", "{:,}"),
    "duration_sec": ("work on it", "{:,.1f} s"),
    "vectors_sec": ("of which for vectors", "{:,.1f} s"),
}


@admin.register(Index)
class IndexAdmin(FactsFirstAdmin):
    list_display = (
        *("__str__", "status_label", "collection", "strategy", "encoder_name", "chunking", "chunks", "size"),
        *("owner", "ready_at"),
    )
    hidden_columns = ("owner", "strategy", "chunks", "size")
    list_filter = ("status", ("collection", VisibleFilter), "strategy")
    list_select_related = ("owner", "collection", "chunk_set")
    search_fields = ("name", "encoder", "collection__name")
    autocomplete_fields = ("owner",)
    actions = ("build_selected", "cancel_selected", "bin_selected")
    pages = (
        Page("add/", views.add_index, "retrieval_index_add"),
        Page("prompts/", views.offer_prompts, "index_prompts"),
        Page("grid/", views.add_grid, "index_grid"),
        Page("grid/preview/", views.preview_grid, "index_grid_preview"),
    )
    editable = ("owner", "team")
    facts = SEARCHING
    edited = "owner"
    fieldsets = (
        (None, {"fields": (("owner", "team"),)}),
        ("Facts", {"fields": ("fingerprint", "encoder_revision", "vector_source")}),
    )

    def list_facts(self, obj: Index) -> list[tuple[str, Any]]:
        figures = {label: (words, obj.stats.get(name)) for name, (label, words) in FIGURES.items()}
        counted = [(label, words.format(figure)) for label, (words, figure) in figures.items() if figure]
        return [*super().list_facts(obj), *counted]

    def delete_row(self, obj: Index) -> None:
        delete_index(obj)

    def name_status(self, obj: Index) -> str:
        """Return the status: "queued" until a worker claims a batch."""
        queued = (
            obj.status == Index.Status.INDEXING
            and not Operation.objects.filter(subject_id=obj.pk, status=Status.RUNNING).exists()
        )
        return "queued" if queued else obj.status

    @admin.action(description="Build", permissions=["act"])
    def build_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        def build(index: Index) -> str:
            build_index(index, by=staff(request))
            return f'The index "{index}" will be built; its page shows the progress.'

        return self.apply_each(request, queryset, build)

    @admin.action(description="Cancel the build", permissions=["act"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        def cancel(index: Index) -> str:
            operation = self.find_operation(index)
            if operation is None:
                raise ConflictError(
                    f'The index "{index}" is {index.status}: only an index that is being built can be cancelled.'
                )
            cancel_operation(operation)
            return f'Cancelled the build of the index "{index}".'

        return self.apply_each(request, queryset, cancel)

    @display(description="encoder", ordering="encoder", empty_value="lexical only")
    def encoder_name(self, index: Index) -> str | None:
        return index.encoder.rsplit("/", 1)[-1] or None

    @display(description="vectors from", empty_value="")
    def vectors_from(self, index: Index) -> str | None:
        return "an imported file" if index.vector_source else None

    @display(description="prompts", empty_value="not recorded")
    def prompts_read(self, index: Index) -> str | None:
        prompts = [f"{kind} {quote(prompt)}" for kind, prompt in (index.prompts or {}).items() if prompt]
        return None if index.prompts is None else ", ".join(prompts) or "none"

    @display(description="warnings", empty_value="–")
    def warnings(self, index: Index) -> str | None:
        notes = [(each,) for each in list_index_warnings(index)]
        return format_html_join("", '<p class="bb-note bb-note-warn">{}</p>', notes) or None

    @display(description="chunks of")
    def chunking(self, index: Index) -> str:
        size, overlap = index.chunk_parameters.get("size"), index.chunk_parameters.get("overlap", 0)
        fits = ", divided where the encoder stops reading" if index.chunk_parameters.get("fit_encoder") else ""
        if not size:
            return f"whole documents{fits}"
        by_section = index.strategy != "flat" or index.chunk_parameters.get("sections")
        return f"{size} characters, overlapping by {overlap}{', section by section' if by_section else ''}{fits}"

    @display(description="searches only", empty_value="everything")
    def routing(self, index: Index) -> str | None:
        if index.strategy in TREES:
            best = f"the best {index.chunk_parameters.get('layer_top_k')} summaries of each layer"
            return best if index.chunk_parameters.get("search") == "tree" else None
        documents, sections = (index.chunk_parameters.get(name) for name in ("doc_top_k", "section_top_k"))
        return f"the best {documents} documents, then their best {sections} sections" if documents else None

    @display(description="language model", empty_value="none")
    def language_model(self, index: Index) -> str | None:
        parameters = index.llm_parameters
        if not index.llm:
            return None
        cache = "" if parameters.get("cache", True) else ", not cached"
        return f"{index.llm} on {parameters.get('provider')}, temperature {parameters.get('temperature')}{cache}"

    @display(description="chunks", ordering="chunk_set__chunk_count", empty_value="–")
    def chunks(self, index: Index) -> str | None:
        freed = index.status == Index.Status.CANCELLED  # at the latest by the next sweep
        return f"{index.chunk_set.chunk_count:,}" if index.chunk_set and not freed else None

    @display(description="size", ordering="stats__bytes", empty_value="–")
    def size(self, index: Index) -> str | None:
        size = index.stats.get("bytes")
        return None if size is None else filesizeformat(size)

    def list_trail(self, obj: Index) -> list[Any]:
        return [obj.collection]

    def find_operation(self, obj: Index) -> Operation | None:
        return Operation.active_on(obj)

    def list_buttons(self, request: HttpRequest, obj: Index) -> list[Button]:
        if self.find_operation(obj) is not None:
            return [Button("Cancel", "stop_circle", "cancel_selected")]
        if obj.status == Index.Status.READY:
            href = f"{reverse('admin:collection_try', args=[obj.collection_id])}?index={obj.pk}"
            divide = Button(
                "Divide what was cut", "content_cut", href=_build_dividing_url(obj), needs="retrieval.add_index"
            )
            buttons = [Button("Try a query", "search", href=href, needs="collections.view_collection")]
            return [*buttons, divide] if may_fit(obj) and _is_of_form(obj) else buttons
        return [Button("Build", "play_circle", "build_selected", primary=True)]


def _is_of_form(index: Index) -> bool:
    """Return whether the form of a new index can have the parameters of this one."""
    usual, inputs = STRATEGIES[index.strategy].defaults, {"size", "overlap", "sections", *INPUTS}
    chosen = {name for name, value in index.chunk_parameters.items() if value != usual.get(name)}
    return not index.llm and chosen <= inputs


def _build_dividing_url(index: Index) -> str:
    """Return the address of the form of an index's next version, in which the encoder reads all of every chunk."""
    declared = {"collection": index.collection_id, "fit_encoder": "on"}
    declared |= {name: getattr(index, name) for name in ("name", "encoder", "strategy")}
    flags = {"lexical": "on" if index.lexical else "", "by_section": index.chunk_parameters.get("sections") and "on"}
    inputs = {name: index.chunk_parameters.get(name) for name in ("size", "overlap", *INPUTS)}
    values = declared | flags | inputs | asdict(index.encoder_parameters)
    query = urlencode({name: str(value) for name, value in values.items() if value is not None})
    return f"{reverse('admin:retrieval_index_add')}?{query}"


@admin.register(ChunkSet)
class ChunkSetAdmin(FactAdmin):
    through = "collection"
    list_display = ("__str__", "options", "chunks", "completed_at")
    list_filter = (("collection", VisibleFilter),)
    list_select_related = ("collection",)
    fieldsets = (
        (None, {"fields": ("collection", ("strategy", "chunk_count", "completed_at"), "parameters", "fingerprint")}),
    )

    @display(description="chunks", ordering="chunk_count", empty_value="–")
    def chunks(self, chunks: ChunkSet) -> str | None:
        return None if chunks.chunk_count is None else f"{chunks.chunk_count:,}"

    @display(description="parameters", empty_value="–")
    def options(self, chunks: ChunkSet) -> str | None:
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in chunks.parameters.items()) or None

    def list_trail(self, obj: ChunkSet) -> list[Any]:
        return [obj.collection]


@admin.register(VectorSpace)
class VectorSpaceAdmin(FactAdmin):
    """Admin of the vector cache: a row per model, revision and kind of text. Rows have no owner."""

    list_display = ("encoder", "kind", "entries", "size", "last_used", "short_revision")
    list_filter = ("kind",)
    search_fields = ("encoder",)
    actions = ("clear_selected",)
    fieldsets = (
        (None, {"fields": (("encoder", "revision"), ("kind", "dimension"), ("entries", "size", "last_used"))}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[VectorSpace]:
        return annotate_sizes(VectorSpace.objects.all())

    @admin.action(description="Clear", permissions=["act"])
    def clear_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        def clear(space: VectorSpace) -> str:
            count = clear_vectors(space)
            return f"Deleted {count:,} {space}, {filesizeformat(4 * count * space.dimension)}."

        self.apply_each(request, queryset, clear)
        return redirect(build_list_url(VectorSpace))

    @display(description="vectors", ordering="entries")
    def entries(self, space: Any) -> str:
        return f"{space.entries:,}"

    @display(description="size", ordering="bytes")
    def size(self, space: Any) -> str:
        return filesizeformat(space.bytes)

    @display(description="last used", ordering="last_used")
    def last_used(self, space: Any) -> Any:
        return space.last_used

    @display(description="revision", ordering="revision")
    def short_revision(self, space: VectorSpace) -> str:
        return space.revision[:16]

    def list_buttons(self, request: HttpRequest, obj: VectorSpace) -> list[Button]:
        return [Button("Clear", "delete_sweep", "clear_selected")]


def list_indexes(request: HttpRequest, collection: Collection) -> list[Panel]:
    indexes = visible(Index.objects.filter(collection=collection).order_by("-created_at"), request.user)
    return [Panel("Indexes", indexes, ("__str__", "encoder_name", "chunks", "status_label"))]


add_to(Collection, panels=list_indexes)
