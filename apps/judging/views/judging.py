"""The pages on which judges grade, see their grades, and adjudicate items on which judges are split."""

from collections.abc import Collection, Mapping
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Count, F, Max, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.judging.grading import MOST_UNDONE, adjudicate, grade_item, load_grades, ungrade, withdraw_adjudication
from apps.judging.handing import hand_out, is_used_up, load_items, view_items, view_ungraded_items
from apps.judging.judges import is_judge, require_judge, require_lead, require_part
from apps.judging.models import Grade, Round
from apps.judging.settling.consensus import load_consensus
from apps.judging.settling.progress import count_progress
from apps.judging.views.judge_page import (
    AHEAD,
    UNDO,
    JudgeEntry,
    build_sheet,
    label_grade,
    pack_item,
    render_judge_page,
    store_entries,
)
from benchbench.access import require, staff
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.reading.strict_json import attributes
from benchbench.site.admin import SiteAdmin
from benchbench.site.panels import change_url

SHOWN_GRADES = 50
ALL = "all"
TURNS = {UNDO: 0, Grade.Kind.SKIP: 2}  # order of adjudicated items; 1 by default


def judge_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Render the page on which a judge grades the items of a round, with the first ones."""
    round = load_permitted(request, model_admin, object_id, "judging.add_grade")
    if not is_judge(round, request.user):
        messages.error(request, f'You are not a judge of "{round}": its owner names the judges.')
        return redirect(change_url(round))
    last = list(load_grades(round, staff(request))[:MOST_UNDONE])
    return render_judge_page(request, model_admin, round, _build_payload(round, staff(request), (), AHEAD), last)


@require_POST
def exchange(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Store a judge's answers, and return the next items and the judge's progress.

    An answer sent twice is stored once, because it names its item.
    """
    round, judge = load_permitted(request, model_admin, object_id, "judging.add_grade"), staff(request)

    def store_entry(entry: JudgeEntry) -> None:
        if entry.kind == UNDO:
            ungrade(round, judge, [entry.item_id], hold=True)
        else:
            grade_item(round, entry.item_id, judge, **attributes(entry, "grade", "kind", "note", "seconds"))

    return store_entries(
        request,
        lambda: require_judge(round, judge),
        store_entry,
        lambda message: _build_payload(round, judge, message.present_ids, message.count),
    )


def _build_payload(round: Round, judge: User, present_ids: Collection[int], count: int) -> dict[str, object]:
    """Return the ids of the items that a judge holds, the contents of those that the page lacks, and the progress."""
    item_ids = hand_out(round, judge, count=count) if round.is_open else []
    new_views = view_ungraded_items(load_items([item for item in item_ids if item not in present_ids]))
    return {
        "held": item_ids,
        "items": [pack_item(round, row) for row in new_views],
        "progress": count_progress(round, judge),
        "end": "" if item_ids else _describe_end(round),
    }


def _describe_end(round: Round) -> str:
    """Return a sentence on why no items are left."""
    if not round.is_open:
        return "The round is closed. Thank you."
    if not round.offers_items:
        return "The result is settled: no more grades are needed. Thank you."
    if is_used_up(round):
        return f"The round's budget of {counted(round.budget or 0, 'item')} is used up. Thank you."
    return "No items are left for you: all are graded or assigned to other judges. Thank you."


def item_text(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID, item_id: int) -> HttpResponse:
    """Render the whole text of an item's document, with the words of its query marked."""
    round: Round = model_admin.load_viewed(request, object_id)
    try:
        require_part(round, request.user)
    except BenchbenchError as error:
        raise PermissionDenied(error.message) from error
    if not round.items.filter(pk=item_id).exists():
        raise Http404(f'The round "{round}" has no item {item_id}.')
    (item,) = load_items([item_id])
    return render(
        request, "results/pieces.html", {"pieces": build_sheet(item.query, item.document, "", is_full=True).full}
    )


def load_permitted(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID, permission: str) -> Round:
    """Return the round. Raises PermissionDenied if the user lacks this permission altogether."""
    round: Round = model_admin.load_viewed(request, object_id)
    require(request.user, permission)
    return round


