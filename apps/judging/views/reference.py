"""The page that judges a document for a query by its reference, in the draft of the dataset."""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.collections.models import Collection, Document
from apps.datasets.editing.drafts import draft_of
from apps.datasets.editing.judgments import remove_judgment, set_judgment
from apps.datasets.forms import GradeForm
from apps.datasets.models import DatasetVersion, Judgment, Query
from apps.datasets.records import DOC_REF_KEYS, JudgmentRecord
from apps.judging.scales import scale_to_choose
from apps.judging.views.items import sheet
from apps.mappings.models import Mapping
from apps.mappings.repairing import documents_meant, require_document, stated_for
from benchbench.access import may_change, visible
from benchbench.errors import BenchbenchError
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import PageForm, form_page, next_page, staff
from benchbench.site.panels import change_url

Reference = dict[str, Any]
Meant = list[tuple[Mapping, Document]]


class ReferenceForm(PageForm):
    """Which document is to be judged."""

    key = forms.ChoiceField(label="Document by", choices=[(key, key.replace("_", " ")) for key in DOC_REF_KEYS])
    reference = forms.CharField(
        label="Reference",
        help_text="The document's own reference, as in a collection; mappings find the document by it.",
    )
    without_document = forms.BooleanField(
        required=False,
        help_text="Judge it although no collection of the dataset has it: it counts as a document that nothing finds.",
    )

    @property
    def doc_ref(self) -> dict[str, str]:
        """The reference, as judgments hold it."""
        return {self.cleaned_data["key"]: self.cleaned_data["reference"].strip()}


def judge_by_reference(request: HttpRequest, model_admin: SiteAdmin, query_id: int) -> HttpResponse:
    """Judge the document that `?key=uri&reference=…` means for a query; with `?judgment=` one that is judged.

    A reference without a document is refused, unless `without_document` confirms it.
    """
    query: Any = model_admin.get_object(request, str(query_id))
    if not may_change(query.dataset, request.user) or query.until is not None:
        raise PermissionDenied
    if asked := request.GET.get("judgment", ""):
        judgment = _judgment(query, asked)
        return _judge(request, model_admin, query, judgment.doc_ref, judgment)
    form = ReferenceForm(request.GET if "reference" in request.GET else None, user=request.user)
    if form.is_valid():
        try:
            if not form.cleaned_data["without_document"]:
                require_document(query.dataset, form.doc_ref)
            return _judge(request, model_admin, query, form.doc_ref, None)
        except BenchbenchError as error:
            form.present(error)
    context = {"form": form, "query": query, "title": "Judge a document", "trail": [query.dataset, query]}
    return model_admin.page(request, "judging/reference.html", context)


def _judge(
    request: HttpRequest, model_admin: SiteAdmin, query: Query, doc_ref: Reference, judgment: Judgment | None
) -> HttpResponse:
    """The page of one pair, whose judgment is stated, changed or removed in the draft."""
    meant = _seen(request, query, doc_ref)
    draft = draft_of(query.dataset)
    newest = draft or query.dataset.versions.latest("number")
    judgment = judgment or _stated(meant, newest, query, doc_ref)
    reference = judgment.doc_ref if judgment else doc_ref
    others = _others(query, judgment, draft)
    document = meant[0][1] if meant else Document(external_id=Judgment(doc_ref=reference).reference)

    def act(form: GradeForm) -> HttpResponse:
        _save(form, query, reference, judgment, by=staff(request))
        if "go_on" in request.POST:
            following: dict[str, Any] = {"judgment": others[0]} if others else {}
            return redirect(f"{request.path}?{urlencode(following | {'go_on': 1})}")
        return redirect(next_page(request, form.cleaned_data["next"]) or change_url(query))

    return form_page(
        request,
        model_admin,
        GradeForm,
        act,
        permitted=True,
        title=f"Judge {document}",
        submit="Save in the draft",
        template="judging/one.html",
        initial={"grade": judgment.grade, "note": judgment.note} if judgment else None,
        sheet=sheet(query, document, ""),
        scale=scale_to_choose(newest),
        judgment=judgment,
        draft=draft,
        collection=meant[0][0].collection if meant else None,
        elsewhere=[mapping.collection for mapping, _ in meant[1:]],
        following=_following(judgment, others),
        goes_on="go_on" in request.GET,
        trail=[query.dataset, query],
    )


def _seen(request: HttpRequest, query: Query, doc_ref: Reference) -> Meant:
    """Return what a reference means, once for each collection that the reader sees."""
    seen = set(visible(Collection.objects.all(), request.user).values_list("pk", flat=True))
    meant = {pair[0].collection_id: pair for pair in documents_meant(query.dataset, doc_ref)}
    return [pair for collection, pair in meant.items() if collection in seen]


def _stated(meant: Meant, version: DatasetVersion, query: Query, doc_ref: Reference) -> Judgment | None:
    """Return the judgment that there is already, by this reference or by another one that means the same document."""
    for mapping, document in meant[:1]:
        if judgments := stated_for(mapping, version, query).get(document.pk):
            return max(judgments, key=lambda judgment: judgment.grade)
    return query.judgments.filter(until=None, doc_ref=doc_ref).first()


def _others(query: Query, judgment: Judgment | None, draft: DatasetVersion | None) -> list[int]:
    """Return the judgments of a query that follow one and were not stated in the draft; none without one."""
    if judgment is None:
        return []
    rows = query.judgments.filter(until=None, pk__gt=judgment.pk)
    if draft is not None:
        rows = rows.exclude(since=draft.number)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def _following(judgment: Judgment | None, others: list[int]) -> str:
    if judgment is None:
        return "another document"
    return f"the next of {len(others)} more judgments of this query" if others else ""


def _save(form: GradeForm, query: Query, doc_ref: Reference, judgment: Judgment | None, *, by: User) -> None:
    """Set or remove what the form judges."""
    if form.removes:
        remove_judgment(query.dataset, query.key, doc_ref)
        return
    record = JudgmentRecord(
        doc_ref,
        form.cleaned_data["grade"],
        judgment.section_refs if judgment else None,
        Judgment.Source.HUMAN,
        judge=by.get_username(),
        note=form.cleaned_data["note"],
    )
    set_judgment(query.dataset, query.key, record, judged_by=by)


def _judgment(query: Query, asked: str) -> Judgment:
    """Return the judgment that a page names. One that is not of the query, or is no longer current, is not found."""
    current = query.judgments.filter(until=None)
    judgment = current.filter(pk=asked).first() if asked.isdecimal() and len(asked) < 19 else None
    if judgment is None:
        raise Http404(f"The query {query.key!a} has no current judgment {asked}: it was changed or removed since.")
    return judgment
