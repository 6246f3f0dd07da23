"""The pages that try a query, on the indexes of a collection or on a declared engine, and the answers by a worker."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import slugify

from apps.collections.models import Collection, Document
from apps.datasets.editing.drafts import find_draft
from apps.datasets.models import Dataset, Query
from apps.engines.declarations import load_declarations
from apps.mappings.models import Mapping
from apps.mappings.repairing import find_judgments
from apps.operations.queueing import QUICK
from apps.operations.waiting import describe_workers
from apps.records.models import QueryResult
from apps.results.triage.queries import load_hits
from apps.results.trying import Answer, EngineTrial, Trial, build_matrix, load_answer, request_answer
from apps.results.views.trial_form import Side, TrialForm, complete_sliders, list_indexes
from benchbench.access import AnyUser, may_change, require, staff, visible
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.configuration import DEFAULTS
from benchbench.names import MAX_LENGTH
from benchbench.reading.strict_json import dump_json
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import PageForm


@dataclass(frozen=True, slots=True)
class Judging:
    """The chosen dataset, its current query with the text that is tried, and grades by document.

    The addresses of forms lead back to the page, and are empty if the user may not change the dataset.
    """

    dataset: Dataset
    query: Query | None
    grades: dict[int, int]
    back: str
    judge_url: str = ""
    add_url: str = ""


def trial_page(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Render the form, and with a query a place for the answer of each side, which the browser requests."""
    collection, form = _load_form(request, model_admin, object_id)
    is_valid = form.is_bound and form.is_valid()
    trials = form.list_trials() if is_valid else []
    context = {
        "form": form,
        "trail": [collection],
        "indexes": list_indexes(collection, request.user).count(),
        "trials": [(side.title, trial) for side, trial in trials],
        "benchmark_url": _build_benchmark_url(request, collection, form, trials) if len(trials) > 1 else "",
        "judging": _build_judging(request, collection, form) if is_valid else None,
    }
    return model_admin.render_page(request, "results/trial.html", context, original=collection)


def trial_answer(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID, side: int) -> HttpResponse:
    """Render the answer of one side of the page. A POST requests it from a worker until it arrives."""
    collection, form = _load_form(request, model_admin, object_id)
    trials = form.list_trials() if form.is_bound and form.is_valid() else []
    if side >= len(trials):
        raise Http404("The page has no such side: submit its form again.")
    _, trial = trials[side]
    waits = "waits" in request.POST
    progress = request_answer(trial, waits=waits) if request.method == "POST" else load_answer(trial)
    context: dict[str, object] = {"answer": progress.answer, "progress": progress}
    if progress.answer:
        context["hits"] = _load_hits(progress.answer, trial.text, _build_judging(request, collection, form))
    elif not progress.is_waiting:
        context["problem"] = describe_workers(QUICK)
    return render(request, "results/trial_answer.html", context)


