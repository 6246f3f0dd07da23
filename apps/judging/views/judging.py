"""The page on which a judge grades, and what it exchanges with the server."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_POST

from apps.judging.grading import MOST_UNDONE, grade_item, grades_by, ungrade
from apps.judging.handing import hand_out, shown
from apps.judging.judges import is_judge, require_judge, require_part
from apps.judging.models import Grade, Round
from apps.judging.settling.progress import own_progress
from apps.judging.showing import show_ungraded
from apps.judging.views.items import packed, sheet
from apps.judging.views.messages import UNDO, Said, read_message
from benchbench.errors import BenchbenchError
from benchbench.markup import rendered
from benchbench.site.admin import SiteAdmin
from benchbench.site.panels import change_url

AHEAD = 8  # items that a page holds: the one that is shown, and those that come next


def judge_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """The page on which a judge grades the items of a round, with the first ones."""
    round = permitted(request, model_admin, object_id)
    if not is_judge(round, request.user):
        messages.error(request, f'You are not a judge of "{round}": its owner names the judges.')
        return redirect(change_url(round))
    last = list(grades_by(round, request.user)[:MOST_UNDONE])
    data = told(round, request.user, (), AHEAD) | {
        "user": request.user.pk,
        "url": reverse("admin:round_exchange", args=[round.pk]),
        "last": [{"id": row.item_id, "label": label_of(round, row)} for row in reversed(last)],
        "scale": round.scale,
        "ahead": AHEAD,
    }
    return model_admin.page(request, "judging/judge.html", desk_context(round, data), original=round)


@require_POST
def exchange(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Keep what a judge said, in order, and answer with the next items and how far the judge is.

    What cannot be kept is told by the key of its message, with the reason; all else is kept. What comes twice is kept
    once, as it names its item.
    """
    round = permitted(request, model_admin, object_id)
    try:
        require_judge(round, request.user)
        message = read_message(request)
    except BenchbenchError as error:
        return JsonResponse({"sentence": error.message}, status=error.status)
    refused = []
    for said in message.said:
        try:
            keep(round, request.user, said)
        except BenchbenchError as error:
            refused.append({"key": said.key, "sentence": error.message})
    return JsonResponse({"refused": refused} | told(round, request.user, message.have, message.count))


def item_text(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID, item_id: int) -> HttpResponse:
    """The whole text of an item's document, with the words of its query marked."""
    round: Round = model_admin.viewed(request, object_id)
    try:
        require_part(round, request.user)
    except BenchbenchError as error:
        raise PermissionDenied(error.message) from error
    if not round.items.filter(pk=item_id).exists():
        raise Http404(f'The round "{round}" has no item {item_id}.')
    (item,) = shown([item_id])
    return render(request, "judging/text.html", {"pieces": sheet(item.query, item.document, "", whole=True).full})


def permitted(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> Round:
    """Return the round; raise PermissionDenied for who may not grade at all."""
    round: Round = model_admin.viewed(request, object_id)
    if not request.user.has_perm("judging.add_grade"):
        raise PermissionDenied
    return round


def keep(round: Round, judge: Any, said: Said) -> None:
    """Do what a message says."""
    if said.kind == UNDO:
        ungrade(round, judge, [said.item_id], hold=True)
        return
    grade_item(round, said.item_id, judge, grade=said.grade, kind=said.kind, note=said.note, seconds=said.seconds)


def told(round: Round, judge: Any, have: Collection[int], count: int) -> dict[str, Any]:
    """Return the items that a judge holds now, those in full that the page does not have, and how far the judge is."""
    held = hand_out(round, judge, count=count) if round.is_open else []
    new = show_ungraded(shown([item for item in held if item not in have]))
    return {
        "held": held,
        "items": [packed(row, reverse("admin:round_text", args=[round.pk, row.item.pk])) for row in new],
        "progress": own_progress(round, judge),
        "end": "" if held else _end(round),
    }


def _end(round: Round) -> str:
    """Say why no item comes."""
    if not round.is_open:
        return "The round is closed. Thank you."
    if not round.hands_out:
        return "The question of the round is settled: no further grade is needed. Thank you."
    return "Nothing is left for you: all items are graded, or others have them now. Thank you."


def label_of(round: Round, row: Grade) -> str:
    """Return what was said, as it is read: `2 Relevant`, `skipped`."""
    if row.grade is None:
        return "skipped" if row.kind == Grade.Kind.SKIP else "can't tell"
    names = {entry["grade"]: entry["name"] for entry in round.scale}
    return f"{row.grade} {names.get(row.grade, '')}".strip()


def desk_context(round: Round, data: dict[str, Any], *, adjudicates: bool = False) -> dict[str, Any]:
    """Return what the page of a judge, and of who adjudicates, is given."""
    return {
        "round": round,
        "data": data,
        "adjudicates": adjudicates,
        "most_undone": MOST_UNDONE,
        "guidelines": mark_safe(rendered(round.guidelines)),  # nosec # it lets no HTML through
    }
