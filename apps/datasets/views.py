"""Pages about datasets."""

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.datasets.forms import DatasetForm
from apps.datasets.importing import import_dataset
from apps.datasets.readers.schema1 import read_schema1
from benchbench.pages import form_page, staff, stored
from benchbench.panels import change_url


def upload_dataset(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: DatasetForm) -> HttpResponse:
        values = form.cleaned_data
        with stored(values["file"]) as path:
            record = read_schema1(path)
        imported = import_dataset(
            record, name=values["name"] or None, description=values["description"], owner=staff(request)
        )
        version = imported.version
        messages.success(
            request,
            f"Imported {version.query_count:,} queries with {version.judgment_count:,} judgments as {version}. "
            "Next: map the dataset to the collection in which its documents are.",
        )
        return redirect(change_url(version.dataset))

    return form_page(
        request,
        model_admin,
        DatasetForm,
        act,
        title="Upload a dataset",
        submit="Upload and check",
        intro="A dataset holds queries and which documents answer them. It does not depend on a collection: "
        "a mapping lays it over one later.",
    )
