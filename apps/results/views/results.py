"""Pages of results and of measures, in the shell of the admin."""

import uuid
from collections.abc import Callable

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from apps.records.lists.reading import CutError, RankingsDeletedError
from apps.records.measuring.slicing import slice_version
from apps.records.models import Baseline, Benchmark, Evaluation, QueryResult, Run
from apps.results.comparison.history import load_history, plot_history
from apps.results.dashboard import build_dashboard
from apps.results.exporting import EXPORTERS, build_export, list_exporters
from apps.results.ladders import compression, filters, load
from apps.results.ladders.page import Ladder
from apps.results.leaderboard.page import ENDED, build_context
from apps.results.leaderboard.versions import NoValuesError, VersionView, choose_version
from apps.results.triage import queries
from apps.results.triage.next_steps import build_judging
from apps.results.triage.run_page import build_query_context, build_run_context
from apps.results.triage.sections import ContentError, load_content, load_section_means
from apps.results.triage.side_by_side import build_pair_context
from apps.verdicts.coverage import CoverageError, load_coverage
from apps.verdicts.ranked_runs import name_primary
from benchbench.access import staff, viewable, visible
from benchbench.errors import BenchbenchError
from benchbench.ir.measures import DEFINITIONS
from benchbench.ir.measures.library import list_measures
from benchbench.ir.slices import MINIMUM
from benchbench.site.admin import SiteAdmin
from benchbench.site.downloads import attachment
from benchbench.site.panels import Button, build_list_url, change_url

MOST_SHOWN = 20  # characters
SHOWN_GATES = 5
LADDERS = (filters.LADDER, compression.LADDER, load.LADDER)


def parse_version(request: HttpRequest, benchmark: Benchmark) -> VersionView:
    """Return the version in `?version=`, by default the benchmark's own."""
    try:
        return choose_version(benchmark, request.GET.get("version", ""))
    except NoValuesError as error:
        raise Http404(error.message) from None


def parse_cutoff(request: HttpRequest, benchmark: Benchmark) -> int:
    """Return the cutoff in `?k=`, by default the benchmark's primary one."""
    cutoff = request.GET.get("k", "")
    cutoffs = {str(k): k for k in benchmark.k_values}
    if cutoff and cutoff not in cutoffs:
        raise Http404(
            f'"{benchmark}" has no values at k = {cutoff[:MOST_SHOWN]}; choose one of k = {", ".join(cutoffs)}.'
        )
    return cutoffs[cutoff] if cutoff else benchmark.primary_k


def find_run_against(request: HttpRequest) -> Run | None:
    """Return the run in `?against=`. Raises Http404 if it is missing or not visible to the user."""
    run_id = request.GET.get("against", "")
    if not run_id:
        return None
    try:
        return visible(Run.objects.select_related("benchmark"), request.user, through="benchmark").get(pk=run_id)
    except (Run.DoesNotExist, ValidationError):
        raise Http404(f"The run {run_id} was not found.") from None


def dashboard(request: HttpRequest, context: dict[str, object]) -> dict[str, object]:
    """Add the context of the admin's first page."""
    dashboard = build_dashboard(staff(request), only_work=request.GET.get("part") == "work")
    return context | {"title": "Start"} | dashboard


