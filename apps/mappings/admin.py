"""Admin pages of mappings."""

from typing import Any, cast

from django.contrib import admin
from django.db.models import Model, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Coalesce, NullIf
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from unfold.decorators import display

from apps.collections.models import Collection
from apps.datasets.editing.drafts import find_draft
from apps.datasets.formats.registry import WRITERS
from apps.datasets.models import Dataset, Judgment
from apps.datasets.searching import SEARCH_HELP, JudgmentSearchAdmin, list_searched
from apps.engines.declarations import list_engines
from apps.mappings import views
from apps.mappings.creating import delete_dataset, delete_mapping
from apps.mappings.models import Mapping, Resolution, filter_at
from apps.mappings.repairing import load_unresolved
from apps.mappings.resolving import is_stale, resolve
from apps.operations.models import Operation
from benchbench.access import may_change, staff, viewable, visible
from benchbench.site.admin import STATUS_COLOURS, FactsFirstAdmin
from benchbench.site.lists import VisibleFilter
from benchbench.site.panels import Button, Page, Panel, add_button, add_to, build_list_url, change_url


def repair_url(resolution: Resolution) -> str:
    """Return the address of the repair page for a current judgment without a document, else of the resolution."""
    if resolution.outcome == Resolution.Outcome.RESOLVED or resolution.judgment.until is not None:
        return change_url(resolution)
    return reverse("admin:resolution_repair", args=[resolution.pk])


