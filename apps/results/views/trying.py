"""The page that tries a query on the indexes of a collection, and the answer of each side."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import slugify

from apps.collections.models import Collection, Document
from apps.datasets.editing.drafts import find_draft
from apps.datasets.models import Dataset, Query
from apps.mappings.models import Mapping
from apps.mappings.repairing import find_judgments
from apps.operations.queueing import QUICK
from apps.operations.waiting import describe_workers
from apps.records.models import QueryResult
from apps.results.triage.queries import load_hits
from apps.results.trying import Trial, load_answer, request_answer
from apps.retrieval.models import Index
from apps.retrieval.search.words import find_words
from apps.retrieval.strategies import STRATEGIES
from benchbench.access import may_change, visible
from benchbench.ir.planning.configuration import DEFAULTS
from benchbench.ir.planning.lexical import BM25, Lexical, LexicalError
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import PageForm

RERANKED = "-reranked"
MODES = {"dense": "dense", "sparse": "lexical", "hybrid": "hybrid (RRF)"}
WAYS = MODES | {f"{mode}{RERANKED}": f"{name}, reranked by late interaction" for mode, name in MODES.items()}
COLUMNS = {"document_id": "document", "chunk_id": "chunk", "score": "score"}  # of a ranking, in an answer
MAX_LENGTH = 2_000
MAX_TOP_K = 1_000


@dataclass(frozen=True, slots=True)
class Side:
    """An index, a way to search it, and the setting of its lexical search."""

    index: Index | None
    way: str
    lexical: str

    @property
    def title(self) -> str:
        lexical = "" if self.way.startswith("dense") or self.lexical == "bm25" else f", {self.lexical}"
        return f"{self.index}, {WAYS[self.way]}{lexical}"


class TrialForm(PageForm):
    """A query, and one or two ways to search for it. The query string of the page has the values."""

    q = forms.CharField(label="Query", max_length=MAX_LENGTH)
    index = forms.ModelChoiceField(Index.objects.none(), empty_label=None)
    way = forms.ChoiceField(label="Search", choices=list(WAYS.items()))
    lexical = forms.CharField(
        label="Lexical search",
        max_length=MAX_LENGTH,
        help_text="Such as bm25(k1=0.9, b=0.4) or fts. Other analyzers too, once a benchmark has indexed their words.",
    )
    other_index = forms.ModelChoiceField(
        Index.objects.none(), label="Index to compare with", required=False, empty_label="the same"
    )
    other_way = forms.ChoiceField(label="Search to compare with", required=False, choices=[("", "none"), *WAYS.items()])
    other_lexical = forms.CharField(
        label="Lexical search to compare with", max_length=MAX_LENGTH, required=False, help_text="Empty: the same."
    )
    top_k = forms.IntegerField(min_value=1, max_value=MAX_TOP_K, help_text="Chunks of each list, as in a benchmark.")
    dataset = forms.ModelChoiceField(
        Dataset.objects.none(), required=False, empty_label="none", help_text="For grades, and to judge."
    )

    def __init__(self, *args: Any, collection: Collection, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        for name in ("index", "other_index"):
            fields[name].queryset = list_indexes(collection, self.user)
        fields["dataset"].queryset = visible(Dataset.objects.order_by("name"), self.user)

    def clean_lexical(self) -> str:
        return self._read_lexical("lexical")

    def clean_other_lexical(self) -> str:
        return self._read_lexical("other_lexical") or self.cleaned_data.get("lexical", "")

    def _read_lexical(self, name: str) -> str:
        """Return the canonical text of a setting; "" for an empty one."""
        text = self.cleaned_data[name]
        try:
            return str(Lexical.parse(text)) if text else ""
        except LexicalError as error:
            raise forms.ValidationError(error.message) from error

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        for prefix, side in zip(("", "other_"), self._list_sides(), strict=False):
            name = f"{prefix}way"
            if side.index and side.way != "sparse" and not side.index.has_vectors:
                self.add_error(
                    name, f"The index “{side.index}” has no vectors: choose lexical search or another index."
                )
            elif side.index and not side.way.startswith("dense") and (problem := _find_problem(side)):
                self.add_error(f"{prefix}lexical", problem)
        return data

    def _list_sides(self) -> Iterator[Side]:
        data = self.cleaned_data
        yield Side(data.get("index"), data.get("way", ""), data.get("lexical", ""))
        if data.get("other_way"):
            yield Side(data.get("other_index") or data.get("index"), data["other_way"], data.get("other_lexical", ""))

    def list_trials(self) -> list[tuple[str, Trial]]:
        """Return a heading and the trial of each side of a valid form."""
        return [
            (
                side.title,
                Trial(
                    text=self.cleaned_data["q"],
                    index_id=str(side.index.pk),
                    mode=side.way.removesuffix(RERANKED),
                    use_reranker=side.way.endswith(RERANKED),
                    top_k=self.cleaned_data["top_k"],
                    lexical=side.lexical,
                ),
            )
            for side in self._list_sides()
            if side.index
        ]


def _find_problem(side: Side) -> str:
    """Return why the words of a side cannot be searched, as a sentence; "" if they can."""
    assert side.index is not None
    assert side.index.chunk_set is not None
    setting = Lexical.parse(side.lexical or "bm25")
    if setting.engine == BM25 and side.index.lexical_index_id is None:
        return f"The index “{side.index}” has no BM25 index: choose dense search or another index."
    if setting.is_built_by_run and find_words(side.index.chunk_set, setting) is None:
        return f"The index “{side.index}” has no words of {setting.words}: a benchmark with it indexes them."
    return ""


def list_indexes(collection: Collection, user: Any) -> QuerySet[Index]:
    """Return the indexes that a query can be tried on: those that are ready and ask no language model."""
    asking = [name for name, strategy in STRATEGIES.items() if strategy.asks]
    ready = Index.objects.filter(collection=collection, status=Index.Status.READY).exclude(strategy__in=asking)
    return visible(ready.order_by("-created_at"), user)


def trial_page(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Render the form, and with a query a place for the answer of each side, which the browser requests."""
    collection, form = _load_form(request, model_admin, object_id)
    is_valid = form.is_bound and form.is_valid()
    context = {
        "form": form,
        "trail": [collection],
        "indexes": list_indexes(collection, request.user).count(),
        "trials": form.list_trials() if is_valid else [],
        "judging": _build_judging(request, collection, form) if is_valid else {},
    }
    return model_admin.render_page(request, "results/trial.html", context, original=collection)


