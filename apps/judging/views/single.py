"""The form that judges one document for a query outside a round, in the draft of the dataset."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.collections.models import Collection, Document
from apps.datasets.editing.drafts import find_draft
from apps.datasets.editing.judgments import remove_judgment, set_judgment
from apps.datasets.forms import GradeForm
from apps.datasets.models import DatasetVersion, Judgment, Query
from apps.datasets.records import DOC_REF_KEYS, JudgmentRecord
from apps.engines.storing import find_snippet
from apps.judging.scales import scale_to_choose
from apps.judging.views.judge_page import build_sheet
from apps.mappings.models import Mapping
from apps.mappings.repairing import find_documents, find_judgments, judge_document, require_document, unjudge_document
from apps.records.models import QueryResult
from apps.retrieval.models import Chunk
from benchbench.access import describe_lack, may_change, staff, visible
from benchbench.errors import BenchbenchError
from benchbench.site.admin import SiteAdmin
from benchbench.site.merging import Edited
from benchbench.site.pages import PageForm, find_next_page, show_form
from benchbench.site.panels import change_url

Reference = dict[str, Any]


class ReferenceForm(PageForm):
    """The document to judge."""

    key = forms.ChoiceField(label="Document by", choices=[(key, key.replace("_", " ")) for key in DOC_REF_KEYS])
    reference = forms.CharField(
        label="Reference",
        strip=False,
        help_text="The reference by which mappings find the document in a collection.",
    )
    without_document = forms.BooleanField(
        required=False,
        help_text="Judge it even if no collection of the dataset has it: it then counts as not found.",
    )

    @property
    def doc_ref(self) -> Reference:
        """The reference, as judgments hold it."""
        return {self.cleaned_data["key"]: self.cleaned_data["reference"]}


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A document to judge for a query, from a ranking (`result`) or by its reference, and the next document.

    `mapping` finds the document in its collection; None if no collection that the reader sees has it. `following` is
    the query string of the next document, None for the last.
    """

    query: Query
    document: Document
    judgment: Judgment | None
    mapping: Mapping | None
    elsewhere: list[Collection]
    following: dict[str, Any] | None
    following_words: str
    result: QueryResult | None = None
    doc_ref: Reference | None = None
    passage: str = ""

    @property
    def author(self) -> str:
        """Return who judged the document last, "" if that is not stored."""
        return self.judgment.judge if self.judgment else ""

    def save(self, form: GradeForm, by: User) -> None:
        """Set or remove the judgment in the draft. From a ranking, it replaces every judgment of its document."""
        grade, note = form.cleaned_data["grade"], form.cleaned_data["note"]
        if self.result is not None:
            mapping = self.result.run.benchmark.mapping
            if form.removes:
                unjudge_document(mapping, self.query, self.document)
            else:
                judge_document(mapping, self.query, self.document, grade, by=by, note=note)
            return
        reference = self.judgment.doc_ref if self.judgment else self.doc_ref or {}
        if form.removes:
            remove_judgment(self.query.dataset, self.query.key, reference)
            return
        sections = self.judgment.section_refs if self.judgment else None
        record = JudgmentRecord(reference, grade, sections, Judgment.Source.HUMAN, judge=by.get_username(), note=note)
        set_judgment(self.query.dataset, self.query.key, record, judged_by=by)


def judge_one(request: HttpRequest, model_admin: SiteAdmin, query_id: int) -> HttpResponse:
    """Judge one document for a query: a fragment for htmx, else a whole page.

    `?result=…&document=…` names a document of a ranking, `?judgment=…` a judged one, `?key=uri&reference=…` any. A
    reference without a document is refused unless `without_document` confirms it.
    """
    query: Any = model_admin.get_object(request, str(query_id))
    if query.until is not None:
        raise PermissionDenied("This query is of an older version of its dataset: judge for the newest.")
    if not may_change(query.dataset, request.user):
        raise PermissionDenied(describe_lack("datasets.change_dataset"))
    draft = find_draft(query.dataset)
    newest = draft or query.dataset.versions.latest("number")
    pair = _find_pair(request, query, newest)
    if isinstance(pair, ReferenceForm):
        return _ask_for_reference(request, model_admin, query, pair)

    def act(form: GradeForm) -> HttpResponse:
        pair.save(form, staff(request))
        back = find_next_page(request, form.cleaned_data["next"])
        if "go_on" in request.POST and pair.following is not None:
            parameters = pair.following | {"go_on": 1} | ({"next": back} if back else {})
            return redirect(f"{request.path}?{urlencode(parameters)}")
        return redirect(back or change_url(pair.result or query))

    return show_form(
        request,
        model_admin,
        GradeForm,
        act,
        permitted=True,
        title=f"Judge {pair.document}",
        submit="Save in the draft",
        template="judging/one_form.html" if _is_fragment(request) else "judging/one.html",
        edited=Edited(
            pair.judgment or query, query.dataset, lambda: _read_judgment(request, query, newest), pair.author
        ),
        part="judging/one_form.html",
        pair=pair,
        judgment=pair.judgment,
        sheet=build_sheet(query, pair.document, pair.passage),
        scale=scale_to_choose(newest),
        draft=draft,
        continue_to_next="go_on" in request.GET,
        trail=[query.dataset, query, *([pair.result] if pair.result else [])],
    )


def _read_judgment(request: HttpRequest, query: Query, newest: DatasetVersion) -> dict[str, Any]:
    """Return the grade and note of the pair that the query string names, as they are now."""
    pair = _find_pair(request, query, newest)
    judgment = pair.judgment if isinstance(pair, Pair) else None
    return {"grade": judgment.grade, "note": judgment.note} if judgment else {"grade": None, "note": ""}


