"""Pages that lead from two files to a benchmark: the form, and the progress until the benchmark starts."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminRadioSelectWidget

from apps.collections.models import Collection
from apps.collections.uploading import ENDINGS, ensure_uploaded_collection
from apps.datasets.forms import QueriesForm
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset
from apps.datasets.uploading import FilesField, upload_turn
from apps.datasets.versions import list_references
from apps.datasets.views.datasets import preview_queries
from apps.engines.declarations import list_engines
from apps.execution.defining.questions import QUESTIONS
from apps.execution.preparing import load_indexes, prepare
from apps.mappings.checking import UnmatchedError
from apps.mappings.creating import delete_dataset, find_mapping
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.operations.progress import Progress, compute_each_progress
from apps.operations.queueing import count_each_ahead
from apps.operations.waiting import describe_wait
from apps.records.models import Benchmark, Preparation
from apps.retrieval.encoders.admitting import describe_name_problem
from apps.retrieval.llms.servers import find_first_llm
from apps.retrieval.models import Index
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.files.sniffing import SwappedError
from benchbench.names import find_free_name
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import SizedFileField, read_form, show_form, staff
from benchbench.site.panels import change_url

NEEDED = (
    *("collections.add_collection", "datasets.add_dataset", "mappings.add_mapping"),
    *("retrieval.add_index", "benchmarks.add_benchmark"),
)


CORPUS, JUDGED = "Upload documents", "Upload judged queries"


class JudgedForm(QueriesForm):
    source = "queries"
    content_field: str | None = "queries"

    queries = FilesField(
        label=JUDGED,
        required=False,
        limit="BENCHMARK_DATASET_MAX_UPLOAD_BYTES",
        remedy="Import larger files with manage.py import_dataset, and choose the dataset.",
        help_text="A table (CSV) with a row for each judgment: query, document, grade. Or queries and judgments in two "
        "files, chosen at once: queries.jsonl with qrels.tsv, topics with TREC judgments. Or a .zip, or any other "
        "format of datasets.",
    )


class EvaluationForm(JudgedForm):
    corpus = SizedFileField(
        label=CORPUS,
        required=False,
        accept=".jsonl,.gz,.zip",
        limit="BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES",
        remedy="Import larger files with manage.py import_collection, and choose the collection.",
        help_text=format_html(
            "A corpus in <code>{}</code> or <code>{}</code> with a document per line, as in BEIR, or a <code>{}</code> "
            "of Markdown, HTML and text files.",
            *(".jsonl", ".jsonl.gz", ".zip"),
        ),
    )
    collection = forms.ModelChoiceField(Collection.objects.none(), required=False, label="Or choose a collection")
    dataset = forms.ModelChoiceField(Dataset.objects.none(), required=False, label="Or choose a dataset")
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
        ("Documents", "What is searched.", ("corpus", "collection")),
        ("Queries", "What is asked, with the documents that answer it.", ("queries", "dataset")),
        ("Question", "", ("question", "encoder")),
        ("Judged queries", "How the uploaded files are read.", QueriesForm.options),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choose(Mapping, "collection")
        self.choose(Mapping, "dataset")
        self.fields["encoder"].initial = settings.BENCHBENCH_DEFAULT_MODEL
        llm, problem = find_first_llm()
        question: Any = self.fields["question"]
        if not list_engines():
            question.choices = [choice for choice in question.choices if choice[0] != "migration"]
        if not llm:
            question.choices = [choice for choice in question.choices if choice[0] != "rewriting"]
            question.help_text = f"To ask “{QUESTIONS['rewriting'].title}”: {problem}"

    def clean_encoder(self) -> str:
        name: str = self.cleaned_data["encoder"].strip()
        if sentence := describe_name_problem(name):
            raise forms.ValidationError(sentence)
        return name

    def clean(self) -> None:
        for file, choice in (("corpus", "collection"), ("queries", "dataset")):
            number = sum(bool(self.cleaned_data.get(name)) for name in (file, choice))
            if number == 2:
                self.add_error(choice, "Leave this empty, or do not upload a file.")
            elif number == 0 and not {file, choice} & self.errors.keys():
                self.add_error(file, f"Upload a file, or choose a {choice}.")

    def keep(self, name: str, row: Model) -> Model:
        """Choose an imported row in the form, so that an error elsewhere does not import its file again."""
        self.data: Any = self.data.copy()
        self.data[name] = str(row.pk)
        return row


def new_evaluation(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Import documents and queries, prepare the benchmark of a question, and lead to it or to the progress."""

    def act(form: EvaluationForm) -> HttpResponse:
        values, user = form.cleaned_data, staff(request)
        imported: list[Model] = []
        try:
            form.content_field = "queries"
            dataset, is_new = (values["dataset"], False) if values["dataset"] else _import_queries(form, user)
            imported.append(form.keep("dataset", dataset))
            form.content_field = "corpus"
            collection = values["collection"] or _import_corpus(values["corpus"], user, dataset)
            imported.append(form.keep("collection", collection))
            form.content_field = None
            question = QUESTIONS[values["question"]]
            result = prepare(dataset, collection, question, encoder=values["encoder"], by=user)
        except BenchbenchError as error:
            if isinstance(error, SwappedError):
                error.message += f" Choose documents under {CORPUS}, and judged queries under {JUDGED}."
            if isinstance(error, UnmatchedError) and is_new:  # read in another way, the file is another dataset
                delete_dataset(dataset)
                form.data["dataset"] = ""
                imported.remove(dataset)
            elif len(imported) == 2 and (mapping := find_mapping(dataset, collection, owner=user)):
                imported.append(mapping)
            _list_imported(request, imported)
            raise
        name = "benchmark_results" if isinstance(result, Benchmark) else "evaluation"
        return redirect(f"admin:{name}", result.pk)

    return show_form(
        request,
        model_admin,
        EvaluationForm,
        act,
        permitted=request.user.has_perms(NEEDED),
        title="New evaluation",
        submit="Start",
        intro="From documents and judged queries to a verdict: both are imported and connected, the documents are "
        "indexed, and a benchmark of your question starts.",
        template="benchmarks/evaluate.html",
    )


