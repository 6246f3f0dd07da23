"""The page of a comparison, and the verdict on a benchmark's page."""

from operator import attrgetter
from urllib.parse import quote, urlencode
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from apps.benchmarks.admin.columns import render_words
from apps.datasets.models import DatasetVersion
from apps.judging.models import Round, RoundRun
from apps.operations.models import Status
from apps.records.circumstances import group_by
from apps.records.measuring.alternatives import choose_alternatives
from apps.records.models import Benchmark, BenchmarkVerdict, Run
from apps.results.comparison.datasets import compare_over_datasets
from apps.results.comparison.page import build_context, list_choices
from apps.results.comparison.panels import PANELS, build_panel
from apps.verdicts.comparing import MOST_RUNS, ComparingError, IncomparableError, RunComparison, compare_runs
from apps.verdicts.configurations import list_shared
from apps.verdicts.describing import Bounds, pick_strongest
from apps.verdicts.expected import list_expected
from apps.verdicts.sentences import build_verdict
from apps.verdicts.stored import load_verdict
from benchbench.access import viewable
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.reading.ids import parse_uuid
from benchbench.site.admin import SiteAdmin

MEGABYTE = 2**20  # as in file sizes
MOST_DIGITS = 18
SHOWN_ROUNDS = 3


def comparison_page(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Render a comparison of runs of any benchmarks: `?run=…&run=…`, or `?benchmark=…` for all completed ones.

    `panel=…` renders only a folded panel, and `start` the pairs from there.
    """
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    every = _find_runs(request, model_admin)
    params = request.GET
    baseline, version = (
        _find_baseline(params.get("baseline", ""), every),
        _find_version(params.get("version", ""), every),
    )
    runs = pick_strongest(every, version=version, baseline=baseline)
    title = f"Comparison of {counted(len(runs), 'run')}"
    context: dict[str, object] = {"title": title, "original": title, "runs": runs}
    context |= {"weaker": len(every) - len(runs), "most": MOST_RUNS}
    status = 200
    try:
        comparison = compare_runs(
            runs,
            measure=params.get("measure") or None,
            baseline=baseline,
            slice=params.get("slice") or None,
            seed=_parse_number(params.get("seed", "")),
            version=version,
        )
    except IncomparableError as error:
        status = error.status
        context |= {"refusals": error.comparability.refusals, "warnings": error.comparability.warnings}
    except BenchbenchError as error:
        status = error.status
        context |= {"refusals": [error.message]}
    else:
        if (panel := params.get("panel")) in PANELS:
            return _render_panel(request, panel, comparison)
        context |= build_context(comparison, _parse_bounds(request)) | {
            "choices": list_choices(comparison),
            "shared": list_shared([run.config for run in comparison.runs]),
            "asked": {name: params.get(name, "") for name in ("version", "seed", "max_ms", "max_mb")},
            "kept": {name: params.get(name, "") for name in ("version", "seed", "measure", "baseline", "slice")},
        }
    return model_admin.render_page(request, "results/comparison.html", context, status=status)


def _render_panel(request: HttpRequest, panel: str, comparison: RunComparison) -> HttpResponse:
    params = request.GET
    try:
        options = {"margin": float(params["margin"])} if panel == "migration" and params.get("margin") else {}
        context = build_panel(panel, comparison, start=_parse_number(params.get("start", "")) or 0, **options)
    except (BenchbenchError, ValueError) as error:
        raise Http404(str(error)) from None
    return render(request, f"results/comparison/{panel}.html", context)


def verdict_fragment(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Render the verdict on a benchmark, and standings and ranks of its runs; empty if unfinished or with one run.

    `brief=1` renders only the stored verdict's sentences, for the first page, and `brief=words` a few words for lists.
    """
    benchmark: Benchmark = model_admin.load_viewed(request, object_id)
    if brief := request.GET.get("brief"):
        return _render_stored(request, load_verdict(benchmark), in_words=brief == "words")
    runs = list(benchmark.runs.filter(status=Run.Status.COMPLETED))
    if benchmark.status != Status.COMPLETED or len(runs) < 2:
        return HttpResponse()
    version = _find_version(request.GET.get("version", ""), runs)
    alternatives, omitted = choose_alternatives(runs)
    compared = pick_strongest(alternatives, version=version)
    context: dict[str, object] = {
        "benchmark": benchmark,
        "missing": benchmark.total_runs - len(runs),
        "weaker": len(alternatives) - len(compared),
        "most": MOST_RUNS,
        "omitted": omitted,
    }
    compared_by = [("benchmark", str(benchmark.pk))]
    try:
        if len(compared) < 2:
            raise ComparingError("It needs two runs that answer the same question.")
        comparison = compare_runs(compared, slice=request.GET.get("slice") or None, version=version)
    except BenchbenchError as error:
        context |= {"error": error.message}
    else:
        compared_by += [("version", str(comparison.version.number))]
        compared_by += [("slice", comparison.slice.name)] if comparison.slice else []
        context |= {
            "comparison": comparison,
            **vars(build_verdict(comparison)),
            "expected_rows": list_expected(comparison),
            "standings": [
                (comparison.runs[run], comparison.verdict.find_standing(run))
                for run in (range(len(comparison.runs)) if comparison.is_tested else ())
            ],
            "ranks": comparison.list_rank_ranges() if comparison.is_tested and compared == runs else [],
        }
    context["compare_url"] = f"{reverse('admin:run_compare')}?{urlencode(compared_by, quote_via=quote)}"
    return render(request, "results/verdict.html", context | _list_rounds(request, benchmark))


def _render_stored(request: HttpRequest, stored: BenchmarkVerdict | None, *, in_words: bool) -> HttpResponse:
    if stored is None or in_words:
        return HttpResponse(render_words(stored) if stored else "")
    return render(request, "results/verdict_sentence.html", {"stored": stored})


def across_page(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Rank the configurations of several benchmarks over their datasets; lead back with a sentence if that fails."""
    try:
        ids = {parse_uuid(key) for key in request.GET.getlist("benchmark")}
    except ValueError:
        raise Http404("Each benchmark must be given by its id.") from None
    rows = model_admin.get_queryset(request).filter(pk__in=ids).select_related("mapping__dataset", "dataset_version")
    benchmarks = list(rows.order_by("mapping__dataset__name"))
    if len(benchmarks) < len(ids):
        raise Http404("A benchmark was not found: check its id and your permissions.")
    try:
        across = compare_over_datasets(benchmarks)
    except BenchbenchError as error:
        messages.error(request, error.message)
        return redirect("admin:benchmarks_benchmark_changelist")
    pairs = [(across.labels[pair.first], across.labels[pair.second], pair) for pair in across.standings.pairs]
    context = {"title": "Over datasets", "across": across, "pairs": pairs}
    return model_admin.render_page(request, "results/across.html", context)


def _list_rounds(request: HttpRequest, benchmark: Benchmark) -> dict[str, object]:
    """Return the latest judging rounds of the benchmark's runs that the reader sees, and the number of further ones."""
    of_runs = RoundRun.objects.filter(run__benchmark=benchmark).values("round")
    rounds = viewable(Round.objects.filter(pk__in=of_runs), request.user)
    latest = list(rounds[:SHOWN_ROUNDS])
    return {"rounds": latest, "more_rounds": rounds.count() - len(latest) if len(latest) == SHOWN_ROUNDS else 0}


def _find_runs(request: HttpRequest, model_admin: SiteAdmin) -> list[Run]:
    """Return the runs and the alternatives of the benchmarks in the query string.

    Raises Http404 if one is missing or not visible to the user.
    """
    try:
        keys = {parse_uuid(key) for key in request.GET.getlist("run")}
        benchmarks = {parse_uuid(key) for key in request.GET.getlist("benchmark")}
    except ValueError:
        raise Http404("Each run and benchmark must be given by its id.") from None
    seen = model_admin.get_queryset(request)
    runs = {run.pk: run for run in seen.filter(pk__in=keys)}
    if len(runs) < len(keys):
        raise Http404("A run was not found: check its id and your permissions.")
    completed = group_by(seen.filter(benchmark__in=benchmarks, status=Run.Status.COMPLETED), attrgetter("benchmark_id"))
    if completed.keys() < benchmarks:
        raise Http404("A benchmark was not found, or none of its runs is completed.")
    alternatives = [run for of_benchmark in completed.values() for run in choose_alternatives(of_benchmark)[0]]
    return list((runs | {run.pk: run for run in alternatives}).values())


def _find_baseline(key: str, runs: list[Run]) -> Run | None:
    if not key:
        return None
    by_key = {str(run.pk): run for run in runs}
    if key not in by_key:
        raise Http404("The baseline must be one of the compared runs.")
    return by_key[key]


def _find_version(number: str, runs: list[Run]) -> DatasetVersion | None:
    """Return the version with this number, None without a number. Raises Http404 for an unknown version."""
    if not number or not runs:
        return None
    versions = DatasetVersion.objects.filter(dataset__versions__benchmarks__runs=runs[0].pk).select_related("dataset")
    by_number = {str(version.number): version for version in versions.distinct()}
    if number not in by_number:
        raise Http404("The dataset version does not exist.")
    return by_number[number]


def _parse_bounds(request: HttpRequest) -> Bounds:
    megabytes = _number(request.GET.get("max_mb", ""))
    return Bounds(_number(request.GET.get("max_ms", "")), None if megabytes is None else megabytes * MEGABYTE)


def _parse_number(text: str) -> int | None:
    if len(text) > MOST_DIGITS:
        raise Http404(f"A number must have at most {MOST_DIGITS} digits.")
    return int(text) if text.isdecimal() else None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
