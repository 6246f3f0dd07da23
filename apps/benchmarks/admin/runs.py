"""Admin pages of runs, their rankings and evaluations."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin import ModelAdmin
from django.db.models import Model, OuterRef, QuerySet, Value
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import truncatechars
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from unfold.decorators import display

from apps.accounts.selected import ArchiveFilter, ExportingAdmin, TagFilter
from apps.benchmarks.admin import columns
from apps.benchmarks.fields import describe_policies
from apps.benchmarks.views import gates as gate_views
from apps.datasets.models import Dataset
from apps.execution.running.timing import find_execution
from apps.records.measuring.primary import select_facts
from apps.records.models import Baseline, Benchmark, Evaluation, QueryResult, Run
from apps.retrieval.models import Index
from apps.retrieval.naming import name_strategy
from apps.verdicts.gates.baselines import retire
from benchbench.access import staff, visible
from benchbench.decimals import figure, format_ms, format_share
from benchbench.ir.planning.configuration import SEARCH_MODES
from benchbench.ir.planning.labels import name_mode, strip_model_path
from benchbench.site.admin import FactAdmin, LargeAdmin
from benchbench.site.lists import VisibleFilter, filter_empty, read_measure
from benchbench.site.panels import Button, Page, Panel, add_to, build_list_url, change_url, render_value


class ModeFilter(admin.SimpleListFilter):
    """Filter of runs by search mode."""

    title = "mode"
    parameter_name = "mode"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, str]]:
        return [(mode, name_mode(mode)) for mode in SEARCH_MODES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> Any:
        return queryset.filter(config__search_mode=self.value()) if self.value() else queryset


@admin.register(Run)
class RunAdmin(columns.MeasuredAdmin, ExportingAdmin, FactAdmin):
    through = "benchmark"
    tags = "benchmark__tags"
    list_display = (
        *("label", "status_label", columns.value, columns.judged, "latency", "mode", "reranker", "strategy", "top_k"),
        *("benchmark", "completed_at", "failed_queries", "run_order"),
    )
    hidden_columns = ("failed_queries", "run_order", "judged", "strategy", "mode", "reranker", "top_k")
    phone_columns = ("value", "completed_at")
    list_per_page = 20  # a row has about 10 kB
    list_filter = (
        *(ArchiveFilter, TagFilter, "status"),
        ModeFilter,
        ("benchmark__dataset_version__dataset", VisibleFilter),
        ("benchmark", VisibleFilter),
        ("index", VisibleFilter),
    )
    search_fields = ("label", "benchmark__name")
    ordering = ("-benchmark__created_at", "run_order")
    actions = ("compare_selected", "export_selected")
    direct_action = "compare_selected"
    pages = (Page("<uuid:object_id>/gate/", gate_views.gate_page, "run_gate"),)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("benchmark__mapping", "benchmark__dataset_version", "index")

    def annotate_rows(self, request: HttpRequest, rows: QuerySet[Model]) -> Any:
        facts = select_facts(measure=read_measure(request), run=OuterRef("pk"))
        annotated = rows.annotate(facts=facts).defer("provenance", "traceback")
        return super().annotate_rows(request, annotated)

    @display(description="mode", ordering="config__search_mode", empty_value="external")
    def mode(self, run: Run) -> str | None:
        return None if run.is_external else name_mode(run.configuration.search_mode)

    @display(description="reranker", ordering="config__use_reranker", empty_value="–")
    def reranker(self, run: Run) -> str | None:
        if not run.configuration.use_reranker:
            return None
        return strip_model_path(run.configuration.effective_reranker)

    @display(description="strategy", ordering="index__strategy", empty_value="–")
    def strategy(self, run: Run) -> str | None:
        return name_strategy(run.index.strategy, run.index.chunk_parameters) if run.index else None

    @display(description="top k", ordering="config__top_k", empty_value="–")
    def top_k(self, run: Run) -> int | None:
        return None if run.is_external else run.configuration.top_k

    @display(description="latency (ms)", ordering="timing__total_ms", empty_value="–")
    def latency(self, run: Run) -> str | None:
        ms = run.times.total_ms
        return None if ms is None else format_ms(ms)

    @admin.action(description="Compare", permissions=["view"])
    def compare_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        if len(queryset) < 2:
            self.message_user(request, "A comparison needs at least two runs: select another.", messages.ERROR)
            return None
        parameters = urlencode({"run": list(queryset.values_list("pk", flat=True))}, doseq=True)
        return redirect(f"{reverse('admin:run_compare')}?{parameters}")

    def list_buttons(self, request: HttpRequest, obj: Run) -> list[Button]:
        if obj.status != Run.Status.COMPLETED:
            return []
        pin = f"{reverse('admin:benchmarks_baseline_add')}?run={obj.pk}"
        return [
            Button("Gate against baseline", "door_front", href=reverse("admin:run_gate", args=[obj.pk])),
            Button("Pin as baseline", "keep", href=pin, needs="benchmarks.add_baseline"),
        ]

    def describe_found(self, obj: Run) -> str:
        return f"run of {obj.benchmark}"

    def list_trail(self, obj: Run) -> list[Any]:
        mapping = obj.benchmark.mapping
        return [mapping.collection, mapping.dataset, mapping, obj.benchmark]


@admin.register(QueryResult)
class QueryResultAdmin(LargeAdmin):
    through = "run__benchmark"
    list_display = ("query", "text", "run", "repetition", "time", "error")
    hidden_columns = ("repetition",)
    phone_columns = ("text", "run")
    list_filter = (("run__benchmark", VisibleFilter), ("error", filter_empty("result", "Answered", "Failed")))
    list_select_related = ("run__benchmark", "query")
    search_fields = ("=query__key", "query__text")
    search_help_text = "Words of the query, or its key"
    ordering = ("stage_list_id", "place")

    def get_queryset(self, request: HttpRequest) -> Any:
        results = super().get_queryset(request)
        match = request.resolver_match
        on_its_page = match is not None and match.url_name == "benchmarks_queryresult_change"
        made_from = ("query__dataset", "run__benchmark__dataset_version__dataset")
        index = ("run__index__chunk_set", "run__index__lexical_index__chunk_set")
        mapping = (f"run__benchmark__mapping__{name}" for name in ("dataset", "dataset_version", "collection"))
        return results.select_related(*made_from, *index, *mapping) if on_its_page else results

    @admin.display(description="Text")
    def text(self, obj: QueryResult) -> str:
        return truncatechars(obj.query.text, 160)

    @admin.display(description="Time")
    def time(self, obj: QueryResult) -> str:
        if obj.total_ms is None:
            return "–"
        shared = find_execution(obj.run.benchmark, obj.total_ms) == Benchmark.Execution.SHARED
        return f"{obj.total_ms:.1f} ms{', shared' if shared else ''}"

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        result = self.get_queryset(request).filter(QueryResult.filter_number(int(object_id))).first()
        if result is None:
            raise Http404(f"The ranking {object_id} does not exist, or you may not see it.")
        return result

    def list_trail(self, obj: QueryResult) -> list[Any]:
        return [obj.run.benchmark.mapping, obj.run.benchmark, obj.run]


@admin.register(Evaluation)
class EvaluationAdmin(FactAdmin):
    through = "run__benchmark"
    list_display = ("run", "benchmark", "dataset_version", "mean", "query_count", "failed_queries", "created_at")
    hidden_columns = ("failed_queries",)
    phone_columns = ("mean", "dataset_version")
    list_select_related = ("run__benchmark", "dataset_version__dataset")
    list_filter = (("run__benchmark", VisibleFilter),)
    fieldsets = (
        (None, {"fields": (("run", "dataset_version"), ("query_count", "failed_queries"), "values_of_measures")}),
        ("Facts", {"fields": (("unresolved_count", "lost_gain"), "created_at", "policies_text")}),
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("values", "query_ids")

    def list_trail(self, obj: Evaluation) -> list[Any]:
        return [obj.run.benchmark, obj.run]

    @admin.display(description="benchmark", ordering="run__benchmark__name")
    def benchmark(self, obj: Evaluation) -> str:
        return obj.run.benchmark.name

    @display(description="value", empty_value="–")
    def mean(self, obj: Evaluation) -> str | None:
        measure = f"nDCG@{obj.run.benchmark.primary_k}"
        number = obj.means.get(measure)
        return None if number is None else format_html('{} <span class="bb-hint">{}</span>', figure(number), measure)

    @admin.display(description="gain lost to unresolved judgments")
    def lost_gain(self, obj: Evaluation) -> str:
        return format_share(obj.unresolved_share)

    @admin.display(description="policies")
    def policies_text(self, obj: Evaluation) -> str:
        return render_value(describe_policies(obj.policies))

    @admin.display(description="means")
    def values_of_measures(self, obj: Evaluation) -> str:
        return render_value({name: None if mean is None else figure(mean) for name, mean in obj.means.items()})


def show_runs(request: HttpRequest, index: Index) -> list[Panel]:
    runs = visible(Run.objects.filter(index=index).select_related("benchmark"), request.user, through="benchmark")
    columns = ("label", "benchmark", "status_label")
    every = build_list_url(Run, index__id__exact=index.pk)
    return [Panel("Runs", runs.order_by("-benchmark__created_at", "run_order"), columns, every=every)]


add_to(Index, panels=show_runs)


@admin.register(Baseline)
class BaselineAdmin(FactAdmin):
    through = "run__benchmark"
    list_display = ("name", "dataset", "run_link", "state", "reason", "created_at", "approved_by")
    list_filter = (("dataset", VisibleFilter), ("retired_at", filter_empty("state", "Current", "Retired")))
    list_select_related = ("dataset", "run__benchmark", "approved_by")
    search_fields = ("name", "reason", "run__label")
    actions = ("retire_selected",)
    pages = (Page("add/", gate_views.add_baseline, "benchmarks_baseline_add"),)
    fieldsets = (
        (None, {"fields": ("reason", ("run", "dataset"), ("approved_by", "created_at"), ("retired_by", "retired_at"))}),
    )

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm("benchmarks.add_baseline")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow deleting retired baselines only. A benchmark cannot be deleted while one of its baselines exists."""
        return request.user.has_perm("benchmarks.delete_baseline") and obj is not None and obj.retired_at is not None

    def annotate_rows(self, request: HttpRequest, rows: QuerySet[Model]) -> QuerySet[Model]:
        opens = Value(request.user.has_perm("benchmarks.view_run"))
        return super().annotate_rows(request, rows.annotate(opens_run=opens))

    @admin.action(description="Retire", permissions=["act"])
    def retire_selected(self, request: HttpRequest, queryset: Iterable[Model]) -> HttpResponse | None:
        def end(baseline: Baseline) -> str:
            retire(baseline, by=staff(request))
            return f'"{baseline.name}" of {baseline.dataset} is retired: gates no longer use it.'

        return self.apply_each(request, queryset, end)

    @display(description="run", ordering="run__label")
    def run_link(self, baseline: Baseline) -> str:
        if not getattr(baseline, "opens_run", True):
            return str(baseline.run)
        return format_html('<a href="{}">{}</a>', change_url(baseline.run), baseline.run)

    @display(description="state", label={"current": "success", "retired": "default"})
    def state(self, baseline: Baseline) -> str:
        return "retired" if baseline.retired_at else "current"

    def list_trail(self, obj: Baseline) -> list[Any]:
        return [obj.dataset, obj.run.benchmark, obj.run]

    def list_buttons(self, request: HttpRequest, obj: Baseline) -> list[Button]:
        return [] if obj.retired_at else [Button("Retire", "history_toggle_off", "retire_selected")]


def show_baselines(request: HttpRequest, dataset: Dataset) -> list[Panel]:
    baselines = Baseline.objects.filter(dataset=dataset).select_related("run", "approved_by")
    rows = visible(baselines, request.user, through="run__benchmark")
    columns = ("name", "run_link", "state", "approved_by", "created_at", "reason")
    return [Panel("Baselines", rows, columns, every=build_list_url(Baseline, dataset__id__exact=dataset.pk))]


add_to(Dataset, panels=show_baselines)
