"""Pages about collections."""

from collections.abc import Iterable

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.collections.forms import CollectionForm, DocumentsForm
from apps.collections.uploading import describe_unread
from apps.collections.uploading import upload_collection as import_upload
from benchbench.access import staff
from benchbench.decimals import counted
from benchbench.site.pages import preview_page, read_form, show_form
from benchbench.site.panels import change_url


def upload_collection(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: CollectionForm) -> HttpResponse:
        values = form.cleaned_data
        options = {"name": values["name"], "language": values["language"], "owner": staff(request)}
        with form.content("name", "columns"):
            collection, report = import_upload(values["file"], columns=form.read_columns(), **options)
        messages.success(
            request,
            f"Imported {report.created:,} documents. Language: {collection.language_words}. "
            "Next: build an index, so that it can be searched.",
        )
        show_reading(request, (), [*report.warnings, describe_unread(values["file"])])
        if report.empty:
            messages.warning(request, f"{counted(report.empty, 'document')} without a text: only a title is searched.")
        return redirect(change_url(collection))

    return show_form(
        request,
        model_admin,
        CollectionForm,
        act,
        title="Upload a collection",
        submit="Upload and import",
        intro="A collection is the set of documents that is searched.",
        template="collections/form.html",
    )


def show_reading(request: HttpRequest, notes: Iterable[str], warnings: Iterable[str]) -> None:
    """Show what was read of a file, which its collection's page keeps, and what may be read wrong."""
    for note in notes:
        messages.info(request, note)
    for warning in filter(None, warnings):
        messages.warning(request, warning)


@require_POST
def preview_collection(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Answer the unsaved form with the first documents of its file, or with its errors; nothing is stored."""
    return preview_documents(request, read_form(request, model_admin, CollectionForm), is_named=True)


def preview_documents(request: HttpRequest, form: DocumentsForm, *, is_named: bool = False) -> HttpResponse:
    """Answer a form with the first documents of its file, and the collection's name; nothing is stored."""
    form.full_clean()
    becomes = form.cleaned_data.get("name") if is_named else ""
    look = form.look if form.cleaned_data.get(form.documents) and "columns" not in form.errors else dict
    choices, awaited = form.document_choices, (form.documents,)
    context = {"choices": choices, "becomes": becomes}
    return preview_page(request, "collections/preview.html", form, look, awaited=awaited, unread=("name",), **context)
