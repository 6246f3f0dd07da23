"""Admin pages of baselines."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from unfold.decorators import display

from apps.benchmarks.gates.baselines import retire
from apps.benchmarks.models import Baseline
from apps.benchmarks.views import gates as gate_views
from apps.datasets.models import Dataset
from benchbench.access import visible
from benchbench.site.admin import FactAdmin, VisibleFilter
from benchbench.site.pages import staff
from benchbench.site.panels import Button, Page, Panel, add_to, change_url, changelist_url


@admin.register(Baseline)
class BaselineAdmin(FactAdmin):
    through = "run__benchmark"
    list_display = ("name", "dataset", "run_link", "state", "approved_by", "created_at", "reason")
    list_filter = (("dataset", VisibleFilter), ("retired_at", admin.EmptyFieldListFilter))
    list_select_related = ("dataset", "run__benchmark", "approved_by")
    search_fields = ("name", "reason", "run__label")
    actions = ("retire_selected",)
    pages = (Page("add/", gate_views.add_baseline, "benchmarks_baseline_add"),)
    fieldsets = (
        (None, {"fields": ("reason", ("run", "dataset"), ("approved_by", "created_at"), ("retired_by", "retired_at"))}),
    )

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("benchmarks.add_baseline")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only what is retired: while its row stands, its benchmark cannot be deleted."""
        return request.user.has_perm("benchmarks.delete_baseline") and obj is not None and obj.retired_at is not None

    @admin.action(description="Retire", permissions=["act"])
    def retire_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        def end(baseline: Baseline) -> str:
            retire(baseline, by=staff(request))
            return f'"{baseline.name}" of {baseline.dataset} is retired: gates do not compare with it any more.'

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


def baselines_of(request: HttpRequest, dataset: Dataset) -> list[Panel]:
    baselines = Baseline.objects.filter(dataset=dataset).select_related("run", "approved_by")
    rows = visible(baselines, request.user, through="run__benchmark")
    columns = ("name", "run_link", "state", "approved_by", "created_at", "reason")
    return [Panel("Baselines", rows, columns, every=changelist_url(Baseline, dataset__id__exact=dataset.pk))]


add_to(Dataset, panels=baselines_of)
