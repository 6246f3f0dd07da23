"""Page that leads from two files to a benchmark: its form, and what it imports."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminRadioSelectWidget

from apps.collections.forms import CorpusForm
from apps.collections.models import Collection
from apps.collections.records import Reading
from apps.collections.uploading import describe_unread, ensure_uploaded_collection, refuse_judged_upload
from apps.collections.views import preview_documents, show_reading
from apps.datasets.forms import JudgedFilesField, QueriesForm
from apps.datasets.importing import DatasetImport, import_dataset
from apps.datasets.models import Dataset, Judgment
from apps.datasets.records import DatasetRecord, QueryRecord
from apps.datasets.uploading import upload_turn
from apps.datasets.versions import list_references
from apps.datasets.views.datasets import has_preview, preview_queries
from apps.engines.declarations import list_engines
from apps.execution.defining.questions import QUESTIONS
from apps.execution.preparing import NEEDED, prepare
from apps.mappings.checking import describe_match, name_documents
from apps.mappings.creating import delete_dataset, find_mapping
from apps.mappings.models import Mapping
from apps.mappings.rereading import UnmatchedError, find_reading
from apps.mappings.resolving import CHUNK
from apps.records.models import Benchmark
from apps.retrieval.forms import PromptsForm
from apps.retrieval.llms.servers import find_first_llm
from benchbench.access import require, staff
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.files.sniffing import SwappedError
from benchbench.names import find_free_name
from benchbench.site.pages import read_form, show_form
from benchbench.site.panels import change_url

R = TypeVar("R", bound=Model)
JUDGED = "Upload judged queries"


class JudgedForm(QueriesForm):
    source = "queries"
    content_field: str | None = "queries"

    queries = JudgedFilesField(
        label=JUDGED,
        required=False,
        remedy="Import larger files with manage.py import_dataset, and choose the dataset.",
    )
    collection = forms.ModelChoiceField(Collection.objects.none(), required=False, label="Or choose a collection")
    dataset = forms.ModelChoiceField(Dataset.objects.none(), required=False, label="Or choose a dataset")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.match: tuple[str, bool] | None = None
        self.choose(Mapping, "collection")
        self.choose(Mapping, "dataset")

    def record(self) -> DatasetRecord:
        """Return the dataset of the uploaded files, as the chosen collection lets its references be read."""
        record, collection = super().record(), self.cleaned_data.get("collection")
        doc_refs = (judgment.doc_ref for query in record.queries for judgment in query.judgments)
        reading = collection and find_reading(doc_refs, collection)
        return reading.apply(record) if reading else record

    def foresee(self, record: DatasetRecord) -> str:
        self._match(judgment.doc_ref for query in record.queries for judgment in query.judgments)
        return ""

    def name_documents(self, queries: Sequence[QueryRecord]) -> list[str]:
        collection = self.cleaned_data["collection"]
        if not collection or not self.user.has_perm("collections.view_document"):
            return super().name_documents(queries)
        return name_documents([query.judgments[0].doc_ref if query.judgments else {} for query in queries], collection)

    def preview(self) -> dict[str, Any]:
        """Return the content of uploaded files, and how many judged documents the chosen collection has."""
        uploads, dataset = self.cleaned_data["queries"], self.cleaned_data["dataset"]
        version = dataset and dataset.versions.exclude(frozen_at=None).first()
        if version and not uploads:
            self._match(version.judgments.order_by("pk").values_list("doc_ref", flat=True).iterator(CHUNK))
        return (super().preview() if uploads else {}) | {"match": self.match}

    def _match(self, doc_refs: Iterable[object]) -> None:
        collection = self.cleaned_data["collection"]
        if collection and collection.kind != Collection.Kind.EXTERNAL:
            self.match = describe_match(doc_refs, collection)


class EvaluationForm(PromptsForm, JudgedForm, CorpusForm):
    question = forms.ChoiceField(
        label="What do you want to know?",
        widget=UnfoldAdminRadioSelectWidget,
        initial="modes",
        choices=[
            (key, format_html("<strong>{}</strong> {}", question.title, question.contrast or question.sentence))
            for key, question in QUESTIONS.items()
        ],
    )
    encoder = forms.CharField(
        max_length=500, help_text="Published name of the sentence-transformers model that turns texts into vectors."
    )

    sections = (
        ("Documents", "", ("corpus", "collection")),
        ("Queries", "", ("queries", "dataset")),
        ("Question", "", ("question", "encoder")),
    )
    folds = (
        (
            "How files are read (language, format, split, columns, grade factor, sample): detected",
            "",
            ("language", *QueriesForm.options),
        ),
        ("Prompts of the encoder: those of the model's configuration", "", ("query_prompt", "document_prompt")),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        llm, problem = find_first_llm()
        question: Any = self.fields["question"]
        if not list_engines():
            question.choices = [choice for choice in question.choices if choice[0] != "migration"]
        if not llm:
            question.choices = [choice for choice in question.choices if choice[0] != "rewriting"]
            question.help_text = f"To ask “{QUESTIONS['rewriting'].title}”: {problem}"

    def clean(self) -> None:
        for file, choice in (("corpus", "collection"), ("queries", "dataset")):
            number = sum(bool(self.cleaned_data.get(name)) for name in (file, choice))
            if number == 2:
                self.add_error(choice, "Leave this empty, or do not upload a file.")
            elif number == 0 and not {file, choice} & self.errors.keys():
                self.add_error(file, f"Upload a file, or choose a {choice}.")
        if self.cleaned_data.get("collection") and self.cleaned_data.get("language"):
            self.add_error("language", "Leave this empty: the chosen collection has its language.")

    def choose_row(self, name: str, key: str) -> None:
        """Choose a row by its key in the form as it is shown again; "" for none. A collection has its language."""
        self.data: Any = self.data.copy()
        self.data[name] = key
        if name == "collection":
            self.data["language"] = ""


def new_evaluation(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Import documents and queries, prepare the benchmark of a question, and lead to it or to the progress."""

    def act(form: EvaluationForm) -> HttpResponse:
        values, user = form.cleaned_data, staff(request)
        is_read = has_preview(request) and values["collection"]
        rows = _Rows(form, user)
        try:
            dataset, collection = rows.find_or_import()
            encoder = values["encoder"], form.encoder_parameters
            result = prepare(dataset, collection, QUESTIONS[values["question"]], encoder=encoder, by=user)
        except BenchbenchError as error:
            if isinstance(error, SwappedError):
                error.message += f" Choose documents under Upload documents, and judged queries under {JUDGED}."
            if isinstance(error, UnmatchedError):
                rows.forget_new_dataset()
            for link in rows.list_links():
                messages.info(request, link)
            raise
        unread = describe_unread(values["corpus"]) if values["corpus"] else ""
        warnings = rows.imported.report.warnings if rows.imported and not is_read else ()
        notes = () if has_preview(request) else rows.reading.notes
        show_reading(request, notes, (*warnings, *rows.reading.warnings, unread))
        name = "benchmark_results" if isinstance(result, Benchmark) else "evaluation"
        return redirect(f"admin:{name}", result.pk)

    require(request.user, *NEEDED)
    return show_form(
        request,
        model_admin,
        EvaluationForm,
        act,
        permitted=True,
        title="New evaluation",
        submit="Start",
        intro="From documents and judged queries to a verdict: both are imported and connected, the documents are "
        "indexed, and a benchmark of your question starts.",
        template="benchmarks/evaluate.html",
        queries_fields=("queries", "collection", "dataset", *QueriesForm.options),
    )