def _find_pair(request: HttpRequest, query: Query, newest: DatasetVersion) -> Pair | ReferenceForm:
    """Return the pair that the query string names, or the form that asks for a reference. Raises Http404."""
    if "result" in request.GET:
        return _find_ranked_pair(request, query, newest)
    if number := request.GET.get("judgment", ""):
        judgment = query.judgments.filter(until=None, pk=_number(number)).first()
        if judgment is None:
            raise Http404(f"The query {query.key!a} has no current judgment {number}: it was changed or removed.")
        return _find_reference_pair(request, query, newest, judgment.doc_ref, judgment)
    form = _parse_reference(request, query)
    return _find_reference_pair(request, query, newest, form.doc_ref, None) if form.is_valid() else form


def _parse_reference(request: HttpRequest, query: Query) -> ReferenceForm:
    """Parse the reference in the query string; a reference without a document is an error unless confirmed."""
    form = ReferenceForm(request.GET if "reference" in request.GET else None, user=staff(request))
    try:
        if form.is_valid() and not form.cleaned_data["without_document"]:
            require_document(query.dataset, form.doc_ref)
    except BenchbenchError as error:
        form.present(error)
    return form


def _ask_for_reference(request: HttpRequest, model_admin: SiteAdmin, query: Query, form: ReferenceForm) -> HttpResponse:
    fragment = "judging/reference_form.html"
    context = {
        "form": form,
        "query": query,
        "title": "Judge a document",
        "trail": [query.dataset, query],
        "part": fragment,
    }
    return model_admin.render_page(request, fragment if _is_fragment(request) else "judging/one.html", context)


def _is_fragment(request: HttpRequest) -> bool:
    return "HX-Request" in request.headers


def _find_ranked_pair(request: HttpRequest, query: Query, version: DatasetVersion) -> Pair:
    """Return the pair for a document of a ranking in the query string. Raises Http404."""
    number, document_id = (_number(request.GET.get(name, "")) for name in ("result", "document"))
    results = visible(QueryResult.objects.filter(query=query), request.user, through="run__benchmark")
    related = results.select_related("query", "run__benchmark__mapping__dataset", "run__benchmark__mapping__collection")
    result = related.filter(QueryResult.filter_number(number)).first()
    if result is None:
        raise Http404(f"Ranking {number} of this query was not found, or you may not view it.")
    mapping = result.run.benchmark.mapping
    document = mapping.collection.documents.filter(pk=document_id).first()
    if document is None:
        raise Http404(f"The collection {mapping.collection} has no document {document_id}.")
    judgments = find_judgments(mapping, version, query)
    chunk_ids = dict(zip(result.document_ids, result.chunk_ids, strict=False))
    chunk = Chunk.objects.filter(pk=chunk_ids.get(document_id, 0)).only("text").first()
    unjudged = [pk for pk in result.document_ids if pk not in judgments and pk != document_id]
    return Pair(
        query=query,
        document=document,
        judgment=max(judgments.get(document.pk, []), key=lambda judgment: judgment.grade, default=None),
        mapping=mapping,
        elsewhere=[],
        following={"result": result.pk, "document": unjudged[0]} if unjudged else None,
        following_words=f"the next of {len(unjudged)} unjudged here",
        result=result,
        passage=chunk.text if chunk else find_snippet(query.text, document),
    )


def _find_reference_pair(
    request: HttpRequest, query: Query, version: DatasetVersion, doc_ref: Reference, judgment: Judgment | None
) -> Pair:
    """Return the pair for the document of a reference, with the other visible collections that have it."""
    seen = set(visible(Collection.objects.all(), request.user).values_list("pk", flat=True))
    by_collection = {pair[0].collection_id: pair for pair in find_documents(query.dataset, doc_ref)}
    matches = [pair for collection, pair in by_collection.items() if collection in seen]
    judgment = judgment or _find_judgment(matches, version, query, doc_ref)
    if judgment is None:
        following: dict[str, object] | None = {}
        words = "another document"
    else:
        rows = query.judgments.filter(until=None, pk__gt=judgment.pk)
        remaining = rows.exclude(since=version.number) if version.frozen_at is None else rows
        left = list(remaining.order_by("pk").values_list("pk", flat=True))
        following = {"judgment": left[0]} if left else None
        words = f"the next of {len(left)} more judgments of this query"
    reference = Judgment(doc_ref=judgment.doc_ref if judgment else doc_ref).reference
    placeholder = Document(external_id=reference, title=reference)
    return Pair(
        query=query,
        document=matches[0][1] if matches else placeholder,
        judgment=judgment,
        mapping=matches[0][0] if matches else None,
        elsewhere=[mapping.collection for mapping, _ in matches[1:]],
        following=following,
        following_words=words,
        doc_ref=doc_ref,
    )


def _find_judgment(
    matches: list[tuple[Mapping, Document]], version: DatasetVersion, query: Query, doc_ref: Reference
) -> Judgment | None:
    """Return the existing judgment, by this reference or by another one of the same document."""
    for mapping, document in matches[:1]:
        if judgments := find_judgments(mapping, version, query).get(document.pk):
            return max(judgments, key=lambda judgment: judgment.grade)
    return query.judgments.filter(until=None, doc_ref=doc_ref).first()


def _number(text: str) -> int:
    """Return a row's number from the query string; 0, which no row has, if it is invalid."""
    return int(text) if text.isdecimal() and len(text) < 19 else 0
