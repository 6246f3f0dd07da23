"""Addresses of results below the admin pages of benchmarks and runs."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from unfold.decorators import display

from apps.benchmarks.gates.baselines import retire
from apps.benchmarks.models import Baseline, Evaluation, QueryResult, Run
from apps.benchmarks.views import benchmarks
from apps.results.views import comparison as comparison_views
from apps.results.views import exports as export_views
from apps.results.views import judging as judging_views
from apps.results.views import measures as measure_views
from apps.results.views import results as views
from benchbench.site.admin import FactAdmin, LargeAdmin, VisibleFilter
from benchbench.site.pages import staff
from benchbench.site.panels import Button, change_url


@admin.register(Run)
class RunAdmin(FactAdmin):
    through = "benchmark"
    list_display = ("label", "benchmark", "run_order", "status_label", "failed_queries", "completed_at")
    list_filter = ("status", ("benchmark", VisibleFilter))
    list_select_related = ("benchmark",)
    search_fields = ("label", "benchmark__name")
    ordering = ("-benchmark__created_at", "run_order")
    actions = ("compare_selected",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("benchmark__mapping", "benchmark__dataset_version", "index")

    def get_urls(self) -> list[URLPattern]:
        view, given = self.admin_site.admin_view, {"model_admin": self}
        return [
            path("<uuid:object_id>/coverage/", view(measure_views.run_coverage), given, "run_coverage"),
            path("<uuid:object_id>/sections/", view(measure_views.run_sections), given, "run_sections"),
            path("<uuid:object_id>/content/", view(measure_views.run_content), given, "run_content"),
            path("<uuid:object_id>/export/<str:format>/", view(export_views.download), given, "run_export"),
            path("<uuid:object_id>/gate/", view(benchmarks.gate_page), given, "run_gate"),
            path("compare/", view(comparison_views.comparison_page), given, "run_compare"),
            *super().get_urls(),
        ]

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        return views.run_page(request, self, object_id)

    @admin.action(description="Compare", permissions=["view"])
    def compare_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse:
        asked = urlencode({"run": list(queryset.values_list("pk", flat=True))}, doseq=True)
        return redirect(f"{reverse('admin:run_compare')}?{asked}")

    def buttons(self, request: HttpRequest, obj: Run) -> list[Button]:
        if obj.status != Run.Status.COMPLETED:
            return []
        pin = f"{reverse('admin:benchmarks_baseline_add')}?run={obj.pk}"
        return [
            Button("Gate against baseline", "door_front", href=reverse("admin:run_gate", args=[obj.pk])),
            Button("Pin as baseline", "keep", href=pin, needs="benchmarks.add_baseline"),
        ]

    def trail(self, obj: Run) -> list[Any]:
        mapping = obj.benchmark.mapping
        return [mapping.collection, mapping.dataset, mapping, obj.benchmark]


@admin.register(QueryResult)
class QueryResultAdmin(LargeAdmin):
    through = "run__benchmark"
    list_display = ("query", "run", "repetition", "total_ms", "error")
    list_filter = (("run__benchmark", VisibleFilter), ("error", admin.EmptyFieldListFilter))
    list_select_related = ("run", "query")
    search_fields = ("=query__key",)
    search_help_text = "The key of a query"
    ordering = ("id",)

    def get_queryset(self, request: HttpRequest) -> Any:
        results = super().get_queryset(request)
        match = request.resolver_match
        on_its_page = match is not None and match.url_name == "benchmarks_queryresult_change"
        made_from = ("query__dataset", "run__index", "run__benchmark__dataset_version__dataset")
        mapping = ("run__benchmark__mapping__dataset", "run__benchmark__mapping__dataset_version")
        return results.select_related(*made_from, *mapping) if on_its_page else results

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        return views.query_page(request, self, object_id)

    def get_urls(self) -> list[URLPattern]:
        page, given = self.admin_site.admin_view(judging_views.judge_by_result), {"model_admin": self}
        return [
            path("<int:object_id>/judge/<int:document_id>/", page, given, "queryresult_judge"),
            *super().get_urls(),
        ]

    def trail(self, obj: QueryResult) -> list[Any]:
        return [obj.run.benchmark.mapping, obj.run.benchmark, obj.run]


@admin.register(Evaluation)
class EvaluationAdmin(FactAdmin):
    through = "run__benchmark"
    list_display = ("run", "dataset_version", "query_count", "failed_queries", "created_at")
    list_select_related = ("run", "dataset_version__dataset")
    list_filter = (("run__benchmark", VisibleFilter),)
    fieldsets = (
        (None, {"fields": (("run", "dataset_version"), ("query_count", "failed_queries"), "means")}),
        ("Facts", {"fields": (("unresolved_count", "unresolved_share"), "created_at", "policies")}),
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("values", "query_ids")

    def trail(self, obj: Evaluation) -> list[Any]:
        return [obj.run.benchmark, obj.run]


@admin.register(Baseline)
class BaselineAdmin(FactAdmin):
    through = "run__benchmark"
    list_display = ("name", "dataset", "run_link", "state", "approved_by", "created_at", "reason")
    list_filter = (("dataset", VisibleFilter), ("retired_at", admin.EmptyFieldListFilter))
    list_select_related = ("dataset", "run__benchmark", "approved_by")
    search_fields = ("name", "reason", "run__label")
    actions = ("retire_selected",)
    fieldsets = (
        (None, {"fields": ("reason", ("run", "dataset"), ("approved_by", "created_at"), ("retired_by", "retired_at"))}),
    )

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("benchmarks.add_baseline")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only what is retired: while its row stands, its benchmark cannot be deleted."""
        return request.user.has_perm("benchmarks.delete_baseline") and obj is not None and obj.retired_at is not None

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        return benchmarks.add_baseline(request, self)

    @admin.action(description="Retire", permissions=["act"])
    def retire_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        def end(baseline: Baseline) -> str:
            retire(baseline, by=staff(request))
            return f'"{baseline.name}" of {baseline.dataset} is retired: no gate is held against it any more.'

        return self.each(request, queryset, end)

    @display(description="run", ordering="run__label")
    def run_link(self, baseline: Baseline) -> str:
        return format_html('<a href="{}">{}</a>', change_url(baseline.run), baseline.run)

    @display(description="state", label={"current": "success", "retired": "default"})
    def state(self, baseline: Baseline) -> str:
        return "retired" if baseline.retired_at else "current"

    def trail(self, obj: Baseline) -> list[Any]:
        return [obj.dataset, obj.run.benchmark, obj.run]

    def buttons(self, request: HttpRequest, obj: Baseline) -> list[Button]:
        return [] if obj.retired_at else [Button("Retire", "history_toggle_off", "retire_selected")]
