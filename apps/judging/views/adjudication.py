"""The page on which whoever leads a round decides what its judges are split on."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.judging.grading import adjudicate
from apps.judging.handing import shown
from apps.judging.judges import require_lead
from apps.judging.models import Grade, Round
from apps.judging.settling.consensus import Agreed, agreed_of
from apps.judging.showing import show
from apps.judging.views.items import packed
from apps.judging.views.judging import AHEAD, desk_context
from apps.judging.views.messages import read_message
from benchbench.errors import BenchbenchError
from benchbench.site.admin import SiteAdmin
from benchbench.site.panels import change_url

END = "Nothing is left to decide: the judges are split on no other item."


def adjudicate_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """The items whose judges are split, one at a time, with what was said of them."""
    found = _led(request, model_admin, object_id)
    try:
        require_lead(found, request.user)
    except BenchbenchError as error:
        messages.error(request, error.message)
        return redirect(change_url(found))
    data = _told(found, request.user, frozenset(), AHEAD) | {
        "user": request.user.pk,
        "url": reverse("admin:round_decide", args=[found.pk]),
        "last": [],
        "scale": found.scale,
        "ahead": AHEAD,
    }
    return model_admin.page(request, "judging/judge.html", desk_context(found, data, adjudicates=True), original=found)


@require_POST
def decide(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Keep what was decided, and answer with the items that are next. What is skipped is left for later."""
    found = _led(request, model_admin, object_id)
    try:
        require_lead(found, request.user)
        message = read_message(request)
    except BenchbenchError as error:
        return JsonResponse({"sentence": error.message}, status=error.status)
    refused, later = [], set()
    for said in message.said:
        if said.kind == Grade.Kind.SKIP:
            later.add(said.item_id)
        if said.kind != Grade.Kind.GRADE or said.grade is None:
            continue
        try:
            adjudicate(found, said.item_id, request.user, said.grade, note=said.note)
        except BenchbenchError as error:
            refused.append({"key": said.key, "sentence": error.message})
    return JsonResponse({"refused": refused} | _told(found, request.user, message.have, message.count, later=later))


def _led(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> Round:
    found: Round = model_admin.viewed(request, object_id)
    if not request.user.has_perm("judging.change_round"):
        raise PermissionDenied
    return found


def _told(found: Round, user: Any, have: frozenset[int], count: int, *, later: Collection[int] = ()) -> dict[str, Any]:
    agreed = agreed_of(found)
    split = [one for one in agreed.values() if one.split] if found.is_open else []
    first = sorted(split, key=lambda one: (one.item_id in later, one.item_id))[:count]
    new = shown([one.item_id for one in first if one.item_id not in have])
    decided = sum(any(row.adjudicates for row in one.grades) for one in agreed.values())
    return {
        "held": [one.item_id for one in first],
        "items": [_packed(found, row, agreed[row.item.pk]) for row in show(found, user, new)],
        "progress": {"done": decided, "wanted": decided + len(split), "mine": None, "pace": None, "left": None},
        "end": "" if first else END,
    }


def _packed(found: Round, row: Any, one: Agreed) -> dict[str, Any]:
    url = reverse("admin:round_text", args=[found.pk, row.item.pk])
    return packed(row, url, one.grades) | {"said": None}
