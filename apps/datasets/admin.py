"""Admin pages of datasets, their queries and judgments."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import truncatechars
from django.urls import reverse
from unfold.decorators import display

from apps.accounts.selected import ArchiveFilter, TagFilter, TaggedAdmin
from apps.datasets.editing.drafts import build_difference, count_changes, discard_draft
from apps.datasets.filters import KIND_FILTERS, FormatFilter, GradeFilter, NewestFilter, RelevantFilter, name_format
from apps.datasets.formats.registry import WRITERS
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from apps.datasets.searching import SEARCH_HELP, JudgmentSearchAdmin, list_searched
from apps.datasets.views import datasets as views
from apps.datasets.views import queries as query_views
from benchbench.access import AnyUser, may_change
from benchbench.site.admin import FactAdmin, LargeAdmin, OwnedAdmin
from benchbench.site.lists import VisibleFilter
from benchbench.site.panels import Button, Exports, Page, add_button, add_to, build_list_url, change_url, render_value

GRADE_COLOURS = {"3": "success", "2": "success", "1": "info", "0": "default", "-1": "default"}


def add_query_button(dataset: Dataset, user: AnyUser) -> list[Button]:
    """Return the button for adding a query, if the user may add one."""
    href = reverse("admin:query_add", args=[dataset.pk])
    return [Button("Add a query", "add", href=href)] if may_change(dataset, user) else []


@admin.register(Dataset)
class DatasetAdmin(TaggedAdmin, OwnedAdmin):
    list_display = ("name", "query_total", "judgment_total", "newest_version", "created_at", "owner", "format")
    hidden_columns = ("format", "judged", "owner")
    phone_columns = ("value", "created_at")
    list_filter = (ArchiveFilter, TagFilter, FormatFilter)
    actions = ("export_selected", "tag_selected", "archive_selected", "bring_back_selected", "bin_selected")
    search_fields = ("name", "description", "tags")
    autocomplete_fields = ("owner",)
    editable = ("name", "description", "tags", "owner", "team")
    change_form_template = "datasets/dataset.html"
    change_form_outer_before_template = change_form_outer_after_template = ""
    pages = (
        Page("add/", views.upload_dataset, "datasets_dataset_add"),
        Page("preview/", views.preview_dataset, "dataset_preview"),
        Page("<uuid:object_id>/queries/add/", query_views.add_to_dataset, "query_add"),
    )
    fieldsets = (
        (None, {"fields": ("name", "description", "tags", ("owner", "team"))}),
        ("Facts", {"fields": (("format", "schema_version"), ("created_at", "updated_at"), "metadata")}),
    )

    def annotate_rows(self, request: HttpRequest, rows: QuerySet[Dataset]) -> QuerySet[Dataset]:
        versions = DatasetVersion.objects.filter(dataset=OuterRef("pk"))
        frozen = versions.exclude(frozen_at=None).order_by("-number")
        counts = {name: Subquery(frozen.values(name)[:1]) for name in ("number", "query_count", "judgment_count")}
        return super().annotate_rows(request, rows.annotate(draft=Exists(versions.filter(frozen_at=None)), **counts))

    @display(description="queries", ordering="query_count", empty_value="–")
    def query_total(self, dataset: Any) -> str | None:
        return None if dataset.query_count is None else f"{dataset.query_count:,}"

    @display(description="judgments", ordering="judgment_count", empty_value="–")
    def judgment_total(self, dataset: Any) -> str | None:
        return None if dataset.judgment_count is None else f"{dataset.judgment_count:,}"

    @display(description="format", ordering="source_format")
    def format(self, dataset: Dataset) -> str:
        return name_format(dataset.source_format)

    @display(description="newest version", ordering="number", empty_value="–")
    def newest_version(self, dataset: Any) -> str | None:
        names = [f"v{dataset.number}"] if dataset.number else []
        return ", ".join([*names, "with a draft"] if dataset.draft else names) or None

    def render_change_form(self, request: HttpRequest, context: dict[str, object], *args: Any, **kwargs: Any) -> Any:
        if dataset := kwargs.get("obj"):
            context |= views.describe_dataset(dataset)
        return super().render_change_form(request, context, *args, **kwargs)

    def list_buttons(self, request: HttpRequest, obj: Dataset) -> list[Button]:
        history = reverse("admin:dataset_history", args=[obj.pk])
        run = f"{reverse('admin:run_import')}?dataset={obj.pk}"
        buttons = [
            Button("History", "timeline", href=history),
            add_button("Map to a collection", "join_inner", "mappings.mapping", dataset=obj.pk),
            Button("Import a run", "upload", href=run, needs="benchmarks.add_benchmark"),
        ]
        if may_change(obj, request.user):
            buttons.append(add_button("Upload the next version", "upload_file", "datasets.dataset", dataset=obj.pk))
        return [*buttons, *add_query_button(obj, request.user)]


add_to(Dataset, exports=Exports({name: writer.label for name, writer in WRITERS.items()}, views.build_export))


@admin.register(DatasetVersion)
class DatasetVersionAdmin(FactAdmin):
    through = "dataset"
    list_display = ("__str__", "label", "query_total", "judgment_total", "frozen_at")
    list_filter = (("dataset", VisibleFilter),)
    list_select_related = ("dataset",)
    fieldsets = (
        (None, {"fields": (("number", "label"), ("query_total", "judgment_total"), "frozen_at", "note")}),
        ("Facts", {"fields": ("content_hash", ("created_at", "updated_at"))}),
    )
    change_form_outer_after_template = "datasets/version_after.html"
    pages = (Page("<uuid:object_id>/export/<str:format>/", views.download_version, "dataset_export"),)

    def render_change_form(self, request: HttpRequest, context: dict[str, object], *args: Any, **kwargs: Any) -> Any:
        version = kwargs.get("obj")
        difference = build_difference(version) if version and version.number > 1 else None
        context |= {"writers": WRITERS, "differing": views.list_tables(request, difference) if difference else None}
        return super().render_change_form(request, context, *args, **kwargs)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may delete the row: only a draft, whose edits are discarded."""
        return obj is not None and obj.frozen_at is None and may_change(obj.dataset, request.user)

    @display(description="queries", ordering="query_count", empty_value="–")
    def query_total(self, version: DatasetVersion) -> str | None:
        """Return the number of queries, which is counted when a draft is frozen."""
        return f"{version.query_count:,}" if version.frozen_at else None

    @display(description="judgments", ordering="judgment_count", empty_value="–")
    def judgment_total(self, version: DatasetVersion) -> str | None:
        return f"{version.judgment_count:,}" if version.frozen_at else None

    def delete_row(self, obj: DatasetVersion) -> None:
        discard_draft(obj.dataset)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[list[str], dict[Any, int], set[str], list]:
        """Return the edits as the deleted objects. Rows that the draft shares with frozen versions stay."""
        edits = [f"edits since the newest frozen version, {count_changes(version).sentence}" for version in objs]
        return edits, {}, set(), []

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: int) -> HttpResponse:
        self.message_user(request, f"Discarded {obj_display}: the newest frozen version is the newest again.")
        return redirect(build_list_url(Dataset))

    def list_buttons(self, request: HttpRequest, obj: DatasetVersion) -> list[Button]:
        return add_query_button(obj.dataset, request.user) if obj.frozen_at is None else []

    def list_trail(self, obj: DatasetVersion) -> list[Any]:
        return [obj.dataset]


