"""The page that uploads a dataset: what is in the file, and then its import."""

from typing import Any

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.datasets.importing import DatasetImport, foresee, import_dataset
from apps.datasets.previewing import preview
from apps.datasets.readers.formats import FORMATS
from apps.datasets.upload_forms import DatasetForm
from apps.datasets.uploading import upload_turn
from benchbench.decimals import counted
from benchbench.site.pages import form_page, preview_page, sent_form, staff
from benchbench.site.panels import change_url


def upload_dataset(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: DatasetForm) -> HttpResponse:
        values = form.cleaned_data
        with upload_turn():
            imported = import_dataset(
                form.record(), description=values["description"], owner=staff(request), **form.target()
            )
        messages.success(request, _sentence(imported))
        for warning in imported.report.warnings:
            messages.warning(request, warning)
        return redirect(change_url(imported.version.dataset))

    return form_page(
        request,
        model_admin,
        DatasetForm,
        act,
        title="Upload a dataset",
        submit="Import",
        intro="A dataset holds queries and the documents that answer them. It does not depend on a "
        "collection: a mapping connects the two later. Choose a file, and see what is in it before anything is stored.",
        template="datasets/form.html",
    )


@require_POST
def preview_dataset(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Answer the form as it stands with what its file holds, or with what is wrong with it; nothing is kept."""
    form = sent_form(request, model_admin, DatasetForm)

    def look() -> dict[str, Any]:
        if not form.is_valid():
            return {}
        with upload_turn():
            record = form.record()
            becomes = foresee(record, owner=staff(request), **form.target())
            previewed = preview(record)
        return {"preview": previewed, "becomes": becomes, "format": FORMATS[previewed.format].label}

    awaited = () if "file" in request.FILES else ("file",)
    return preview_page(request, "datasets/preview.html", form, look, awaited=awaited)


def _sentence(imported: DatasetImport) -> str:
    """Say what came of an import, and what to do next."""
    version, report = imported.version, imported.report
    if report.outcome == "unchanged":
        return f"{version} holds exactly this already: nothing was changed."
    besides = f" ({report.besides})" if report.besides else ""
    return (
        f"Imported {counted(version.query_count, 'query')} with {counted(version.judgment_count, 'judgment')} "
        f"as {version}{besides}. Next: map the dataset to the collection in which its documents are."
    )