def benchmark_page(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Render the leaderboard of a benchmark, live while it runs."""
    benchmark: Benchmark = model_admin.load_viewed(request, object_id)
    context = _build_board(request, model_admin, benchmark) | {"exporters": list_exporters(benchmark)}
    return model_admin.render_page(request, "results/benchmark.html", context, original=benchmark)


def benchmark_live(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Render the part of the page that changes while the benchmark runs."""
    benchmark: Benchmark = model_admin.load_viewed(request, object_id)
    return render(request, "results/board.html", _build_board(request, model_admin, benchmark))


def _build_board(request: HttpRequest, model_admin: SiteAdmin, benchmark: Benchmark) -> dict[str, object]:
    """Return the shared context of both: the board at the cutoff, and the available actions."""
    k, at = parse_cutoff(request, benchmark), parse_version(request, benchmark)
    # One statement in place of three.
    benchmark.mapping = Mapping.objects.select_related("collection", "dataset").get(pk=benchmark.mapping_id)
    page_url = reverse("admin:benchmark_results", args=[benchmark.pk])
    acts = [button for button in model_admin.list_offered(request, benchmark) if button.href != page_url]
    may_add = request.user.has_perm("benchmarks.add_benchmark")
    edit = "Edit" if model_admin.has_change_permission(request) else "Details"
    return {
        **build_context(benchmark, k, at=at, within=request.GET.get("slice", "")),
        "original": benchmark,
        "buttons": [
            *acts,
            *(button for button in build_links(benchmark) if may_add or not button.needs),
            Button(edit, "edit", href=change_url(benchmark)),
        ],
        "changelist_url": build_list_url(Benchmark),
        "next": page_url,
    }


def build_links(benchmark: Benchmark) -> list[Button]:
    """Return the download of a finished benchmark; for external runs the link to import another."""
    if benchmark.status not in ENDED:
        return []
    if benchmark.is_external:
        query_string = urlencode({"dataset": str(benchmark.mapping.dataset_id), "benchmark": str(benchmark.pk)})
        return [
            Button(
                "Import a run",
                "upload",
                href=f"{reverse('admin:run_import')}?{query_string}",
                needs="benchmarks.add_benchmark",
            )
        ]
    links = [Button("Experiment", "download", href=reverse("admin:benchmark_manifest", args=[benchmark.pk]))]
    return links + [
        Button(page.title, page.icon, href=reverse(f"admin:benchmark_{page.name}", args=[benchmark.pk]))
        for page in LADDERS
        if page.has_runs(benchmark)
    ]


def ladder_page(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID, *, ladder: Ladder) -> HttpResponse:
    """Render quality and time of a benchmark's runs along an axis."""
    benchmark: Benchmark = model_admin.load_viewed(request, object_id)
    sections, legend = ladder.build(benchmark)
    context = {"ladder": ladder, "sections": sections, "legend": legend, "title": f"{ladder.title} of {benchmark}"}
    context |= {"trail": [*model_admin.list_trail(benchmark), benchmark]}
    return model_admin.render_page(request, "results/ladder.html", context, original=benchmark)


def run_page(request: HttpRequest, model_admin: SiteAdmin, object_id: str) -> HttpResponse:
    """Render a run: its configuration, means and times, its losses, and its queries, worst first."""
    run: Run = model_admin.load_viewed(request, object_id)
    context = build_run_context(
        run, request.GET, at=parse_version(request, run.benchmark), against=find_run_against(request)
    )
    gates = run.gate_outcomes.with_baselines(request.user)[:SHOWN_GATES]
    context |= {"buttons": model_admin.list_offered(request, run), "exporters": list_exporters(run), "gates": gates}
    return model_admin.render_page(request, "results/run.html", context, original=run)


def side_by_side_page(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Render the rankings of two runs for one query side by side: `?against=…&query=…`."""
    run: Run = model_admin.load_viewed(request, object_id)
    context = build_pair_context(run, find_run_against(request), request.GET, at=parse_version(request, run.benchmark))
    context |= {"title": f"{run} side by side", "trail": [*model_admin.list_trail(run), run]}
    return model_admin.render_page(request, "results/side_by_side.html", context, original=run)


def query_page(request: HttpRequest, model_admin: SiteAdmin, object_id: str) -> HttpResponse:
    """Render one ranking: its documents with grades and paths, and the lost ones with causes."""
    result: QueryResult = model_admin.load_viewed(request, object_id)
    at = parse_version(request, result.run.benchmark)
    context = build_query_context(result, at=at)
    context["judging"] = build_judging(result, request.user, version=at.version)
    return model_admin.render_page(request, "results/query.html", context, original=result)


def history_page(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Render the benchmarks of a dataset over time, and its baselines."""
    dataset: Dataset = model_admin.load_viewed(request, object_id)
    timeline = load_history(dataset, request.user, measure=request.GET.get("by", ""))
    searched = Mapping.objects.filter(dataset=dataset, collection__kind=Collection.Kind.DOCUMENTS)
    baselines = viewable(Baseline.objects.filter(dataset=dataset), request.user, through="run__benchmark")
    context = {
        "dataset": dataset,
        "history": timeline,
        "newest_first": timeline.points[::-1],
        "figure": plot_history(timeline),
        "has_gates": any(point.gate for point in timeline.points),
        "has_changes": any(point.changes for point in timeline.points),
        "baselines": baselines.select_related("run__benchmark", "approved_by", "retired_by").order_by("-created_at"),
        "mapping": visible(searched, request.user).first(),
        "trail": [dataset],
    }
    return model_admin.render_page(request, "results/history.html", context, original=dataset)


def download(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID, format: str) -> HttpResponseBase:
    """Return a benchmark or run in one of its formats, or redirect to its page with the reason for a failure.

    With `?version=2` the values are those on that version of its dataset. The file is complete before the response
    begins, because a truncated one would look complete.
    """
    subject: Benchmark | Run = model_admin.load_viewed(request, object_id)
    if EXPORTERS.get(format) not in list_exporters(subject):
        raise Http404
    try:
        name, write = build_export(subject, format, version=_parse_version(request))
        return attachment(write, name, EXPORTERS[format].content_type)
    except BenchbenchError as error:
        messages.error(request, error.message)
        is_run = isinstance(subject, Run)
        return redirect(change_url(subject)) if is_run else redirect("admin:benchmark_results", subject.pk)


def _parse_version(request: HttpRequest) -> int | None:
    """Return the dataset version number in `?version=`; None for the benchmark's own."""
    number = request.GET.get("version", "")
    if number and not (number.isdecimal() and len(number) < 10):
        raise Http404(f"The version {number[:20]!r} does not exist.")
    return int(number) if number else None


SHOWN_QUERIES = 25


def measures_page(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Render the definitions of all measures."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    context = {
        "title": "Measures",
        "ours": list(DEFINITIONS.values()),
        "theirs": [measure for measure in list_measures() if measure.name not in DEFINITIONS],
    }
    return model_admin.render_page(request, "results/measures.html", context)


def dataset_shape(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Render the part of a dataset's page on how its queries are judged, and on their slices."""
    dataset: Dataset = model_admin.load_viewed(request, object_id)
    version = dataset.versions.filter(frozen_at__isnull=False).order_by("-number").first()
    context: dict[str, object] = {"version": version, "minimum": MINIMUM}
    if version is not None:
        slicing, context["shape"] = slice_version(version)
        context["slices"] = slicing.slices
    return render(request, "results/shape.html", context)


def run_coverage(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Render the part of a run's page on the judged shares of its means."""
    evaluation = _load_evaluation(request, model_admin, object_id)
    primary = name_primary(evaluation.run.benchmark)
    return _render_fragment(
        request, "coverage", lambda: {"evaluation": evaluation, "rows": load_coverage(evaluation), "primary": primary}
    )


def run_sections(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Render the part of a run's page on the sections that judgments name."""
    evaluation = _load_evaluation(request, model_admin, object_id)
    return _render_fragment(
        request, "sections", lambda: {"evaluation": evaluation, "means": load_section_means(evaluation)}
    )


def run_content(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Render the part of a run's page on evidence and expected answers in its texts."""
    evaluation = _load_evaluation(request, model_admin, object_id)

    def build_context() -> dict[str, object]:
        content = load_content(evaluation)
        worst = content.queries[:SHOWN_QUERIES]
        rows = queries.load_query_rows(evaluation.run, None, [query.query_id for query in worst], [])
        pairs = [(row, values.values) for row, values in zip(rows, worst, strict=True)]
        return {"evaluation": evaluation, "content": content, "rows": pairs}

    return _render_fragment(request, "content", build_context)


def _render_fragment(request: HttpRequest, name: str, context_of: Callable[[], dict[str, object]]) -> HttpResponse:
    """Render a part of a page with its context, or with the error."""
    try:
        context = context_of()
    except (ContentError, CoverageError, CutError, RankingsDeletedError) as error:
        context = {"error": error.message}
    return render(request, f"results/{name}.html", context)


def _load_evaluation(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> Evaluation:
    run: Run = model_admin.load_viewed(request, object_id)
    evaluation = queries.load_evaluation(run, version=parse_version(request, run.benchmark).version)
    if evaluation is None:
        raise Http404(f"{run} has not been measured.")
    return evaluation
