"""Pages about collections."""

from django.conf import settings
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import filesizeformat

from apps.collections.forms import CollectionForm
from apps.collections.uploading import upload_collection as import_upload
from benchbench.decimals import counted
from benchbench.site.pages import form_page, staff
from benchbench.site.panels import change_url


def upload_collection(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: CollectionForm) -> HttpResponse:
        values = form.cleaned_data
        collection, report = import_upload(values["file"], name=values["name"], owner=staff(request))
        messages.success(
            request, f"Imported {report.created:,} documents. Next: build an index, so that it can be searched."
        )
        if report.empty:
            messages.warning(request, f"{counted(report.empty, 'document')} without a text: only a title is searched.")
        return redirect(change_url(collection))

    return form_page(
        request,
        model_admin,
        CollectionForm,
        act,
        title="Upload a collection",
        submit="Upload and import",
        intro="A collection is the set of documents that is searched. It is imported as a whole, or not at all. "
        f"At most {filesizeformat(settings.BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES)} can be uploaded here; what is larger "
        "is imported by the command manage.py import_collection.",
    )
