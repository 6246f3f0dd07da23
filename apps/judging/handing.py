"""Handing out items: each judge leases the next ones, so that two grade one item only if it wants several judges.

A judge sees the query and its description, the document and its best passage, but no runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Now

from apps.engines.storing import find_snippet
from apps.judging.judges import RoundError, filter_led, require_judge, require_open
from apps.judging.models import Grade, Round, RoundItem, Slot
from apps.judging.settling.renewing import request_renewal

LEASE = timedelta(minutes=10)  # an item that is not graded within it goes to others
MOST_AHEAD = 20
MOST_TEXT = 20_000  # characters of a document's text that come with an item; the whole text is a separate request


def load_next_items(round: Round, judge: User, *, count: int = 1) -> list[RoundItem]:
    """Return the next items for a judge, at most `count`, with query, document and chunk: leased ones first.

    See `hand_out`.
    """
    return load_items(hand_out(round, judge, count=count))


def hand_out(round: Round, judge: User, *, count: int = 1) -> list[int]:
    """Lease the next items to a judge; return at most `count` ids, those that the judge already holds first.

    Each call renews the leases and asks for the round's state to be renewed. Returns [] if the round hands out no more
    items or this judge has no items left; skipped items do not return. Raises RoundStateError, NotAJudgeError,
    RoundError.
    """
    require_open(round)
    require_judge(round, judge)
    if not 1 <= count <= MOST_AHEAD:
        raise RoundError(f"Ask for 1 to {MOST_AHEAD} items at once, not {count}.", field="count")
    if round.offers_items:
        request_renewal(round)
    return _claim_slots(round, judge, count) if round.offers_items else []


def list_waiting_slots(user: User) -> QuerySet[Slot]:
    """Return the slots whose items a judge may still grade: free or their own, of items that they did not answer."""
    answered = Grade.objects.filter(item=OuterRef("item"), judge=user, adjudicates=False)
    free = Q(until=None) | Q(until__lt=Now())
    return Slot.objects.filter(free | Q(judge=user), ~Exists(answered), done=False)


def is_used_up(round: Round) -> bool:
    """Return whether a round hands out no more items because its budget of items is graded."""
    return Round.objects.filter(_list_used_up(), pk=round.pk).exists()


def _list_used_up() -> Q:
    graded = Slot.objects.filter(round=OuterRef("pk"), done=True).order_by().values("round")
    counted = graded.annotate(items=Count("item", distinct=True)).values("items")
    return Q(budget__lt=F("item_count"), budget__lte=Subquery(counted))


def list_waiting_rounds(user: User) -> QuerySet[Round]:
    """Return the open rounds that wait for a user: to grade items, or to close one that they lead and that ended."""
    offering = (Q(settled_at=None) | Q(continue_after_settled=True)) & ~_list_used_up()
    judged = Round.judges.through.objects.filter(user=user).values("round")
    to_grade = offering & Q(Exists(list_waiting_slots(user).filter(round=OuterRef("pk"))), pk__in=judged)
    return Round.objects.filter(to_grade | (~offering & filter_led(user)), state=Round.State.OPEN)


# One statement, because it runs with every grade and Django takes longer to build these conditions than PostgreSQL to
# answer. The slot's own columns say whether it is free, so PostgreSQL checks them again when two judges race. The other
# conditions concern this judge alone or only delay: an item's second slot comes once the first is taken.
CLAIM = """
WITH held AS (
    SELECT id, place FROM judging_slot
    WHERE round_id = %(round)s AND judge_id = %(judge)s AND NOT done AND until >= statement_timestamp()
), taken AS (
    SELECT id, place FROM judging_slot slot
    WHERE round_id = %(round)s AND NOT done AND (until IS NULL OR until < statement_timestamp())
        AND NOT EXISTS (
            SELECT FROM judging_grade WHERE item_id = slot.item_id AND judge_id = %(judge)s AND NOT adjudicates
        )
        AND NOT EXISTS (
            SELECT FROM judging_slot own WHERE own.item_id = slot.item_id AND own.id <> slot.id
            AND own.judge_id = %(judge)s AND (own.done OR own.until >= statement_timestamp())
        )
        AND NOT EXISTS (
            SELECT FROM judging_slot before WHERE before.item_id = slot.item_id AND before.number = slot.number - 1
            AND NOT before.done AND (before.until IS NULL OR before.until < statement_timestamp())
        )
    ORDER BY place, number
    LIMIT greatest(0, least(%(count)s - (SELECT count(*) FROM held), %(left)s))
    FOR UPDATE SKIP LOCKED
), mine AS (
    SELECT id, place, 1 AS turn FROM held UNION ALL SELECT id, place, 2 FROM taken
), leased AS (
    UPDATE judging_slot SET judge_id = %(judge)s, until = statement_timestamp() + %(lease)s
    WHERE id = ANY (ARRAY(SELECT id FROM mine))
    RETURNING id, item_id
)
SELECT item_id FROM leased JOIN mine USING (id) ORDER BY turn, place LIMIT %(count)s
"""


@transaction.atomic
def _claim_slots(round: Round, judge: User, count: int) -> list[int]:
    """Lease items to a judge within the budget, in addition to those that they hold; return them all.

    Under a budget, the lock on the round serialises its judges. Each must count the items that the others take, which
    only a statement after their commit sees. Grading does not wait for this lock.
    """
    left = round.item_count
    if round.budget is not None and round.budget < left:
        list(Round.objects.select_for_update(no_key=True).filter(pk=round.pk).order_by().values_list("pk"))
        claimed_items = Slot.objects.filter(Q(done=True) | Q(until__gte=Now()), round=round).values("item").distinct()
        left = max(0, round.budget - claimed_items.count())
    values: Any = {"round": round.pk, "judge": judge.pk, "count": count, "left": left, "lease": LEASE}
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, values)  # the stubs know no timedelta
        return [item for (item,) in cursor.fetchall()]


def load_items(item_ids: Sequence[int]) -> list[RoundItem]:
    """Return items in this order with their query, document and chunk. One query; none for an empty list."""
    items = RoundItem.objects.filter(pk__in=item_ids).select_related("query", "document", "chunk")
    by_id = {item.pk: item for item in items.defer("document__metadata")}
    return [by_id[pk] for pk in item_ids]


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item for one judge. `passage` is the chunk that brought the document in some run, at `start` of its text.

    `text` is the beginning of the document's text; `is_cut` if it continues. `grade` is this judge's; `other_grades`
    are those of the others, if the round is not blind and this judge has graded the item.
    """

    item: RoundItem
    passage: str
    start: int
    text: str
    is_cut: bool
    grade: Grade | None = None
    other_grades: Sequence[Grade] = ()