def _list_imported(request: HttpRequest, rows: list[Model]) -> None:
    """Show links to the rows that an evaluation made before it failed."""
    for row in rows:
        link = format_html('<a class="underline" href="{}">{}</a>', change_url(row), row)
        messages.info(request, format_html("The {} {} exists and stays.", row._meta.verbose_name, link))


@require_POST
def preview_evaluation(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Answer the form of a new evaluation with the content of its judged queries; nothing is stored."""
    if not request.user.has_perms(NEEDED):
        raise PermissionDenied
    return preview_queries(request, read_form(request, model_admin, JudgedForm))


def _import_queries(form: EvaluationForm, user: User) -> tuple[Dataset, bool]:
    """Return the dataset of the uploaded files, and whether it is new: under a free name, if its name is taken."""
    with upload_turn():
        record = form.record()
        try:
            imported = import_dataset(record, owner=user)
        except ConflictError:
            taken = Dataset.objects.filter(owner=user).values_list("name", flat=True)
            imported = import_dataset(record, name=find_free_name(record.name, taken), owner=user)
    return imported.version.dataset, imported.report.outcome == "created"


def _import_corpus(upload: Any, user: User, dataset: Dataset) -> Collection:
    """Return the collection of an uploaded file, named after it; the dataset's references show which paths it needs."""
    name = upload.name or "documents"
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), "")
    references = list_references(dataset)
    return ensure_uploaded_collection(upload, name=name.removesuffix(ending), owner=user, references=references)


def evaluation_progress(request: HttpRequest, model_admin: SiteAdmin, preparation_id: uuid.UUID) -> HttpResponse:
    """Show the steps until the benchmark starts, then lead to it."""
    rows = Preparation.objects.select_related("started_by", "benchmark", "mapping__dataset", "mapping__collection")
    preparation = get_object_or_404(rows.select_related("mapping__dataset_version"), pk=preparation_id)
    if request.user != preparation.started_by and not request.user.is_superuser:  # it names rows of theirs
        raise PermissionDenied
    if preparation.benchmark:
        results = reverse("admin:benchmark_results", args=[preparation.benchmark.pk])
        return HttpResponse(headers={"HX-Redirect": results}) if "HX-Request" in request.headers else redirect(results)
    mapping, error, indexes = preparation.mapping, preparation.error, load_indexes(preparation)
    if len(indexes) < len(preparation.index_ids):
        error = "An index was deleted."
    question = QUESTIONS[preparation.question]
    work = list(_yield_steps([mapping, *indexes], error))
    states = [step.state for step in work]
    version = mapping.dataset_version
    steps = [
        Step("Documents", "done", mapping.collection, counted(mapping.collection.document_count, "document")),
        Step("Queries", "done", mapping.dataset, counted(version.query_count if version else 0, "query")),
        *work,
        Step("Benchmark", "failed" if error else "waiting", result=question.title, error=error),
    ]
    again = {"collection": mapping.collection_id, "dataset": mapping.dataset_id, "question": question.key}
    again["encoder"] = indexes[0].encoder if indexes else ""
    context = {
        "title": "New evaluation",
        "mapping": mapping,
        "steps": steps,
        "is_failed": "failed" in states or error,
        "is_running": not {"queued", "running"}.isdisjoint(states),
        "retry_url": f"{reverse('admin:new_evaluation')}?{urlencode(again, safe='', quote_via=quote)}",
    }
    return model_admin.render_page(request, "benchmarks/evaluation.html", context)


@dataclass(frozen=True)
class Step:
    """A step of a new evaluation on its page. The state is "done", "queued", "running", "failed" or "waiting"."""

    title: str
    state: str
    row: Model | None = None
    result: str = ""
    progress: Progress | None = None
    waiting_for: str | None = None
    position: int | None = None
    error: str = ""


def _yield_steps(rows: list[Any], error: str) -> Iterator[Step]:
    """Yield the steps of a mapping and its indexes. `error` is that of a failed step without its own."""
    operations = Operation.objects.filter(subject_id__in=[row.pk for row in rows]).order_by("created_at")
    newest = {operation.subject_id: operation for operation in operations}
    active = [operation for operation in newest.values() if operation.is_active]
    progress, ahead = compute_each_progress(active), count_each_ahead(active)
    for row in rows:
        operation = newest.get(row.pk)
        step = Step("Mapping" if isinstance(row, Mapping) else "Index", "failed", row=row)
        if operation and operation.is_active:
            yield replace(
                step,
                state=operation.status_word,
                progress=progress[operation],
                waiting_for=describe_wait(operation),
                position=ahead[operation],
            )
        elif row.status in (Index.Status.READY, Mapping.Status.RESOLVED, Mapping.Status.PARTIAL):
            yield replace(step, state="done", result=_describe_mapped(row) if isinstance(row, Mapping) else "")
        else:
            yield replace(step, error=operation.error if operation and operation.error else error)


def _describe_mapped(mapping: Mapping) -> str:
    return f"{mapping.mapped_count:,} of {mapping.total_count:,} judgments have a document"