@require_POST
def preview_evaluation(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Answer the form of a new evaluation with the content of its judged queries; nothing is stored."""
    require(request.user, *NEEDED)
    return preview_queries(request, read_form(request, model_admin, JudgedForm))


@require_POST
def preview_corpus(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Answer the form of a new evaluation with its first documents; nothing is stored."""
    require(request.user, *NEEDED)
    return preview_documents(request, read_form(request, model_admin, CorpusForm))


class _Rows:
    """The dataset and the collection of a new evaluation: chosen in its form, or made of its files."""

    def __init__(self, form: EvaluationForm, user: User) -> None:
        self.form, self.user = form, user
        self.imported: DatasetImport | None = None
        self.kept: dict[str, Model] = {}
        self.reading = Reading()

    def find_or_import(self) -> tuple[Dataset, Collection]:
        """Return both. Uploaded queries are read again if no reference matches the uploaded documents as written."""
        form, values = self.form, self.form.cleaned_data
        try:
            dataset = self._keep("dataset", values["dataset"] or self._import_queries())
        except BenchbenchError as error:
            if values["corpus"] and not isinstance(error, SwappedError):
                form.content_field = "corpus"
                refuse_judged_upload(values["corpus"])
                form.content_field = "queries"
            raise
        form.content_field = "corpus"
        if not values["collection"]:
            with form.content():
                values["collection"], self.reading = _import_corpus(form, self.user, dataset)
            self._keep("collection", values["collection"])
            doc_refs = self.imported.version.judgments.order_by("pk") if self.imported else Judgment.objects.none()
            if find_reading(doc_refs.values_list("doc_ref", flat=True).iterator(CHUNK), values["collection"]):
                self.forget_new_dataset()
                dataset = self._keep("dataset", self._import_queries())
        form.content_field = None
        return dataset, self._keep("collection", values["collection"])

    def _import_queries(self) -> Dataset:
        """Return the dataset of the uploaded files: under a free name, if its name is taken."""
        self.form.content_field = "queries"
        with upload_turn():
            record = self.form.record()
            try:
                self.imported = import_dataset(record, owner=self.user)
            except ConflictError:
                taken = Dataset.objects.filter(owner=self.user).values_list("name", flat=True)
                self.imported = import_dataset(record, name=find_free_name(record.name, taken), owner=self.user)
        return self.imported.version.dataset

    def _keep(self, name: str, row: R) -> R:
        """Choose a row in the form, so that an error elsewhere does not import its file again."""
        self.kept[name] = row
        self.form.choose_row(name, str(row.pk))
        return row

    def forget_new_dataset(self) -> None:
        """Delete the dataset if it was made here: read in another way, its file is another dataset."""
        if self.imported and self.imported.report.outcome == "created":
            delete_dataset(self.imported.version.dataset)
            del self.kept["dataset"]
            self.form.choose_row("dataset", "")
            self.imported = None

    def list_links(self) -> list[SafeString]:
        """Return sentences that link to the rows that exist, and to their mapping."""
        rows = [*self.kept.values()]
        dataset, collection = self.kept.get("dataset"), self.kept.get("collection")
        if isinstance(dataset, Dataset) and isinstance(collection, Collection):
            mapping = find_mapping(dataset, collection, owner=self.user)
            rows += [mapping] if mapping else []
        links = [format_html('<a class="underline" href="{}">{}</a>', change_url(row), row) for row in rows]
        return [
            format_html("The {} {} exists and stays.", row._meta.verbose_name, link)
            for row, link in zip(rows, links, strict=True)
        ]


def _import_corpus(form: EvaluationForm, user: User, dataset: Dataset) -> tuple[Collection, Reading]:
    """Return the collection of an uploaded file, named after it, and what was read of a table.

    The dataset's references show which paths it needs.
    """
    return ensure_uploaded_collection(
        form.cleaned_data["corpus"],
        owner=user,
        language=form.cleaned_data["language"],
        references=list_references(dataset),
        columns=form.read_columns(),
    )
