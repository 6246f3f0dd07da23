"""The page that judges a document for a query by its reference."""

from typing import Any

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.datasets.editing.drafts import draft_of
from apps.datasets.editing.judgments import remove_judgment, set_judgment
from apps.datasets.forms import GradeForm
from apps.datasets.models import Judgment, Query
from apps.datasets.records import JudgmentRecord
from apps.mappings.forms import NewJudgmentForm
from apps.mappings.repairing.judging import require_document
from benchbench.access import may_change
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import form_page, next_page, staff
from benchbench.site.panels import change_url


def judge_by_reference(request: HttpRequest, model_admin: SiteAdmin, query_id: int) -> HttpResponse:
    """Judge a document for a query by its reference; with `?judgment=` change that judgment, or remove it."""
    query: Any = model_admin.get_object(request, str(query_id))
    judgment = _judgment(query, request.GET.get("judgment", ""))

    def act(form: GradeForm) -> HttpResponse:
        if isinstance(form, NewJudgmentForm) and not form.cleaned_data["without_document"]:
            require_document(query.dataset, form.doc_ref)
        _save(form, query, judgment, by=staff(request))
        return redirect(next_page(request, form.cleaned_data["next"]) or change_url(query))

    form: type[GradeForm] = GradeForm if judgment else NewJudgmentForm
    return form_page(
        request,
        model_admin,
        form,
        act,
        permitted=may_change(query.dataset, request.user) and query.until is None,
        title=f"Judge {judgment.reference}" if judgment else "Judge a document",
        submit="Save in the draft",
        template="datasets/judge_form.html" if request.headers.get("HX-Request") else "datasets/judge.html",
        initial={"grade": judgment.grade, "note": judgment.note} if judgment else None,
        query=query,
        judgment=judgment,
        draft=draft_of(query.dataset),
        trail=[query.dataset, query],
    )


def _save(form: GradeForm, query: Query, judgment: Judgment | None, *, by: User) -> None:
    """Set or remove what the form judges."""
    values = form.cleaned_data
    reference = form.doc_ref if isinstance(form, NewJudgmentForm) else judgment.doc_ref if judgment else {}
    if form.removes:
        remove_judgment(query.dataset, query.key, reference)
        return
    record = JudgmentRecord(
        reference,
        values["grade"],
        judgment.section_refs if judgment else None,
        Judgment.Source.HUMAN,
        judge=by.get_username(),
        note=values["note"],
    )
    set_judgment(query.dataset, query.key, record, judged_by=by)


def _judgment(query: Query, asked: str) -> Judgment | None:
    """Return the judgment that a page names. One that is not of the query, or is no longer current, is not found."""
    if not asked:
        return None
    current = query.judgments.filter(until=None)
    judgment = current.filter(pk=asked).first() if asked.isdecimal() else None
    if judgment is None:
        raise Http404(f"The query {query.key!a} has no current judgment {asked}: it was changed or removed since.")
    return judgment