@admin.register(Query)
class QueryAdmin(LargeAdmin):
    through = "dataset"
    list_display = ("short_text", "key", "judged", "relevant", "category", "difficulty", "split", "dataset")
    phone_columns = ("judged", "relevant")
    list_filter = (NewestFilter, RelevantFilter, ("dataset", VisibleFilter), *KIND_FILTERS)
    search_fields = ("=key", "text")
    search_help_text = "Words of the query, or its key"
    ordering = ("dataset_id", "id")
    pages = (Page("<int:query_id>/edit/", query_views.edit, "query_edit"),)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("dataset")

    def annotate_rows(self, request: HttpRequest, rows: QuerySet[Query]) -> QuerySet[Query]:
        current = Judgment.objects.filter(query=OuterRef("pk"), until=None).order_by().values("query")
        counts = {"total": Count("pk"), "hits": Count("pk", filter=Q(grade__gt=0))}
        counted = {name: Subquery(current.annotate(number=count).values("number")) for name, count in counts.items()}
        return super().annotate_rows(request, rows.annotate(**counted))

    @display(description="query", ordering="text")
    def short_text(self, query: Query) -> str:
        return truncatechars(query.text, 160)

    @display(description="judged")
    def judged(self, query: Any) -> str:
        return f"{query.total or 0:,}"

    @display(description="relevant")
    def relevant(self, query: Any) -> str:
        return f"{query.hits or 0:,}"

    def list_buttons(self, request: HttpRequest, obj: Query) -> list[Button]:
        if obj.until is not None:
            now = Query.objects.filter(dataset=obj.dataset_id, key=obj.key, until=None).first()
            return [Button("As it is now", "update", href=change_url(now))] if now else []
        if not may_change(obj.dataset, request.user):
            return []
        return [Button("Edit the query", "edit", href=reverse("admin:query_edit", args=[obj.pk]))]

    def describe_found(self, obj: Query) -> str:
        return truncatechars(obj.text, 120)

    def list_trail(self, obj: Query) -> list[Any]:
        return [obj.dataset]


