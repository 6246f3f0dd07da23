"""Pages of benchmarks and of their experiment files."""

import uuid
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.html import format_html
from django.utils.text import slugify
from django.views.decorators.http import require_POST

from apps.benchmarks.forms import (
    BenchmarkForm,
    ManifestForm,
    MeasuresForm,
    build_clone_initial,
    build_initial,
    list_mappings,
)
from apps.execution.defining.choosing import compare_indexes
from apps.execution.defining.creating import create_benchmark, require_published
from apps.execution.defining.foreseeing import find_prior, foresee
from apps.execution.defining.previewing import preview
from apps.execution.defining.questions import Offer, list_offers
from apps.execution.launching import launch
from apps.experiments.manifests import build_manifest
from apps.experiments.reproducing import reproduce
from apps.mappings.models import Mapping
from apps.operations.models import Priority
from apps.records.measuring.measures import add_measures
from apps.records.models import Benchmark
from benchbench.access import staff
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.matrix import Matrix
from benchbench.models import leave_out_archived
from benchbench.names import MAX_LENGTH, find_by_id
from benchbench.reading import strict_json, strict_yaml
from benchbench.reading.strict_json import read_text
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import preview_page, read_form, render_choices, show_form
from benchbench.site.panels import change_url
from benchbench.site.reading import stored

SHOWN_RUNS = 12
AWAITED = ("mapping", "name")
PREVIEWED = ("measures", "allow_missing", "execution", "exclude_self", "identical_texts")


