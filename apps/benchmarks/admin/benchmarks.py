"""Admin pages of benchmarks."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import Count, Model, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from unfold.decorators import action, display

from apps.accounts.selected import ArchiveFilter, TagFilter, TaggedAdmin
from apps.benchmarks.admin import columns
from apps.benchmarks.fields import POLICIES, describe_policies
from apps.benchmarks.views import benchmarks as views
from apps.benchmarks.views import evaluation_steps, evaluations
from apps.benchmarks.views import runs as run_views
from apps.benchmarks.views.engines import engines_page
from apps.datasets.models import DatasetVersion
from apps.execution.launching import cancel, delete_benchmark, launch, retry
from apps.mappings.models import Mapping
from apps.operations.models import Operation, Status, with_subjects
from apps.records.measuring.again import is_scored, load_newest_version, rescore
from apps.records.measuring.primary import select_facts
from apps.records.models import Benchmark, Run
from apps.verdicts.stored import annotate_stamps
from benchbench.access import staff, visible
from benchbench.site.admin import OwnedAdmin
from benchbench.site.lists import VisibleFilter, read_measure
from benchbench.site.panels import Button, Page, Panel, add_button, add_to, build_list_url, change_url, render_value


def act_on_each(description: str, act: Callable[..., Any], message: str) -> Any:
    """Return an admin action that calls `act` for each chosen benchmark and the user, with `message` as the message."""

    @admin.action(description=description, permissions=["act"])
    def action(self: OwnedAdmin, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        def act_on(benchmark: Benchmark) -> str:
            act(benchmark, by=staff(request))
            return message.format(benchmark)

        return self.apply_each(request, queryset, act_on)

    return action


@admin.register(Benchmark)
class BenchmarkAdmin(columns.MeasuredAdmin, TaggedAdmin, OwnedAdmin):
    list_display = (
        *(
            "results_link",
            "status_label",
            columns.verdict,
            columns.value,
            columns.best_run,
            columns.judged,
            "created_at",
        ),
        *("dataset_version", "collection", columns.took, "total_runs", "owner"),
    )
    list_sections = (columns.VerdictSection,)
    hidden_columns = ("best_run", "judged", "dataset_version", "collection", "took", "total_runs", "owner")
    phone_columns = ("verdict", "created_at")
    list_display_links = None
    list_filter = (
        ArchiveFilter,
        TagFilter,
        "status",
        ("dataset_version__dataset", VisibleFilter),
        ("mapping__collection", VisibleFilter),
    )
    list_select_related = ("owner", "dataset_version__dataset", "mapping__collection", "operation", "verdict")
    search_fields = ("name", "description", "mapping__name", "tags")
    autocomplete_fields = ("owner",)
    actions_list = ("import_run",)
    actions = (
        *("start_selected", "cancel_selected", "retry_selected", "rescore_selected", "compare_over_datasets"),
        *("export_selected", "tag_selected", "archive_selected", "bring_back_selected", "bin_selected"),
    )
    pages = (
        Page("evaluate/", evaluations.new_evaluation, "new_evaluation"),
        Page("evaluate/preview/", evaluations.preview_evaluation, "evaluation_preview"),
        Page("evaluate/documents/", evaluations.preview_corpus, "evaluation_documents"),
        Page("evaluate/<uuid:preparation_id>/", evaluation_steps.evaluation_progress, "evaluation"),
        Page("add/", views.add_benchmark, "benchmarks_benchmark_add"),
        Page("preview/", views.preview_benchmark, "benchmark_preview"),
        Page("choices/", views.benchmark_choices, "benchmark_choices"),
        Page("<uuid:object_id>/measures/", views.more_measures, "benchmark_measures"),
        Page("manifest/", views.run_manifest, "benchmark_from_manifest"),
        Page("<uuid:object_id>/manifest/", views.download_manifest, "benchmark_manifest"),
        Page("import-run/", run_views.import_run, "run_import"),
        Page("import-run/preview/", run_views.preview_run_file, "run_import_preview"),
        Page("import-run/choices/", run_views.run_choices, "run_import_choices"),
    )
    editable = ("name", "description", "tags", "owner", "team")
    fieldsets = (
        (None, {"fields": ("name", "description", "tags", ("owner", "team"))}),
        (
            "Facts",
            {
                "fields": (
                    ("mapping", "dataset_version"),
                    ("started_at", "completed_at"),
                    ("execution", "runs_per_query"),
                    ("policies",),
                    ("exclude_self", "identical_texts"),
                    ("total_runs", "seed"),
                )
            },
        ),
        ("The matrix", {"classes": ("collapse",), "fields": ("matrix",)}),
    )

    @display(description="policies")
    def policies(self, benchmark: Benchmark) -> str:
        return render_value(describe_policies({name: getattr(benchmark, name) for name in POLICIES}))

    def annotate_rows(self, request: HttpRequest, rows: QuerySet[Model]) -> Any:
        facts = select_facts(measure=read_measure(request), run__benchmark=OuterRef("pk"))
        rows = annotate_stamps(rows.annotate(facts=facts))
        return super().annotate_rows(request, rows)

    def delete_row(self, obj: Benchmark) -> None:
        delete_benchmark(obj)

    @action(description="Import a run", url_path="go-to-import-run", icon="upload", permissions=["add"])
    def import_run(self, request: HttpRequest) -> HttpResponse:
        return redirect("admin:run_import")

    start_selected = act_on_each("Start or resume", launch, 'Started "{}".')
    retry_selected = act_on_each("Retry failed runs", retry, 'Retrying the failed runs of "{}".')
    cancel_selected = act_on_each(
        "Cancel",
        lambda benchmark, by: cancel(benchmark),
        'Cancelled "{}"; its rankings stay, and it can be resumed.',
    )

    @admin.action(description="Compare over datasets", permissions=["view"])
    def compare_over_datasets(self, request: HttpRequest, queryset: Any) -> HttpResponse:
        parameters = urlencode({"benchmark": list(queryset.values_list("pk", flat=True))}, doseq=True)
        return redirect(f"{reverse('admin:benchmarks_across')}?{parameters}")

    @admin.action(description="Re-score on the newest version", permissions=["act"])
    def rescore_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        scored: list[str] = []

        def rescore_one(benchmark: Benchmark) -> str:
            rescored = rescore(benchmark, by=staff(request))
            if rescored.operation:
                return rescored.sentence
            page = reverse("admin:benchmark_results", args=[benchmark.pk])
            scored.append(f"{page}?version={rescored.version.number}")
            return rescored.sentence

        answer = self.apply_each(request, queryset, rescore_one)
        return redirect(scored[0]) if len(scored) == 1 == len(queryset) else answer

    @display(description="benchmark", ordering="name")
    def results_link(self, benchmark: Benchmark) -> str:
        return format_html('<a href="{}">{}</a>', reverse("admin:benchmark_results", args=[benchmark.pk]), benchmark)

    @display(description="collection", ordering="mapping__collection__name")
    def collection(self, benchmark: Benchmark) -> str:
        return str(benchmark.mapping.collection)

    def find_url(self, obj: Benchmark) -> str:
        return reverse("admin:benchmark_results", args=[obj.pk])

    def list_trail(self, obj: Benchmark) -> list[Any]:
        return [obj.mapping.collection, obj.mapping.dataset, obj.mapping]

    def find_operation(self, obj: Benchmark) -> Operation | None:
        return Operation.active_on(obj)

    def list_buttons(self, request: HttpRequest, obj: Benchmark) -> list[Button]:
        results_url = reverse("admin:benchmark_results", args=[obj.pk])
        return [
            Button("Open results", "leaderboard", href=results_url),
            *self._list_actions(obj),
            *self._list_clones(obj),
        ]

    def _list_clones(self, obj: Benchmark) -> list[Button]:
        """Return the links to the form of a new benchmark, filled with the matrix of this one."""
        if obj.is_external:
            return []
        form = f"{reverse('admin:benchmarks_benchmark_add')}?from={obj.pk}"
        needs = "benchmarks.add_benchmark"
        return [
            Button("Clone", "content_copy", href=form, needs=needs),
            Button("Again on the newest index", "update", href=f"{form}&newest=1", needs=needs),
            add_button("Repeat on a schedule", "event_repeat", "benchmarks.schedule", benchmark=obj.pk, name=obj.name),
        ]

    def _list_actions(self, obj: Benchmark) -> list[Button]:
        if obj.status == Status.RUNNING:
            return [Button("Cancel", "stop_circle", "cancel_selected")]
        if measuring := self.find_operation(obj):
            needs = "operations.view_operation"
            return [Button("Measuring: view or cancel", "rule", href=change_url(measuring), needs=needs)]
        if obj.rankings_deleted_at:
            return []
        runs = obj.runs.aggregate(
            failed=Count("pk", filter=Q(status=Run.Status.FAILED) | Q(failed_queries__gt=0)),
            unfinished=Count("pk", filter=Q(status__in=(Run.Status.PENDING, Run.Status.CANCELLED))),
        )
        acts = [Button("Retry failed runs", "replay", "retry_selected")] if runs["failed"] else []
        if runs["unfinished"]:
            label = "Start" if obj.status == Status.PENDING else "Resume"
            acts.append(Button(label, "play_circle", "start_selected", primary=True))
        newest = load_newest_version(obj)
        if newest.number > obj.dataset_version.number and not is_scored(obj, newest):
            acts.append(self._offer_rescoring(obj.mapping, newest))
        return acts

    def _offer_rescoring(self, mapping: Mapping, newest: DatasetVersion) -> Button:
        """Return the button that re-scores, or a link to the step that must come first."""
        if mapping.dataset_version_id == newest.pk:
            return Button(f"Re-score on v{newest.number}", "rule", "rescore_selected")
        label, needs = f"Resolve the mapping for v{newest.number}", "mappings.change_mapping"
        return Button(label, "join_inner", href=change_url(mapping), needs=needs)

    def list_panels(self, request: HttpRequest, obj: Benchmark) -> list[Panel]:
        operations = with_subjects(Operation.objects.filter(subject_id=obj.pk)).order_by("-created_at")
        every = build_list_url(Run, benchmark__id__exact=obj.pk)
        return [
            Panel("Runs", obj.runs.order_by("run_order"), ("label", "status_label"), total=obj.total_runs, every=every),
            Panel("Operations", operations, ("__str__", "status_label", "created_at", "finished_at")),
        ]


def show_benchmarks(request: HttpRequest, mapping: Mapping) -> list[Panel]:
    benchmarks = Benchmark.objects.filter(mapping=mapping).select_related("operation").order_by("-created_at")
    columns = ("__str__", "total_runs", "status_label", "created_at")
    return [Panel("Benchmarks", visible(benchmarks, request.user), columns)]


add_to(Mapping, panels=show_benchmarks)
add_to(Operation, pages=(Page("engines/", engines_page, "engines"),))