@admin.register(Mapping)
class MappingAdmin(FactsFirstAdmin):
    list_display = ("name", "status_label", "dataset", "collection", "resolved", "resolved_at", "owner")
    list_filter = ("status", ("dataset", VisibleFilter), ("collection", VisibleFilter))
    list_select_related = ("owner", "dataset", "collection")
    search_fields = ("name", "dataset__name", "collection__name")
    autocomplete_fields = ("owner",)
    actions = ("resolve_selected", "bin_selected")
    editable = ("name", "owner", "team")
    facts = ("resolved", "outcomes", "up_to_date", "dataset_version", "resolved_at", "created_at", "owner", "team")
    edited = "name and owner"
    fieldsets = ((None, {"fields": ("name", ("owner", "team"))}),)

    head_template = "datasets/head.html"
    after_template = "mappings/mapping_after.html"
    pages = (
        Page("add/", views.add_mapping, "mappings_mapping_add"),
        Page("<uuid:object_id>/export/<str:format>/", views.download_mapped, "mapping_export"),
    )

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the mapping with its attribute `stale`, computed once because the page reads it several times."""
        mapping = super().get_object(request, object_id, from_field)
        vars(mapping)["stale"] = is_stale(cast(Mapping, mapping))
        return mapping

    def render_change_form(self, request: HttpRequest, context: dict[str, object], *args: Any, **kwargs: Any) -> Any:
        mapping = kwargs.get("obj")
        writers = WRITERS if mapping and views.may_download(mapping, request.user) else {}
        return super().render_change_form(request, context | {"writers": writers}, *args, **kwargs)

    def delete_row(self, obj: Mapping) -> None:
        delete_mapping(obj)

    @admin.action(description="Resolve", permissions=["act"])
    def resolve_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        return self.apply_each(
            request, queryset, lambda mapping: views.describe_outcome(resolve(mapping, by=staff(request)))
        )

    @display(description="with a document", ordering="mapped_count")
    def resolved(self, mapping: Mapping) -> str:
        return f"{mapping.mapped_count:,} of {mapping.total_count:,} judgments"

    @display(description="outcomes")
    def outcomes(self, mapping: Mapping) -> str:
        counted = [f"{count:,} {outcome.replace('_', ' ')}" for outcome, count in mapping.counts.items() if count]
        return ", ".join(counted) or "none yet"

    @display(description="up to date")
    def up_to_date(self, mapping: Mapping) -> str:
        if mapping.status == Mapping.Status.PENDING:
            return "Not resolved yet."
        if vars(mapping)["stale"]:
            return "No: the dataset or the collection has changed since. Resolve it again before the next benchmark."
        draft = " Freeze the draft to include it." if find_draft(mapping.dataset) else ""
        return (
            f"Yes, for {mapping.dataset_version}: no newer version is frozen, and the collection is unchanged.{draft}"
        )

    def list_trail(self, obj: Mapping) -> list[Any]:
        return [obj.collection, obj.dataset]

    def find_operation(self, obj: Mapping) -> Operation | None:
        return Operation.active_on(obj)

    def list_buttons(self, request: HttpRequest, obj: Mapping) -> list[Button]:
        again = obj.status != Mapping.Status.PENDING
        buttons = [Button("Resolve again" if again else "Resolve", "join_inner", "resolve_selected", primary=not again)]
        has_ids_alone = obj.collection.kind == Collection.Kind.EXTERNAL
        if again and has_ids_alone:
            href = f"{reverse('admin:run_import')}?dataset={obj.dataset_id}"
            buttons.append(Button("Import a run", "upload", href=href, primary=True, needs="benchmarks.add_benchmark"))
        if again and (not has_ids_alone or list_engines()):
            leads = add_button("New benchmark", "leaderboard", "benchmarks.benchmark", primary=True, mapping=obj.pk)
            buttons.append(leads)
        return buttons

    def list_panels(self, request: HttpRequest, obj: Mapping) -> list[Panel]:
        repairs = may_change(obj.dataset, request.user)
        return [
            Panel(
                "Judgments without a document",
                load_unresolved(obj),
                ("reference", "query", "outcome_label", "reason_text", "drafted"),
                page=repair_url if repairs else change_url,
                total=obj.total_count - obj.mapped_count,
                every=build_list_url(
                    Resolution, mapping__id__exact=obj.pk, outcome__in="not_found,ambiguous,invalid_ref"
                ),
            ),
        ]


@admin.register(Resolution)
class ResolutionAdmin(JudgmentSearchAdmin):
    judgment = "judgment"
    through = "mapping"
    list_display = ("reference", "query", "outcome_label", "document", "matched_by", "reason_text", "drafted")
    list_select_related = ("judgment__query", "document")
    list_filter = ("outcome", ("mapping", VisibleFilter))
    search_fields = list_searched("judgment__")
    search_help_text = SEARCH_HELP
    ordering = ("mapping_id", "judgment_id")
    fieldsets = (
        (
            None,
            {"fields": ("mapping", ("judgment", "query"), ("outcome_label", "matched_by"), "document", "reason_text")},
        ),
    )
    pages = (Page("<int:object_id>/repair/", views.repair, "resolution_repair"),)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).filter(filter_at(None)).defer("document__text")

    def list_buttons(self, request: HttpRequest, obj: Resolution) -> list[Button]:
        repairs = repair_url(obj) != change_url(obj) and may_change(obj.mapping.dataset, request.user)
        return [Button("Repair", "build", href=repair_url(obj), primary=True)] if repairs else []

    @display(description="reference")
    def reference(self, resolution: Resolution) -> str:
        return resolution.judgment.reference[:160]

    @display(description="matched by", ordering="key", empty_value="–")
    def matched_by(self, resolution: Resolution) -> str:
        return resolution.key.replace("_", " ")

    @display(description="reason", ordering="reason", empty_value="–")
    def reason_text(self, resolution: Resolution) -> str:
        return resolution.reason_in_words

    @display(description="query")
    def query(self, resolution: Resolution) -> str:
        return resolution.judgment.query.heading

    @display(description="since")
    def drafted(self, resolution: Resolution) -> str:
        return "" if resolution.judgment.until is None else f"changed or removed in v{resolution.judgment.until}"

    @display(description="outcome", ordering="outcome", label=STATUS_COLOURS)
    def outcome_label(self, resolution: Resolution) -> str:
        return resolution.outcome.replace("_", " ")

    def list_trail(self, obj: Resolution) -> list[Any]:
        return [obj.mapping]


def show_mappings(request: HttpRequest, collection: Collection) -> list[Panel]:
    mappings = visible(Mapping.objects.filter(collection=collection).select_related("dataset"), request.user)
    return [Panel("Mappings", mappings, ("name", "dataset", "resolved", "status_label"))]


def annotate_titles(request: HttpRequest, judgments: QuerySet[Judgment]) -> QuerySet[Judgment]:
    """Add the title of each judgment's document, or how its text begins, where a mapping that the user sees has it."""
    if not request.user.has_perm("collections.view_document"):
        return judgments.annotate(title=Value("", TextField()))
    resolutions = viewable(Resolution.objects.at(None), request.user, through="mapping").filter(
        judgment__query=OuterRef("query"),  # a changed judgment has the reference of one that is resolved
        judgment__ref_hash=OuterRef("ref_hash"),
        document__collection__in=viewable(Collection.objects.all(), request.user),
    )
    name = Coalesce(NullIf("document__title", Value("", TextField())), "document__opening")
    return judgments.annotate(title=Subquery(resolutions.order_by("pk").values(name=name)[:1]))


add_to(Collection, panels=show_mappings)
add_to(Judgment, annotate=annotate_titles)
add_to(Dataset, delete=delete_dataset, along=(Mapping,))
