"""Pages about benchmarks."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from apps.benchmarks.creating import choose_indexes, create_benchmark, require_current
from apps.benchmarks.forms import BenchmarkForm
from apps.benchmarks.launching import launch
from benchbench.errors import BenchbenchError
from benchbench.ir.matrix import Matrix
from benchbench.pages import form_page, staff

SHOWN_RUNS = 12


def add_benchmark(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: BenchmarkForm) -> HttpResponse:
        benchmark = create_benchmark(
            form.cleaned_data["mapping"], matrix=form.matrix(), owner=staff(request), **form.options()
        )
        if "start" in request.POST:
            try:
                launch(benchmark, owner=staff(request))
            except BenchbenchError as error:
                messages.error(request, f"The benchmark is made, but did not start. {error.message}")
        return redirect("admin:benchmark_results", benchmark.pk)

    return form_page(
        request,
        model_admin,
        BenchmarkForm,
        act,
        title="New benchmark",
        submit="Create and start",
        template="benchmarks/form.html",
    )


@require_POST
def preview(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Answer the form as it stands with the runs that it would make, or with what is wrong and where."""
    if not model_admin.has_add_permission(request):
        raise PermissionDenied
    form = BenchmarkForm(request.POST, user=request.user)
    form.is_valid()
    context: dict[str, Any] = {"form": form}
    try:
        matrix = Matrix.parse(
            form.matrix(), max_runs=settings.BENCHMARK_MAX_RUNS, max_values=settings.BENCHMARK_MAX_VALUES_PER_AXIS
        )
        configurations = matrix.configurations()
        context |= {"runs": configurations[:SHOWN_RUNS], "total": len(configurations)}
        context["more"] = max(0, len(configurations) - SHOWN_RUNS)
        if mapping := form.cleaned_data.get("mapping"):
            require_current(mapping)
            choose_indexes(mapping, configurations)
            context["queries"] = mapping.dataset_version.query_count
    except BenchbenchError as error:
        form.present(error)
    return render(request, "benchmarks/preview.html", context)