def trial_answer(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID, side: int) -> HttpResponse:
    """Render the answer of one side of the page. A POST requests it from a worker until it arrives."""
    collection, form = _load_form(request, model_admin, object_id)
    trials = form.list_trials() if form.is_bound and form.is_valid() else []
    if side >= len(trials):
        raise Http404("The page has no such side: submit its form again.")
    _, trial = trials[side]
    progress = request_answer(trial) if request.method == "POST" else load_answer(trial)
    context: dict[str, Any] = {"answer": progress.answer, "progress": progress}
    if progress.answer:
        context["hits"] = _load_hits(progress.answer, trial.text, _build_judging(request, collection, form))
    elif not progress.is_waiting:
        context["problem"] = describe_workers(QUICK)
    return render(request, "results/trial_answer.html", context)


def _load_form(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> tuple[Collection, TrialForm]:
    """Return a collection and the form, with the values of the query string if that has a query."""
    collection: Collection = model_admin.load_viewed(request, object_id)
    if not request.user.has_perm("retrieval.view_index"):
        raise PermissionDenied
    values = {"top_k": DEFAULTS["top_k"], "way": "hybrid", "lexical": DEFAULTS["lexical"]} | request.GET.dict()
    form = TrialForm(values if "q" in values else None, user=request.user, collection=collection, initial=values)
    form.drop_bad_values()
    return collection, form


def _build_judging(request: HttpRequest, collection: Collection, form: TrialForm) -> dict[str, Any]:
    """Return the chosen dataset, its current query with the same text, grades by document, and addresses of forms.

    Addresses lead back to the page, and are missing if the user may not change the dataset.
    """
    dataset, text = form.cleaned_data["dataset"], form.cleaned_data["q"]
    if dataset is None or not request.user.has_perm("datasets.view_query"):
        return {}
    query = Query.objects.filter(dataset=dataset, text=text, until=None).first()
    back = f"{reverse('admin:collection_try', args=[collection.pk])}?{request.META['QUERY_STRING']}"
    judging = {"dataset": dataset, "query": query, "grades": _load_grades(dataset, collection, query, request.user)}
    if not may_change(dataset, request.user):
        return judging
    if query:
        return judging | {"judge_url": reverse("admin:query_judge", args=[query.pk]), "next": back}
    new = {"query_key": slugify(text)[:60], "query_text": text, "next": back}
    return judging | {"add_url": f"{reverse('admin:query_add', args=[dataset.pk])}?{urlencode(new)}"}


def _load_grades(dataset: Dataset, collection: Collection, query: Query | None, user: Any) -> dict[int, int]:
    """Return the grade of each judged document in the draft or newest version, found by a visible mapping."""
    mappings = visible(Mapping.objects.filter(dataset=dataset, collection=collection), user)
    mapping = mappings.first() if query else None
    version = find_draft(dataset) or dataset.versions.first()
    if mapping is None or query is None or version is None:
        return {}
    found_judgments = find_judgments(mapping, version, query)
    return {document: max(row.grade for row in rows) for document, rows in found_judgments.items()}


def _load_hits(answer: dict[str, Any], text: str, judging: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the documents of an answer with excerpts, grades, explanations, and the address that judges each."""
    columns = {f"{name}s": [hit[key] for hit in answer["hits"]] for name, key in COLUMNS.items()}
    hits = load_hits(
        QueryResult(query=Query(text=text), **columns), judging.get("grades", {}), limit=len(answer["hits"])
    )

    def build_judge_url(document: Document | None) -> str:
        if document is None or "judge_url" not in judging:
            return ""
        pair = {"key": "document_id", "reference": document.external_id, "next": judging["next"]}
        return f"{judging['judge_url']}?{urlencode(pair)}"

    return [
        {"hit": hit, "steps": row["steps"], "terms": row["terms"], "judge_url": build_judge_url(hit.document)}
        for hit, row in zip(hits, answer["hits"], strict=True)
    ]
