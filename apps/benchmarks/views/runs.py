"""Importing a run in the browser: what its file holds, and then its import."""

from typing import Any

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.benchmarks.external.forms import RunForm
from apps.benchmarks.external.importing import NewBenchmark, import_runs, version_for
from apps.benchmarks.external.reports import preview_run
from apps.benchmarks.external.uploading import stored_run
from benchbench.access import may_change
from benchbench.files.runs import FORMATS
from benchbench.site.pages import choices_page, form_page, preview_page, sent_form, staff


def import_run(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: RunForm) -> HttpResponse:
        values = form.cleaned_data
        if values["benchmark"] and not may_change(values["benchmark"], request.user):
            raise PermissionDenied
        with stored_run(form.cleaned_data["file"]) as path:
            imported = import_runs(
                [path],
                new=NewBenchmark(
                    owner=staff(request),
                    empty_queries=values["empty_queries"] or "zero",
                    **{name: values[name] for name in ("name", "k", "measures")},
                ),
                **{name: values[name] for name in ("dataset", "version", "benchmark")},
                **form.reading(),
            )
        ((run, report),) = imported.runs
        messages.success(request, f"Imported {report.sentence} It is the run “{run.label}”.")
        for note in report.notes():
            messages.warning(request, note)
        return redirect("admin:benchmark_results", imported.benchmark.pk)

    return form_page(
        request,
        model_admin,
        RunForm,
        act,
        title="Import a run",
        submit="Import",
        intro="Rankings that were made elsewhere are measured like any other run. Their documents are not needed: "
        "judgments and runs name them by id. Choose a file, and see what is in it before anything is "
        "stored.",
        template="benchmarks/run_form.html",
    )


@require_POST
def preview_run_file(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Answer the form as it stands with what its file holds for its dataset, or with what is wrong; nothing is kept."""
    form = sent_form(request, model_admin, RunForm)

    def look() -> dict[str, Any]:
        if not form.is_valid():
            return {}
        values = form.cleaned_data
        version = version_for(values["dataset"], version=values["version"], benchmark=values["benchmark"])
        with stored_run(values["file"]) as path:
            report = preview_run(path, version=version, **form.reading())
        return {"report": report, "version": version, "format": FORMATS[report.format]}

    awaited = () if "file" in request.FILES else ("file", "dataset")
    return preview_page(request, "benchmarks/run_preview.html", form, look, awaited=awaited)


def run_choices(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Answer with the benchmarks and the versions of the chosen dataset, which a run can be imported into."""
    return choices_page(request, model_admin, RunForm, "dataset", ["benchmark", "version"])
