"""Handing out items: each judge leases the next ones, so that two never grade one unless it wants several."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from apps.judging.errors import RoundError
from apps.judging.judges import require_judge, require_open
from apps.judging.models import Grade, Round, RoundItem, Slot
from apps.judging.settling.deciding import bring_up_to_date

LEASE_SECONDS = 600  # an item that was handed out and not graded goes to others after that
MOST_AHEAD = 20


def lease_end() -> Any:
    return Now() + timedelta(seconds=LEASE_SECONDS)


def next_items(round: Round, judge: Any, *, count: int = 1) -> list[RoundItem]:
    """Return the next items for a judge, at most `count`, with query, document and chunk: those that they hold first.

    Asking renews the leases. Nothing comes once the round hands out nothing more, or nothing is left for this judge:
    what they skipped does not come again. Raises RoundStateError, NotAJudgeError, RoundError.
    """
    require_open(round)
    require_judge(round, judge)
    if not 1 <= count <= MOST_AHEAD:
        raise RoundError(f"Ask for 1 to {MOST_AHEAD} items at once, not {count}.", field="count")
    if round.hands_out:
        bring_up_to_date(round)
    return shown(_take(round, judge, count)) if round.hands_out else []


@transaction.atomic
def _take(round: Round, judge: Any, count: int) -> list[int]:
    """Lease items to a judge, beside those that they hold, as far as the budget goes; return them all."""
    held = list(_held(round, judge).order_by("place").values_list("pk", "item_id"))
    wanting = min(count, len(held) + _left(round)) - len(held)
    free = _free(round, judge).order_by("place", "number").select_for_update(skip_locked=True, of=("self",))
    taken = list(free.values_list("pk", "item_id")[:wanting]) if wanting > 0 else []
    Slot.objects.filter(pk__in=[pk for pk, _ in [*held, *taken]]).update(judge=judge, until=lease_end())
    return [item for _, item in [*held, *taken]][:count]


def _left(round: Round) -> int:
    """Return how many items more the budget allows to be handed out."""
    if round.budget is None or round.budget >= round.item_count:
        return round.item_count
    given = Slot.objects.filter(Q(done=True) | Q(until__gte=Now()), round=round).values("item").distinct()
    return max(0, round.budget - given.count())


def shown(item_ids: Sequence[int]) -> list[RoundItem]:
    """Return items with all that is shown of them, in this order. One query."""
    items = RoundItem.objects.filter(pk__in=item_ids).select_related("query", "document", "chunk")
    by_id = {item.pk: item for item in items.defer("document__metadata")}
    return [by_id[pk] for pk in item_ids]


def give_back(round: Round, judge: Any) -> int:
    """End the leases of a judge who goes; return how many items others get at once."""
    return _held(round, judge).update(judge=None, until=None)


def _held(round: Round, judge: Any) -> QuerySet[Slot]:
    return Slot.objects.filter(round=round, judge=judge, done=False, until__gte=Now())


def _free(round: Round, judge: Any) -> QuerySet[Slot]:
    """Return the slots that a judge may take now, of items that they have no part in yet.

    Whether a slot is free stands in its own columns, which PostgreSQL reads again when two race; what else is asked
    here concerns the judge alone, or only delays: the second slot of an item comes once the first is taken.
    """
    same_item = Slot.objects.filter(item=OuterRef("item"))
    taken = Q(done=True) | Q(until__gte=Now())
    free = Q(done=False) & (Q(until=None) | Q(until__lt=Now()))
    return Slot.objects.filter(
        free,
        ~Exists(Grade.objects.filter(item=OuterRef("item"), judge=judge, adjudicates=False)),
        ~Exists(same_item.filter(taken, judge=judge).exclude(pk=OuterRef("pk"))),
        ~Exists(same_item.filter(free, number=OuterRef("number") - 1)),
        round=round,
    )
