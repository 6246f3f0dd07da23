"""Pages of results, in the shell of the admin."""

import uuid
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode

from apps.benchmarks.approximations import ann_text
from apps.benchmarks.baselines import baseline_names
from apps.benchmarks.models import Baseline, Benchmark, Evaluation, QueryResult, Run
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from apps.results import queries
from apps.results.board import ENDED, board_context
from apps.results.by_slice import slices_context
from apps.results.configurations import keys_of, phrases
from apps.results.coverage import is_coverage, judged_name
from apps.results.history import history, history_figure
from apps.results.leaderboard import measures_at, primary_measure
from apps.results.slicing import slicing_of
from apps.results.start import start_context
from benchbench.access import visible
from benchbench.admin import SiteAdmin
from benchbench.panels import Button, change_url, changelist_url

PER_PAGE = 25
SHOWN_HITS = 20


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add what the first page of the admin shows."""
    return context | {"title": "Start"} | start_context(request.user)


def benchmark_page(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """The leaderboard of a benchmark, live while it runs."""
    benchmark = _found(request, model_admin, object_id)
    return _page(request, model_admin, "results/benchmark.html", benchmark, _board(request, model_admin, benchmark))


def benchmark_live(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """The part of the page that changes while the benchmark runs."""
    benchmark = _found(request, model_admin, object_id)
    return render(request, "results/board.html", _board(request, model_admin, benchmark))


def _board(request: HttpRequest, model_admin: SiteAdmin, benchmark: Benchmark) -> dict[str, Any]:
    """Return what both show: the board at the cutoff asked for, and what can be done to the benchmark now."""
    asked = request.GET.get("k", "")
    k = int(asked) if asked.isdecimal() and int(asked) in benchmark.k_values else benchmark.primary_k
    number = request.GET.get("version", "")
    version = int(number) if number.isdecimal() else None
    acts = [button for button in model_admin.buttons(request, benchmark) if button.action]
    return {
        **board_context(benchmark, k, version=version, within=request.GET.get("slice", "")),
        "original": benchmark,
        "buttons": [
            Button("Edit", "edit", href=change_url(benchmark)),
            *links_of(benchmark),
            *(acts if model_admin.has_act_permission(request) else []),
        ],
        "changelist_url": changelist_url(Benchmark),
        "next": reverse("admin:benchmark_results", args=[benchmark.pk]),
    }


def links_of(benchmark: Benchmark) -> list[Button]:
    """Return what can be taken away from a benchmark that has ended."""
    if benchmark.status not in ENDED:
        return []
    return [Button("Manifest", "download", href=reverse("admin:benchmark_manifest", args=[benchmark.pk]))]


def run_page(request: HttpRequest, model_admin: SiteAdmin, object_id: str) -> HttpResponse:
    """A run: its configuration, means and times, and its queries, worst first."""
    run: Run = _found(request, model_admin, object_id)
    benchmark = run.benchmark
    evaluation = queries.evaluation_of(run)
    names = [primary_measure(benchmark), *measures_at(benchmark, benchmark.primary_k)]
    text = request.GET.get("q", "").strip()
    measure = request.GET.get("by", "")
    measure = measure if measure in names else names[0]
    best = request.GET.get("order") == "best"
    slicing = slicing_of(benchmark, evaluation) if evaluation else None
    chosen = slicing.find(request.GET.get("slice", "")) if slicing else None
    within = slicing.ids_in(chosen) if slicing and chosen else None
    ids = queries.ordered_queries(run, evaluation, measure, text=text, best=best, within=within)
    page = Paginator(ids, PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "run": run,
        "benchmark": benchmark,
        "baselines": baseline_names(benchmark).get(run.pk, []),
        "buttons": model_admin.buttons(request, run),
        "evaluation": evaluation,
        "means": _means(evaluation) if evaluation else [],
        **slices_context(evaluation, slicing, names),
        "chosen": chosen,
        "facts": phrases(run.config, keys_of([run.config])),
        "ann": ann_text(run.provenance.get("ann")),
        "measures": names,
        "measure": measure,
        "best": best,
        "text": text,
        "page": page,
        "kept": urlencode(
            {"q": text, "by": measure, "order": "best" if best else "worst", "slice": chosen.name if chosen else ""}
        ),
        "rows": queries.query_rows(run, evaluation, page.object_list, names),
        "failing": run.query_results.exclude(error="").count(),
    }
    return _page(request, model_admin, "results/run.html", run, context)


def _means(evaluation: Evaluation) -> list[tuple[str, float | None, float | None]]:
    """Return each mean with that of how far it is judged."""
    names = [name for name in evaluation.measures if not is_coverage(name)]
    return [(name, evaluation.means[name], evaluation.means.get(judged_name(name))) for name in names]


def query_page(request: HttpRequest, model_admin: SiteAdmin, object_id: str) -> HttpResponse:
    """One ranking: what stands where, how it was judged, and what is missing."""
    result: QueryResult = _found(request, model_admin, object_id)
    grades = queries.grades_of(result)
    context = {
        "result": result,
        "query": result.query,
        "run": result.run,
        "hits": queries.hits_of(result, grades, shown=SHOWN_HITS),
        "misses": queries.misses_of(result, grades),
        "depth": len(result.document_ids),
        "values": queries.values_of(result),
        "others": queries.other_runs(result),
        "primary": primary_measure(result.run.benchmark),
    }
    return _page(request, model_admin, "results/query.html", result, context)


def history_page(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """The benchmarks of a dataset over time, and its baselines."""
    dataset: Dataset = _found(request, model_admin, object_id)
    shown = history(dataset, request.user, measure=request.GET.get("by", ""))
    baselines = visible(Baseline.objects.filter(dataset=dataset), request.user, through="run__benchmark")
    context = {
        "dataset": dataset,
        "history": shown,
        "newest_first": shown.points[::-1],
        "figure": history_figure(shown),
        "baselines": baselines.select_related("run__benchmark", "approved_by", "retired_by").order_by("-created_at"),
        "mapping": visible(Mapping.objects.filter(dataset=dataset), request.user).first(),
        "trail": [dataset],
    }
    return _page(request, model_admin, "results/history.html", dataset, context)


def _found(request: HttpRequest, model_admin: SiteAdmin, object_id: Any) -> Any:
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    found = model_admin.get_object(request, str(object_id))
    if found is None:
        raise Http404
    return found


def _page(
    request: HttpRequest, model_admin: SiteAdmin, template: str, original: Any, context: dict[str, Any]
) -> HttpResponse:
    request.current_app = model_admin.admin_site.name
    shell = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "original": original,
        "title": str(original),
        "trail": model_admin.trail(original),
    }
    return TemplateResponse(request, template, shell | context)