def _load_form(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> tuple[Collection, TrialForm]:
    """Return a collection and the form, with the values of the query string if that has a query."""
    collection: Collection = model_admin.load_viewed(request, object_id)
    require(request.user, "retrieval.view_index")
    index = list_indexes(collection, request.user).first()
    values = {"top_k": DEFAULTS["top_k"], "lexical": DEFAULTS["lexical"], "index": str(index.pk) if index else ""}
    values["way"] = "sparse" if index and not index.has_vectors else "hybrid"
    values = complete_sliders(values | request.GET.dict())
    form = TrialForm(values if "q" in values else None, user=staff(request), collection=collection, initial=values)
    form.drop_bad_values()
    return collection, form


def _build_benchmark_url(
    request: HttpRequest, collection: Collection, form: TrialForm, trials: Sequence[tuple[Side, Trial]]
) -> str:
    """Return the address of the form of a new benchmark of the two sides; "" without a mapping to run it on."""
    mappings = visible(Mapping.objects.filter(collection=collection), request.user).exclude(
        status=Mapping.Status.PENDING
    )
    dataset = form.cleaned_data["dataset"]
    rows = list(mappings.filter(dataset=dataset)[:1] if dataset else mappings[:2])
    if not rows or not request.user.has_perm("benchmarks.add_benchmark"):
        return ""
    matrix = build_matrix([(str(side.index and side.index.name), trial) for side, trial in trials])
    values = {"name": " | ".join(side.title for side, _ in trials)[:MAX_LENGTH], "matrix": dump_json(matrix)}
    chosen = {"mapping": str(rows[0].pk)} if len(rows) == 1 else {}
    return f"{reverse('admin:benchmarks_benchmark_add')}?{urlencode(values | chosen)}"


def _build_judging(request: HttpRequest, collection: Collection, form: TrialForm) -> Judging | None:
    dataset, text = form.cleaned_data["dataset"], form.cleaned_data["q"]
    if dataset is None or not request.user.has_perm("datasets.view_query"):
        return None
    query = Query.objects.filter(dataset=dataset, text=text, until=None).first()
    back = f"{reverse('admin:collection_try', args=[collection.pk])}?{request.META['QUERY_STRING']}"
    judging = Judging(dataset, query, _load_grades(dataset, collection, query, request.user), back)
    if not may_change(dataset, request.user):
        return judging
    if query:
        return replace(judging, judge_url=reverse("admin:query_judge", args=[query.pk]))
    new = {"query_key": slugify(text)[:60], "query_text": text, "next": back}
    return replace(judging, add_url=f"{reverse('admin:query_add', args=[dataset.pk])}?{urlencode(new)}")


def _load_grades(dataset: Dataset, collection: Collection, query: Query | None, user: AnyUser) -> dict[int, int]:
    """Return the grade of each judged document in the draft or newest version, found by a visible mapping."""
    mappings = visible(Mapping.objects.filter(dataset=dataset, collection=collection), user)
    mapping = mappings.first() if query else None
    version = find_draft(dataset) or dataset.versions.first()
    if mapping is None or query is None or version is None:
        return {}
    found_judgments = find_judgments(mapping, version, query)
    return {document: max(row.grade for row in rows) for document, rows in found_judgments.items()}


def _load_hits(answer: Answer, text: str, judging: Judging | None) -> list[dict[str, Any]]:
    """Return the documents of an answer with excerpts, grades, explanations, and the address that judges each."""
    ids = {"document_ids": [hit.document for hit in answer.hits], "chunk_ids": [hit.chunk for hit in answer.hits]}
    result = QueryResult(query=Query(text=text), **ids, scores=[hit.score for hit in answer.hits])
    hits = load_hits(result, judging.grades if judging else {}, limit=len(answer.hits))

    def build_judge_url(document: Document | None) -> str:
        if document is None or judging is None or not judging.judge_url:
            return ""
        pair = {"key": "document_id", "reference": document.external_id, "next": judging.back}
        return f"{judging.judge_url}?{urlencode(pair)}"

    return [
        {"hit": hit, "steps": tried.steps, "terms": tried.terms, "judge_url": build_judge_url(hit.document)}
        for hit, tried in zip(hits, answer.hits, strict=True)
    ]


class EngineTrialForm(PageForm):
    """A query and the engine to ask."""

    engine = forms.ChoiceField()
    q = forms.CharField(max_length=MAX_LENGTH, label="Query")

    def __init__(self, *args: Any, aliases: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["engine"].choices = [(alias, alias) for alias in aliases]  # type: ignore[attr-defined]


def engine_trial_page(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Render the form. A POST asks the engine through a worker, and renders the answer once it is there."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    require(request.user, "benchmarks.add_benchmark")
    aliases, problem = [], ""
    try:
        declarations = load_declarations()
        aliases = list(declarations.engines)
        problem = "" if aliases else " ".join(declarations.refused_engines.values())
    except BenchbenchError as error:
        problem = error.message
    if problem and not request.user.is_superuser:
        problem = "The file of engines has an error: ask a superuser."
    form = EngineTrialForm(request.POST or None, user=staff(request), aliases=aliases, initial=request.GET.dict())
    if request.method != "POST":
        context = {"title": "Try an engine", "form": form, "has_engines": bool(aliases), "problem": problem}
        return model_admin.render_page(request, "results/engine_trial.html", context)
    if not form.is_valid():
        return render(request, "results/engine_answer.html", {"problem": " ".join(_list_errors(form))})
    trial = EngineTrial(form.cleaned_data["engine"], form.cleaned_data["q"])
    progress = request_answer(trial, waits="waits" in request.POST)
    is_stuck = not progress.answer and not progress.is_waiting
    context = {"answer": progress.answer, "problem": describe_workers(QUICK) if is_stuck else "", "asks": True}
    context |= {"is_behind": progress.is_behind}
    if "brief" in request.POST:
        lines = progress.answer.text.splitlines() if progress.answer else []
        summary = " ".join(line for line in lines if line.startswith(("Answer: ", "Hits: ", "The path ")))
        context |= {"brief": True, "summary": summary}
    return render(request, "results/engine_answer.html", context)


def _list_errors(form: forms.Form) -> list[str]:
    return [f"{form[name].label}: {error}" for name, errors in form.errors.items() for error in errors]