def view_items(
    round: Round, judge: User, items: Sequence[RoundItem], *, most_text: int | None = MOST_TEXT
) -> list[ItemView]:
    """Return items as `judge` sees them; with `most_text` None, with the whole texts. One query."""
    rows = Grade.objects.filter(item__in=items, source=Grade.Source.HUMAN, adjudicates=False).order_by("judge_name")
    by_item: dict[int, list[Grade]] = {item.pk: [] for item in items}
    for row in rows:
        by_item[row.item_id].append(row)
    views = []
    for item in items:
        own_grade = next((row for row in by_item[item.pk] if row.judge_id == judge.pk), None)
        sees = own_grade is not None and own_grade.kind != Grade.Kind.SKIP and not (round.blind and round.is_open)
        other_grades = [row for row in by_item[item.pk] if row is not own_grade] if sees else []
        views.append(_build_view(item, most_text, own_grade, other_grades))
    return views


def view_ungraded_items(items: Sequence[RoundItem]) -> list[ItemView]:
    """Return items as a judge sees them before grading, such as those just handed out. No query if texts are here."""
    return [_build_view(item, MOST_TEXT) for item in items]


def _build_view(
    item: RoundItem, most_text: int | None, grade: Grade | None = None, other_grades: Sequence[Grade] = ()
) -> ItemView:
    text = item.document.text
    chunk = item.chunk
    return ItemView(
        item,
        passage=chunk.text if chunk else find_snippet(item.query.text, item.document),
        start=chunk.start if chunk else 0,
        text=text if most_text is None else text[:most_text],
        is_cut=most_text is not None and len(text) > most_text,
        grade=grade,
        other_grades=other_grades,
    )
