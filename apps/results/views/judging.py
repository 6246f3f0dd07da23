"""Judging a document from the page of a ranking."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.benchmarks.models import QueryResult
from apps.datasets.editing.drafts import draft_of
from apps.datasets.forms import GradeForm
from apps.mappings.repairing.judging import judge_document, stated_for, unjudge_document
from apps.results.triage.judging import may_judge
from benchbench.access import visible
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import form_page, next_page, staff
from benchbench.site.panels import change_url


def judge_by_result(request: HttpRequest, model_admin: SiteAdmin, object_id: int, document_id: int) -> HttpResponse:
    """State, change or remove in the draft the grade of a document for the query of a ranking."""
    results = QueryResult.objects.select_related("query", "run__benchmark__mapping__dataset")
    result = visible(results, request.user, through="run__benchmark").filter(QueryResult.numbered(object_id)).first()
    if result is None:
        raise Http404(f"There is no ranking {object_id} that you may see.")
    mapping, query = result.run.benchmark.mapping, result.query
    document = mapping.collection.documents.filter(pk=document_id).first()
    if document is None:
        raise Http404(f"The collection {mapping.collection} has no document {document_id}.")

    def act(form: GradeForm) -> HttpResponse:
        values = form.cleaned_data
        if form.removes:
            unjudge_document(mapping, query, document)
        else:
            judge_document(mapping, query, document, values["grade"], by=staff(request), note=values["note"])
        return redirect(next_page(request, values["next"]) or change_url(result))

    draft = draft_of(mapping.dataset)
    newest = draft or mapping.dataset.versions.latest("number")
    judgments = stated_for(mapping, newest, query).get(document.pk, [])
    judgment = max(judgments, key=lambda judgment: judgment.grade, default=None)
    return form_page(
        request,
        model_admin,
        GradeForm,
        act,
        permitted=may_judge(result, request.user),
        title=f"Judge {document}",
        submit="Save in the draft",
        template="datasets/judge_form.html" if request.headers.get("HX-Request") else "datasets/judge.html",
        initial={"grade": judgment.grade, "note": judgment.note} if judgment else None,
        query=query,
        judgment=judgment,
        draft=draft,
        original=result,
        trail=[*model_admin.trail(result), result],
    )
