"""Pages about manifests."""

import uuid

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.text import slugify

from apps.benchmarks.defining.forms import ManifestForm
from apps.benchmarks.defining.model_names import require_published
from apps.benchmarks.models import Benchmark
from apps.benchmarks.repeating.manifests import manifest_of
from apps.benchmarks.repeating.reproducing import benchmark_from
from apps.benchmarks.views.benchmarks import start
from benchbench.errors import BenchbenchError
from benchbench.reading.strict_json import read_value
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import form_page, staff, stored


def run_manifest(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Make the benchmark that an uploaded manifest describes, and start it."""

    def act(form: ManifestForm) -> HttpResponse:
        with form.content(), stored(form.cleaned_data["file"]) as path:
            manifest = read_value(path)
            require_published(manifest.get("matrix") if isinstance(manifest, dict) else None)
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
        intro="A manifest describes a benchmark: its data, its configurations and its results. It is run again on the "
        "same data, which is found here by its content; afterwards the page says whether every value was reproduced.",
    )


def download_manifest(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Answer with the manifest of a benchmark as a file."""
    benchmark: Benchmark = model_admin.viewed(request, object_id)
    try:
        manifest = manifest_of(benchmark)
    except BenchbenchError as error:
        messages.error(request, error.message)
        return redirect("admin:benchmark_results", benchmark.pk)
    name = slugify(benchmark.name) or "benchmark"
    disposition = {"Content-Disposition": f'attachment; filename="{name}.manifest.json"'}
    return JsonResponse(manifest, json_dumps_params={"indent": 2}, headers=disposition)
