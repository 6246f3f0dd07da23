from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from apps.benchmarks.models import Evaluation, QueryResult, Run
from apps.results import views
from benchbench.admin import FactAdmin, LargeAdmin, VisibleFilter


@admin.register(Run)
class RunAdmin(FactAdmin):
    through = "benchmark"
    list_display = ("label", "benchmark", "run_order", "status_label", "failed_queries", "completed_at")
    list_filter = ("status", ("benchmark", VisibleFilter))
    list_select_related = ("benchmark",)
    search_fields = ("label", "benchmark__name")
    ordering = ("-benchmark__created_at", "run_order")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("benchmark__mapping", "benchmark__dataset_version", "index")

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        return views.run_page(request, self, object_id)

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

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        return views.query_page(request, self, object_id)

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
