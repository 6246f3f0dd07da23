"""Pages about collections."""

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html

from apps.collections.models import Collection
from apps.collections.uploading import ACCEPTED, describe_unread
from apps.collections.uploading import upload_collection as import_upload
from benchbench.access import staff
from benchbench.decimals import counted
from benchbench.site.pages import PageForm, SizedFileField, show_form
from benchbench.site.panels import change_url
from benchbench.texts.languages import list_choices


class CollectionForm(PageForm):
    content_field = "file"

    name = forms.CharField(
        max_length=200,
        widget=forms.TextInput({"placeholder": "Product handbook, May"}),
        help_text="What your team calls these documents.",
    )
    language = forms.ChoiceField(
        required=False,
        choices=[("", "Guess from the documents"), *list_choices()],
        help_text="Lexical search normalises and stems words by it. It can be changed until an index exists.",
    )
    file = SizedFileField(
        label="Corpus",
        accept=ACCEPTED,
        limit="BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES",
        remedy="Import larger files with manage.py import_collection.",
        help_text=format_html(
            "A table with a row for each document: CSV, JSON Lines such as BEIR’s <code>{}</code>, or a list in JSON. "
            "It needs columns of ids and texts, under usual names in some languages; titles and URLs may follow, and "
            "others become metadata. Judgments will find a document by its id, its URL or the hash of its content. "
            "Or a <code>{}</code> of Markdown, HTML and text files, or of sectioned documents.",
            *('{"_id": "d1", "title": "…", "text": "…"}', ".zip"),
        ),
    )

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if Collection.objects.filter(owner=self.user, name=name).exists():
            raise forms.ValidationError(
                f'You already have a collection "{name}": choose another name. '
                "To bring it up to date, run manage.py import_collection."
            )
        return name


def upload_collection(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: CollectionForm) -> HttpResponse:
        values = form.cleaned_data
        collection, report = import_upload(
            values["file"], name=values["name"], language=values["language"], owner=staff(request)
        )
        messages.success(
            request,
            f"Imported {report.created:,} documents. Language: {collection.language_words}. "
            "Next: build an index, so that it can be searched.",
        )
        for note in filter(None, (*report.notes, describe_unread(values["file"]))):
            messages.warning(request, note)
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
        intro="A collection is the set of documents that is searched. It is imported as a whole, or not at all. "
        f"At most {filesizeformat(settings.BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES)} can be uploaded here; import larger "
        f"files with manage.py import_collection.",
    )
