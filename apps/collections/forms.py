"""Forms with a file of documents: its upload, and the choice of a table's columns."""

import json
from typing import Any, ClassVar

from django import forms
from django.utils.html import format_html

from apps.collections.columns import ColumnChoices
from apps.collections.models import Collection
from apps.collections.records import DocumentError
from apps.collections.tables import read_columns
from apps.collections.uploading import ACCEPTED, describe_unread, find_name, preview_documents
from benchbench.errors import BenchbenchError
from benchbench.files.columns import OF_DOCUMENTS
from benchbench.names import MAX_LENGTH, find_free_name
from benchbench.site.pages import PageForm, Remedy, Sections, SizedFileField
from benchbench.texts.languages import list_choices


class DocumentsForm(PageForm):
    """Form with a file of documents in the field `documents`, and a choice of columns by selects called `select`."""

    documents: ClassVar[str] = "file"
    content_options: ClassVar[tuple[str, ...]] = ("columns",)
    select: ClassVar[str] = "column"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.document_choices = ColumnChoices(self.data, OF_DOCUMENTS, name=self.select)

    def read_columns(self) -> dict[str, str]:
        """Return the fields of columns: what is written goes before what was chosen. Raises BenchbenchError."""
        return read_columns(self.document_choices.list_pairs())

    def look(self) -> dict[str, object]:
        """Return what a preview shows of the file. Raises the errors of its reader."""
        upload = self.cleaned_data[self.documents]
        with self.content("columns"):
            try:
                preview = preview_documents(upload, columns=self.read_columns())
            except DocumentError as error:
                if error.reading:
                    self.document_choices.show(error.reading.columns, error.reading.samples)
                raise
        self.document_choices.show(preview.reading.columns, preview.reading.samples)
        return {"preview": preview, "unread": describe_unread(upload)}


class LanguageField(forms.ChoiceField):
    def __init__(self, *, help_text: str, label: str | None = None) -> None:
        choices = [("", "Guess from the documents"), *list_choices()]
        super().__init__(required=False, choices=choices, label=label, help_text=help_text)


class CorpusField(SizedFileField):
    """A field of a file of documents."""

    formats_template = "collections/formats.html"

    def __init__(self, *, label: str, remedy: str, required: bool = True) -> None:
        super().__init__(
            label=label,
            remedy=remedy,
            required=required,
            accept=ACCEPTED,
            limit="BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES",
            help_text="A table with a row for each document: id and text. Or a .zip of Markdown, HTML and text files.",
        )


class CollectionForm(DocumentsForm):
    content_field = "file"

    sections: ClassVar[Sections] = (("", "", ("file", "name")),)
    folds: ClassVar[Sections] = (("Language and columns: detected", "", ("language", "columns")),)

    name = forms.CharField(max_length=MAX_LENGTH, required=False, help_text="Empty: the name of the file.")
    language = LanguageField(
        help_text="Lexical search normalises and stems words by it. It can be changed until an index exists."
    )
    file = CorpusField(label="Documents", remedy="Import larger files with manage.py import_collection.")
    columns = forms.CharField(
        required=False,
        widget=forms.Textarea({"rows": 2, "placeholder": "text=notes\ntitle=product"}),
        help_text=format_html(
            "Of a table: one <code>{}</code> per line if the names differ; <code>{}</code> is not read. The preview "
            "has selects for them.",
            *("field=column", "=column"),
        ),
    )

    def clean_columns(self) -> str:
        try:
            self.read_columns()
        except BenchbenchError as error:
            raise forms.ValidationError(error.message) from None
        return str(self.cleaned_data["columns"])

    def read_columns(self) -> dict[str, str]:
        return read_columns(self.document_choices.list_pairs(self.cleaned_data["columns"]))

    def clean_name(self) -> str:
        upload = self.files.get("file")
        name: str = self.cleaned_data["name"] or (upload and find_name(upload)[:MAX_LENGTH]) or ""
        if Collection.objects.filter(owner=self.user, name=name).exists():
            taken = Collection.objects.filter(owner=self.user).values_list("name", flat=True)
            free = find_free_name(name, taken)
            self.remedy = Remedy(f"Name it {free}", json.dumps({"name": free}))
            raise forms.ValidationError(
                f'You already have a collection "{name}": choose another name. '
                "To bring it up to date, run manage.py import_collection."
            )
        return name


class CorpusForm(DocumentsForm):
    """Form with the documents of a new evaluation."""

    documents = "corpus"
    select = "corpus_column"
    content_field: str | None = "corpus"

    corpus = CorpusField(
        label="Upload documents",
        required=False,
        remedy="Import larger files with manage.py import_collection, and choose the collection.",
    )
    language = LanguageField(
        label="Language of uploaded documents", help_text="Lexical search normalises and stems words by it."
    )
