"""Pages about benchmarks."""

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import slugify
from django.views.decorators.http import require_POST

from apps.benchmarks.defining.creating import create_benchmark
from apps.benchmarks.defining.forms import BenchmarkForm, ManifestForm, MeasuresForm
from apps.benchmarks.defining.previewing import preview
from apps.benchmarks.gates.baselines import approve
from apps.benchmarks.gates.forms import BaselineForm, GateForm
from apps.benchmarks.gates.gating import gate
from apps.benchmarks.gates.reports import headline, markdown_of, means_told
from apps.benchmarks.launching import launch
from apps.benchmarks.measuring.measures import add_measures
from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.repeating.manifests import manifest_of
from apps.benchmarks.repeating.reproducing import benchmark_from, read_manifest
from benchbench.errors import BenchbenchError
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import choices_page, form_page, preview_page, staff, stored
from benchbench.site.panels import change_url

SHOWN_RUNS = 12
AWAITED = ("mapping", "name")


def add_benchmark(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: BenchmarkForm) -> HttpResponse:
        benchmark = create_benchmark(
            form.cleaned_data["mapping"], matrix=form.matrix(), owner=staff(request), **form.options()
        )
        if "start" in request.POST:
            start(request, benchmark)
        return redirect("admin:benchmark_results", benchmark.pk)

    return form_page(
        request,
        model_admin,
        BenchmarkForm,
        act,
        title="New benchmark",
        submit="Create and start",
        intro=format_html(
            'Or <a href="{}">run the manifest</a> of a benchmark again.', reverse("admin:benchmark_from_manifest")
        ),
        template="benchmarks/form.html",
    )


def more_measures(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Measure a benchmark by further measures, from the rankings that are stored."""
    benchmark = model_admin.get_object(request, str(object_id))
    if not isinstance(benchmark, Benchmark):
        raise Http404
    if not model_admin.has_change_permission(request, benchmark):
        raise PermissionDenied

    def act(form: MeasuresForm) -> HttpResponse:
        added = add_measures(benchmark, form.cleaned_data["measures"])
        messages.success(request, f"Measured by {', '.join(added)}; nothing was searched.")
        return redirect("admin:benchmark_results", benchmark.pk)

    return form_page(
        request,
        model_admin,
        MeasuresForm,
        act,
        title=f"More measures of {benchmark}",
        submit="Measure",
        intro="The finished runs are measured by these too, from the rankings that are stored; nothing is searched. "
        f"There are already: {', '.join(benchmark.measures)}.",
    )


def run_manifest(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Make the benchmark that an uploaded manifest describes, and start it."""

    def act(form: ManifestForm) -> HttpResponse:
        with stored(form.cleaned_data["file"]) as path:
            manifest = read_manifest(path)
        benchmark = benchmark_from(manifest, owner=staff(request), name=form.cleaned_data["name"])
        start(request, benchmark)
        return redirect("admin:benchmark_results", benchmark.pk)

    return form_page(
        request,
        model_admin,
        ManifestForm,
        act,
        title="Run a manifest again",
        submit="Find the data and start",
        intro="A manifest says what a benchmark was run on and with, and what came of it. It is run again on the same "
        "data, found here by what it contains; afterwards the page says whether every value was reproduced.",
    )


def download_manifest(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Answer with the manifest of a benchmark as a file."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    benchmark = model_admin.get_object(request, str(object_id))
    if not isinstance(benchmark, Benchmark):
        raise Http404
    try:
        manifest = manifest_of(benchmark)
    except BenchbenchError as error:
        messages.error(request, error.message)
        return redirect("admin:benchmark_results", benchmark.pk)
    name = slugify(benchmark.name) or "benchmark"
    disposition = {"Content-Disposition": f'attachment; filename="{name}.manifest.json"'}
    return JsonResponse(manifest, json_dumps_params={"indent": 2}, headers=disposition)


def start(request: HttpRequest, benchmark: Benchmark) -> None:
    """Start a benchmark that was just made; where that cannot be, say so, and keep it."""
    try:
        launch(benchmark, by=staff(request))
    except BenchbenchError as error:
        messages.error(request, f"The benchmark is made, but did not start. {error.message}")


@require_POST
def preview_benchmark(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Answer the form as it stands with the runs that it would make, or with what is wrong and where."""
    if not model_admin.has_add_permission(request):
        raise PermissionDenied
    form = BenchmarkForm(request.POST, user=request.user)
    form.is_valid()
    found = None
    mapping = form.cleaned_data.get("mapping")
    if mapping and not any(field.errors for field in form.faults(awaited=AWAITED)):
        try:
            found = preview(
                mapping,
                form.matrix(),
                owner=staff(request),
                measures=form.cleaned_data["measures"],
                allow_missing=form.cleaned_data["allow_missing"],
            )
        except BenchbenchError as error:
            form.present(error)
    return preview_page(
        request,
        "benchmarks/preview.html",
        form,
        awaited=AWAITED,
        preview=found,
        shown=SHOWN_RUNS,
        isolated=form.cleaned_data.get("execution") == Benchmark.Execution.ISOLATED,
    )


def benchmark_choices(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Answer with the indexes that the chosen mapping can be searched by."""
    if not model_admin.has_add_permission(request):
        raise PermissionDenied
    form = BenchmarkForm(user=request.user, initial={"mapping": request.GET.get("mapping", "")})
    return choices_page(request, form, ["indexes"])


def add_baseline(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: BaselineForm) -> HttpResponse:
        values = form.cleaned_data
        baseline = approve(values["run"], name=values["name"], reason=values["reason"], by=staff(request))
        messages.success(
            request,
            f'"{baseline.run}" is the baseline "{baseline.name}" of {baseline.dataset} now. '
            "Hold other runs against it by a gate, on their pages or in your pipeline.",
        )
        return redirect(change_url(baseline.run))

    return form_page(
        request,
        model_admin,
        BaselineForm,
        act,
        title="Pin a run as baseline",
        submit="Approve as baseline",
        intro="A baseline is a run that somebody answers for. Gates hold later runs of the same dataset against it, "
        "and its line is drawn into the history of the dataset.",
    )


def gate_page(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Hold a run against rules and a baseline, and show what came of it. Nothing is kept."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    run: Any = model_admin.get_object(request, str(object_id))
    asked = request.method == "POST"
    form = GateForm(
        request.POST if asked else None, request.FILES if asked else None, user=request.user, benchmark=run.benchmark
    )
    context = judged(run, form) if form.is_valid() else {}
    shell = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "original": run,
        "run": run,
        "trail": [*model_admin.trail(run), run],
        "title": "Judge the run by rules",
        "form": form,
        "submit": "Judge the run",
        "media": form.media,
        "intro": "A gate says whether a run may pass, by rules that were written before. The same rules work in a "
        "pipeline: manage.py gate.",
    }
    return TemplateResponse(request, "benchmarks/gate.html", shell | context)


def judged(run: Run, form: GateForm) -> dict[str, Any]:
    """Return what the page shows of the verdict; an error of a use case is shown at the form."""
    try:
        result = gate(run, rules=form.rules(), baseline=form.cleaned_data["baseline"])
    except BenchbenchError as error:
        form.present(error)
        return {}
    return {
        "result": result,
        "headline": headline(result),
        "means": means_told(result),
        "markdown": markdown_of(result),
    }
