"""Pages about benchmarks."""

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from apps.benchmarks.creating import create_benchmark
from apps.benchmarks.forms import BenchmarkForm
from apps.benchmarks.launching import launch
from apps.benchmarks.previewing import preview
from benchbench.errors import BenchbenchError
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
def preview_benchmark(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Answer the form as it stands with the runs that it would make, or with what is wrong and where."""
    if not model_admin.has_add_permission(request):
        raise PermissionDenied
    form = BenchmarkForm(request.POST, user=request.user)
    form.is_valid()
    found = None
    if mapping := form.cleaned_data.get("mapping"):
        try:
            found = preview(mapping, form.matrix())
        except BenchbenchError as error:
            form.present(error)
    context = {"form": form, "preview": found, "shown": SHOWN_RUNS, "mapping": mapping}
    return render(request, "benchmarks/preview.html", context)