def adjudicate_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Render the items whose judges are split, one at a time, with their grades."""
    round = load_permitted(request, model_admin, object_id, "judging.change_round")
    try:
        require_lead(round, request.user)
    except BenchbenchError as error:
        messages.error(request, error.message)
        return redirect(change_url(round))
    own_grades = Grade.objects.filter(item__round=round, adjudicates=True, judge=staff(request)).order_by(
        "-graded_at", "-id"
    )
    payload = _build_split_payload(round, staff(request), (), AHEAD, {})
    return render_judge_page(request, model_admin, round, payload, list(own_grades[:MOST_UNDONE]), adjudicates=True)


@require_POST
def decide(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Store decisions, and answer with the next items: withdrawn ones first, skipped ones last."""
    round, user = load_permitted(request, model_admin, object_id, "judging.change_round"), staff(request)
    last: dict[int, str] = {}

    def store_entry(entry: JudgeEntry) -> None:
        last[entry.item_id] = entry.kind
        if entry.kind == UNDO:
            withdraw_adjudication(round, entry.item_id, user)
        elif entry.kind == Grade.Kind.GRADE and entry.grade is not None:
            adjudicate(round, entry.item_id, user, entry.grade, note=entry.note)

    return store_entries(
        request,
        lambda: require_lead(round, user),
        store_entry,
        lambda message: _build_split_payload(round, user, message.present_ids, message.count, last),
    )


def _build_split_payload(
    round: Round, user: User, present_ids: Collection[int], count: int, last: Mapping[int, str]
) -> dict[str, object]:
    """Return the next items and the progress. `last` has the latest entries by item: withdrawn items come first."""
    consensus_by_item = load_consensus(round)
    split = [item_id for item_id, item in consensus_by_item.items() if item.split] if round.is_open else []
    item_ids = sorted(split, key=lambda item_id: (TURNS.get(last.get(item_id, ""), 1), item_id))[:count]
    new_views = view_items(round, user, load_items([item for item in item_ids if item not in present_ids]))
    decided = sum(any(row.adjudicates for row in item.grades) for item in consensus_by_item.values())
    return {
        "held": item_ids,
        "items": [pack_item(round, row, consensus_by_item[row.item.pk].grades) for row in new_views],
        "progress": {"done": decided, "wanted": decided + len(split), "mine": None, "pace": None, "left": None},
        "end": "" if item_ids else "No items are left to decide: the judges agree on all others.",
    }


def my_rounds(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """List the rounds in which the reader judges, with the number of grades, the latest first."""
    user = staff(request)
    require(user, "judging.add_grade")
    mine = Q(items__grades__judge=user, items__grades__adjudicates=False)
    judged = Round.objects.filter(Q(judges=user) | Q(pk__in=Grade.objects.filter(judge=user).values("item__round")))
    annotated = judged.distinct().annotate(
        graded=Count("items__grades", filter=mine, distinct=True), last=Max("items__grades__graded_at", filter=mine)
    )
    rounds = annotated.order_by(F("last").desc(nulls_last=True), "-created_at")
    return model_admin.render_page(request, "judging/my_grades.html", {"rounds": rounds, "title": "My grades"})


def my_grades(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """List the reader's grades in a round, latest first; withdraw chosen ones, or all that a search finds."""
    round = load_permitted(request, model_admin, object_id, "judging.add_grade")
    answer_filter = request.GET.get("said", "")
    words = request.GET.get("q", "").strip()
    rows = (
        load_grades(round, staff(request)).select_related("item__query", "item__document").defer("item__document__text")
    )
    if answer_filter:
        rows = (
            rows.filter(grade=answer_filter)
            if answer_filter.isdecimal() and len(answer_filter) == 1
            else rows.filter(kind=answer_filter)
        )
    if words:
        fields = ("query__text", "document__title", "document__opening")
        matches = [Q(**{f"item__{field}__icontains": words}) for field in fields]
        rows = rows.filter(matches[0] | matches[1] | matches[2])
    if request.method == "POST":
        chosen = request.POST.getlist("item")
        items = rows.values_list("item", flat=True)
        if ALL not in request.POST:
            items = items.filter(item__in=[pk for pk in chosen if pk.isdecimal() and len(pk) < 19])
        try:
            count = ungrade(round, staff(request), list(items))
            messages.success(request, f"Withdrawn: {counted(count, 'grade')}. The items return to the queue.")
        except BenchbenchError as error:
            messages.error(request, error.message)
        return redirect(request.get_full_path())
    page = Paginator(rows, SHOWN_GRADES).get_page(request.GET.get("page"))
    kinds = [(Grade.Kind.SKIP, "skipped"), (Grade.Kind.CANNOT_JUDGE, "can't judge")]
    context = {
        "round": round,
        "page": page,
        "rows": [(row, label_grade(round, row)) for row in page],
        "said": answer_filter,
        "words": words,
        "choices": [*((str(entry["grade"]), f"{entry['grade']} {entry['name']}") for entry in round.scale), *kinds],
        "judge_url": reverse("admin:round_judge", args=[round.pk]),
    }
    return model_admin.render_page(request, "judging/grades.html", context, original=round)