def add_benchmark(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Create a benchmark, from a question (`?question=`), another benchmark (`?from=`), `?matrix=` or fields alone."""
    user = staff(request)
    original = _load_original(request, model_admin)
    mapping = _find_mapping(request, original)
    offers = SimpleLazyObject(lambda: list_offers(mapping, user) if mapping else [])
    by_matrix = _read_matrix(request)
    chosen = None if original or by_matrix or request.method == "POST" else _choose_offer(request, offers)
    initial = ({"mapping": str(mapping.pk)} if mapping else {}) | by_matrix
    if original:
        suffix = ", newest index" if "newest" in request.GET else ", copy"
        initial |= build_clone_initial(original) | {"name": original.name[: MAX_LENGTH - len(suffix)] + suffix}
    elif chosen:
        question = chosen.question
        initial |= build_initial(chosen.matrix or {}) | {"name": question.title, "execution": question.execution}

    def act(form: BenchmarkForm) -> HttpResponse:
        benchmark = create_benchmark(form.cleaned_data["mapping"], form.build_options(), owner=staff(request))
        if "start" in request.POST:
            start(request, benchmark, form.cleaned_data["priority"])
        return redirect("admin:benchmark_results", benchmark.pk)

    return show_form(
        request,
        model_admin,
        BenchmarkForm,
        act,
        title="New benchmark",
        submit="Start",
        initial=initial,
        offers=offers,
        chosen=chosen,
        has_matrix=bool(by_matrix),
        mapping=mapping,
        notes=list(compare_indexes(original, user)) if original else [],
        original=original,
        intro=format_html(
            'Compare configurations, or <a href="{}">repeat a benchmark from its experiment file</a>.',
            reverse("admin:benchmark_from_manifest"),
        ),
        template="benchmarks/form.html",
    )


def _load_original(request: HttpRequest, model_admin: SiteAdmin) -> Benchmark | None:
    """Return the benchmark in `?from=`, or None without one. Raises Http404 if the user may not see it."""
    if not (text := request.GET.get("from", "")) or not model_admin.has_add_permission(request):
        return None
    benchmark: Benchmark = model_admin.load_viewed(request, text)
    if benchmark.is_external:
        messages.error(request, f"{benchmark} holds external runs, so it has no matrix to repeat.")
        return None
    return benchmark


def _read_matrix(request: HttpRequest) -> dict[str, object]:
    """Return the values of the form for the matrix in `?matrix=`, as JSON; none without one or if it is invalid."""
    if not (text := request.GET.get("matrix", "")):
        return {}
    try:
        matrix = strict_json.parse(text, location="The matrix in the address")
        max_values = settings.BENCHMARK_MAX_VALUES_PER_AXIS
        Matrix.parse(matrix, max_runs=settings.BENCHMARK_MAX_RUNS, max_values=max_values)
    except BenchbenchError as error:
        messages.error(request, error.message)
        return {}
    return build_initial(matrix)


def _find_mapping(request: HttpRequest, original: Benchmark | None = None) -> Mapping | None:
    """Return the mapping that the form or the address names; without one, that of `original` or the only one."""
    mappings = list_mappings(request.user)
    pk = request.POST.get("mapping", request.GET.get("mapping"))
    if pk is None and original:
        pk = str(original.mapping_id)
    offered = leave_out_archived(mappings, path="dataset__tags")
    rows = list(offered[:2]) if pk is None else find_by_id(mappings, pk)
    return rows[0] if len(rows) == 1 else None


def _choose_offer(request: HttpRequest, offers: Iterable[Offer]) -> Offer | None:
    """Return the offer of `?question=`; without it, the first that can be answered."""
    key = request.GET.get("question")
    return next((offer for offer in offers if offer.matrix and key in (None, offer.question.key)), None)


def more_measures(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Measure a benchmark by further measures, from its stored rankings."""
    benchmark: Any = model_admin.get_object(request, str(object_id))

    def act(form: MeasuresForm) -> HttpResponse:
        added = add_measures(benchmark, form.cleaned_data["measures"], by=staff(request))
        messages.success(request, added.sentence)
        if added.operation:
            return redirect(change_url(added.operation))
        return redirect("admin:benchmark_results", benchmark.pk)

    return show_form(
        request,
        model_admin,
        MeasuresForm,
        act,
        permitted=model_admin.has_change_permission(request, benchmark),
        title=f"More measures of {benchmark}",
        submit="Measure",
        intro=(
            "Finished runs are measured from their stored rankings, without searching again. The benchmark already "
            f"has: {', '.join(benchmark.measures)}."
        ),
    )


@require_POST
def preview_benchmark(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Return the preview of the form: the runs that it would create, or its errors."""
    form = read_form(request, model_admin, BenchmarkForm)

    def look() -> dict[str, object]:
        values = form.cleaned_data
        if "mapping" not in values:
            return {}
        options = {name: values[name] for name in PREVIEWED}
        options["runs_per_query"] = values.get("runs_per_query") or 1
        planned = preview(values["mapping"], form.build_matrix(), owner=staff(request), **options)
        prior = find_prior(values["mapping"], staff(request), weighting=values.get("weighting", ""))
        return {
            "preview": planned,
            "execution": values["execution"],
            "foresight": foresee(values["mapping"], len(planned.labels), prior),
        }

    return preview_page(request, "benchmarks/preview.html", form, look, awaited=AWAITED, shown=SHOWN_RUNS)


def benchmark_choices(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Return the form's choice of indexes for the chosen mapping, and its questions."""
    answer = render_choices(request, model_admin, BenchmarkForm, "mapping", ["indexes"])
    mapping = _find_mapping(request) if request.GET.get("mapping") else None
    offers = list_offers(mapping, staff(request)) if mapping else []
    context = {"mapping": mapping, "offers": offers, "is_swapped": True}
    answer.write(render_to_string("benchmarks/questions.html", context, request))
    return answer


def start(request: HttpRequest, benchmark: Benchmark, priority: str = "") -> None:
    """Launch a new benchmark; if that fails, show the error and keep the benchmark."""
    try:
        launch(benchmark, by=staff(request), priority=priority or Priority.NORMAL)
    except BenchbenchError as error:
        messages.error(request, f"The benchmark was created but did not start. {error.message}")


def run_manifest(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Create the benchmark that an uploaded experiment file describes, and start it."""

    def act(form: ManifestForm) -> HttpResponse:
        with form.content(), stored(form.cleaned_data["file"]) as path:
            experiment = strict_yaml.parse(read_text(path), location=form.cleaned_data["file"].name)
            require_published(experiment.get("matrix") if isinstance(experiment, dict) else None)
        benchmark = reproduce(experiment, owner=staff(request), name=form.cleaned_data["name"])
        start(request, benchmark)
        return redirect("admin:benchmark_results", benchmark.pk)

    return show_form(
        request,
        model_admin,
        ManifestForm,
        act,
        title="Run an experiment again",
        submit="Find the data and start",
        intro=(
            "An experiment file describes a benchmark: its data, configurations and values. It runs again on the same "
            "data, found by content; the page then lists the values that differ."
        ),
    )


def download_manifest(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Return a benchmark as an experiment file."""
    benchmark: Benchmark = model_admin.load_viewed(request, object_id)
    try:
        experiment = build_manifest(benchmark)
    except BenchbenchError as error:
        messages.error(request, error.message)
        return redirect("admin:benchmark_results", benchmark.pk)
    name = slugify(benchmark.name) or "benchmark"
    disposition = {"Content-Disposition": f'attachment; filename="{name}.experiment.yaml"'}
    return HttpResponse(strict_yaml.dump(experiment), content_type="application/yaml", headers=disposition)
