"""Pages of experiment files."""

import uuid

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.text import slugify

from apps.benchmarks.defining.forms import ManifestForm
from apps.benchmarks.defining.model_names import require_published
from apps.benchmarks.models import Benchmark
from apps.benchmarks.repeating.manifests import manifest_of
from apps.benchmarks.repeating.reproducing import benchmark_from
from apps.benchmarks.views.benchmarks import start
from benchbench.errors import BenchbenchError
from benchbench.reading import strict_yaml
from benchbench.reading.strict_json import read_text
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import form_page, staff, stored


def run_manifest(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Create the benchmark that an uploaded experiment file describes, and start it."""

    def act(form: ManifestForm) -> HttpResponse:
        with form.content(), stored(form.cleaned_data["file"]) as path:
            experiment = strict_yaml.parse(read_text(path), where=form.cleaned_data["file"].name)
            require_published(experiment.get("matrix") if isinstance(experiment, dict) else None)
        benchmark = benchmark_from(experiment, owner=staff(request), name=form.cleaned_data["name"])
        start(request, benchmark)
        return redirect("admin:benchmark_results", benchmark.pk)

    return form_page(
        request,
        model_admin,
        ManifestForm,
        act,
        title="Run an experiment again",
        submit="Find the data and start",
        intro="An experiment file describes a benchmark: its data, its configurations and its figures. It runs again "
        "on the same data, found here by content; afterwards the page lists the figures that differ.",
    )


def download_manifest(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Return a benchmark as an experiment file."""
    benchmark: Benchmark = model_admin.viewed(request, object_id)
    try:
        experiment = manifest_of(benchmark)
    except BenchbenchError as error:
        messages.error(request, error.message)
        return redirect("admin:benchmark_results", benchmark.pk)
    name = slugify(benchmark.name) or "benchmark"
    disposition = {"Content-Disposition": f'attachment; filename="{name}.experiment.yaml"'}
    return HttpResponse(strict_yaml.dump(experiment), content_type="application/yaml", headers=disposition)
