"""The page that judges one document of a ranking, in the draft of its dataset."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from apps.benchmarks.models import QueryResult
from apps.collections.models import Document
from apps.datasets.editing.drafts import draft_of
from apps.datasets.forms import GradeForm
from apps.datasets.models import DatasetVersion, Judgment
from apps.judging.scales import scale_to_choose
from apps.judging.views.items import sheet
from apps.mappings.repairing import judge_document, stated_for, unjudge_document
from apps.results.triage.next_steps import Step, next_steps
from apps.retrieval.models import Chunk
from benchbench.access import may_change, visible
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import form_page, next_page, staff
from benchbench.site.panels import change_url


@dataclass(frozen=True, slots=True)
class Judging:
    """Whether the reader may judge the documents of a ranking, and what the draft states of them.

    `drafted` holds the judgments of the query in the draft by document, None where there is no draft or where the draft
    does not have the query.
    """

    result: QueryResult
    permitted: bool
    drafted: dict[int, list[Judgment]] | None = None
    steps: list[Step] = field(default_factory=list)

    def change(self, document_id: int, grade: int | None) -> str:
        """Say what the draft makes of a document that has `grade` on the page; "" where that is the same."""
        if self.drafted is None:
            return ""
        grades = [judgment.grade for judgment in self.drafted.get(document_id, [])]
        drafted = max(grades, default=None)
        if drafted == grade:
            return ""
        return "in the draft: no judgment" if drafted is None else f"in the draft: {drafted}"


def may_judge(result: QueryResult, user: Any) -> bool:
    """Tell whether a reader may judge for the query of a ranking: only while the newest version has it."""
    return result.query.until is None and may_change(result.run.benchmark.mapping.dataset, user)


def judging_of(result: QueryResult, user: Any, *, shown: DatasetVersion | None = None) -> Judging:
    """Return what a reader may judge of a ranking. Where the dataset is not theirs to see, nothing.

    `shown` is the version whose values the page shows.
    """
    mapping = result.run.benchmark.mapping
    dataset = mapping.dataset
    permitted = may_judge(result, user)
    if not permitted and not visible(type(dataset).objects.filter(pk=dataset.pk), user).exists():
        return Judging(result, permitted=False)
    draft = draft_of(dataset)
    return Judging(
        result,
        permitted=permitted,
        drafted=stated_for(mapping, draft, result.query) if draft and result.query.until is None else None,
        steps=next_steps(dataset, user, draft=draft, benchmark=result.run.benchmark, shown=shown),
    )


def judge_by_result(request: HttpRequest, model_admin: SiteAdmin, object_id: int, document_id: int) -> HttpResponse:
    """State, change or remove in the draft the grade of a document for the query of a ranking."""
    result, document = _judged(request, object_id, document_id)
    mapping, query = result.run.benchmark.mapping, result.query
    draft = draft_of(mapping.dataset)
    newest = draft or mapping.dataset.versions.latest("number")
    judgments = stated_for(mapping, newest, query)
    unjudged = [pk for pk in result.document_ids if pk not in judgments and pk != document_id]

    def act(form: GradeForm) -> HttpResponse:
        values = form.cleaned_data
        if form.removes:
            unjudge_document(mapping, query, document)
        else:
            judge_document(mapping, query, document, values["grade"], by=staff(request), note=values["note"])
        if "go_on" in request.POST and unjudged:
            url = reverse("admin:queryresult_judge", args=[result.pk, unjudged[0]])
            return redirect(f"{url}?{urlencode({'go_on': 1, 'next': next_page(request, values['next'])})}")
        return redirect(next_page(request, values["next"]) or change_url(result))

    judgment = max(judgments.get(document.pk, []), key=lambda judgment: judgment.grade, default=None)
    return form_page(
        request,
        model_admin,
        GradeForm,
        act,
        permitted=may_judge(result, request.user),
        title=f"Judge {document}",
        submit="Save in the draft",
        template="judging/one.html",
        initial={"grade": judgment.grade, "note": judgment.note} if judgment else None,
        sheet=sheet(query, document, _passage(result, document_id)),
        scale=scale_to_choose(newest),
        judgment=judgment,
        draft=draft,
        more=len(unjudged),
        following=f"the next of {len(unjudged)} unjudged here" if unjudged else "",
        goes_on="go_on" in request.GET,
        original=result,
        trail=[*model_admin.trail(result), result],
    )


def _judged(request: HttpRequest, object_id: int, document_id: int) -> tuple[QueryResult, Document]:
    """Return the ranking and the document that an address names. Raises Http404."""
    results = QueryResult.objects.select_related("query", "run__benchmark__mapping__dataset")
    result = visible(results, request.user, through="run__benchmark").filter(QueryResult.numbered(object_id)).first()
    if result is None:
        raise Http404(f"There is no ranking {object_id} that you may see.")
    collection = result.run.benchmark.mapping.collection
    document = collection.documents.filter(pk=document_id).first()
    if document is None:
        raise Http404(f"The collection {collection} has no document {document_id}.")
    return result, document


def _passage(result: QueryResult, document_id: int) -> str:
    """Return the text that brought a document, its best passage; "" where none is known."""
    placed = dict(zip(result.document_ids, result.chunk_ids, strict=False))
    chunk = Chunk.objects.filter(pk=placed.get(document_id, 0)).only("text").first()
    return chunk.text if chunk else ""