@admin.register(Judgment)
class JudgmentAdmin(JudgmentSearchAdmin):
    through = "query__dataset"
    list_display = ("document", "grade_label", "query_text", "query_key", "source", "judge", "versions", "dataset")
    phone_columns = ("grade_label", "query_text")
    list_select_related = ("query__dataset",)
    list_filter = (NewestFilter, GradeFilter, "source", ("query__dataset", VisibleFilter))
    search_fields = list_searched()
    search_help_text = SEARCH_HELP
    ordering = ("query_id", "id")
    fieldsets = (
        (None, {"fields": ("query_text", ("document", "grade"), ("source", "judge"), "note")}),
        ("Facts", {"fields": (("versions", "created_at"), "doc_reference", "sections")}),
    )

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Judgment:
        row = super().get_object(request, object_id, from_field)
        judgments: QuerySet[Judgment] = self.annotate_rows(request, self.get_queryset(request))
        return judgments.get(pk=row.pk)

    @display(description="document", ordering="ref_hash")
    def document(self, judgment: Judgment) -> str:
        reference = truncatechars(judgment.reference, 160)
        title = getattr(judgment, "title", None)  # which a higher room annotates
        return f"{reference} · {truncatechars(title, 160)}" if title and title not in judgment.reference else reference

    @display(description="reference")
    def doc_reference(self, judgment: Judgment) -> str:
        return render_value(judgment.doc_ref)

    @display(description="sections")
    def sections(self, judgment: Judgment) -> str:
        return render_value(judgment.section_refs)

    @display(description="key", ordering="query__key")
    def query_key(self, judgment: Judgment) -> str:
        return judgment.query.key

    @display(description="query")
    def query_text(self, judgment: Judgment) -> str:
        return truncatechars(judgment.query.text, 160)

    @display(description="dataset", ordering="query__dataset__name")
    def dataset(self, judgment: Judgment) -> str:
        return str(judgment.query.dataset)

    @display(description="versions", ordering="since")
    def versions(self, judgment: Judgment) -> str:
        if judgment.until is None:
            return f"since v{judgment.since}"
        last = judgment.until - 1
        return f"v{last}" if judgment.since == last else f"v{judgment.since} to v{last}"

    @display(description="grade", ordering="grade", label=GRADE_COLOURS)
    def grade_label(self, judgment: Judgment) -> str:
        return str(judgment.grade)

    def list_buttons(self, request: HttpRequest, obj: Judgment) -> list[Button]:
        if obj.until is not None or obj.query.until is not None or not may_change(obj.query.dataset, request.user):
            return []
        href = f"{reverse('admin:query_judge', args=[obj.query_id])}?judgment={obj.pk}"
        return [Button("Judge", "edit_note", href=href)]

    def list_trail(self, obj: Judgment) -> list[Any]:
        return [obj.query.dataset, obj.query]
