"""The page on which whoever leads a round decides what its judges are split on."""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.judging.grading import MOST_UNDONE, adjudicate, withdraw_adjudication
from apps.judging.handing import shown
from apps.judging.judges import require_lead
from apps.judging.models import Grade, Round
from apps.judging.settling.consensus import Agreed, agreed_of
from apps.judging.showing import show
from apps.judging.views.items import packed
from apps.judging.views.judging import AHEAD, desk_context, label_of
from apps.judging.views.messages import UNDO, read_message
from benchbench.errors import BenchbenchError
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import staff
from benchbench.site.panels import change_url

TURNS = {UNDO: 0, Grade.Kind.SKIP: 2}  # all else is 1
END = "Nothing is left to decide: the judges are split on no other item."


def adjudicate_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """The items whose judges are split, one at a time, with what was said of them."""
    round = _led(request, model_admin, object_id)
    try:
        require_lead(round, request.user)
    except BenchbenchError as error:
        messages.error(request, error.message)
        return redirect(change_url(round))
    own = Grade.objects.filter(item__round=round, adjudicates=True, judge=staff(request)).order_by("-graded_at", "-id")
    data = _told(round, request.user, (), AHEAD) | {
        "user": request.user.pk,
        "url": reverse("admin:round_decide", args=[round.pk]),
        "last": [{"id": row.item_id, "label": label_of(round, row)} for row in reversed(own[:MOST_UNDONE])],
        "scale": round.scale,
        "ahead": AHEAD,
    }
    return model_admin.page(request, "judging/judge.html", desk_context(round, data, adjudicates=True), original=round)


@require_POST
def decide(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Keep what was decided, and answer with the next items: what was taken back first, what was skipped last."""
    round = _led(request, model_admin, object_id)
    try:
        require_lead(round, request.user)
        message = read_message(request)
    except BenchbenchError as error:
        return JsonResponse({"sentence": error.message}, status=error.status)
    refused, last = [], {}
    for said in message.said:
        last[said.item_id] = said.kind
        try:
            if said.kind == UNDO:
                withdraw_adjudication(round, said.item_id, request.user)
            elif said.kind == Grade.Kind.GRADE and said.grade is not None:
                adjudicate(round, said.item_id, request.user, said.grade, note=said.note)
        except BenchbenchError as error:
            refused.append({"key": said.key, "sentence": error.message})
    return JsonResponse({"refused": refused} | _told(round, request.user, message.have, message.count, last))


def _led(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> Round:
    round: Round = model_admin.viewed(request, object_id)
    if not request.user.has_perm("judging.change_round"):
        raise PermissionDenied
    return round


def _told(
    round: Round, user: Any, have: Collection[int], count: int, last: Mapping[int, str] | None = None
) -> dict[str, Any]:
    """Return the next items and the progress. `last` is what was just said of items: what is taken back comes first."""
    agreed = agreed_of(round)
    split = [item for item in agreed.values() if item.split] if round.is_open else []
    turn = {item_id: TURNS.get(kind, 1) for item_id, kind in (last or {}).items()}
    first = sorted(split, key=lambda item: (turn.get(item.item_id, 1), item.item_id))[:count]
    new = shown([item.item_id for item in first if item.item_id not in have])
    decided = sum(any(row.adjudicates for row in item.grades) for item in agreed.values())
    return {
        "held": [item.item_id for item in first],
        "items": [_packed(round, row, agreed[row.item.pk]) for row in show(round, user, new)],
        "progress": {"done": decided, "wanted": decided + len(split), "mine": None, "pace": None, "left": None},
        "end": "" if first else END,
    }


def _packed(round: Round, row: Any, item: Agreed) -> dict[str, Any]:
    url = reverse("admin:round_text", args=[round.pk, row.item.pk])
    return packed(row, url, item.grades) | {"said": None}
