"""Grading: storing and withdrawing a judge's grades, and adjudicating items on which judges are split."""

from collections.abc import Collection, Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from apps.judging.handing import LEASE
from apps.judging.judges import (
    NotAJudgeError,
    RoundError,
    RoundStateError,
    lock_open_round,
    require_judge,
    require_lead,
)
from apps.judging.models import Grade, Round, RoundItem, Slot
from apps.judging.scales import list_grades
from apps.judging.settling.consensus import compute_consensus

MOST_UNDONE = 10
LONGEST_NOTE = 10_000
MOST_SECONDS = 24 * 3600.0


@transaction.atomic
def grade_item(
    round: Round,
    item_id: int,
    judge: User,
    *,
    grade: int | None = None,
    kind: str = Grade.Kind.GRADE,
    note: str = "",
    seconds: float | None = None,
) -> Grade:
    """Store a judge's grade of an item, replacing their earlier one; return it.

    Sending it twice stores it once. It is stored even if the lease has passed to another judge, so no grade is lost. A
    skipped item goes to others. Raises RoundError, RoundStateError, NotAJudgeError.
    """
    lock_open_round(round)
    require_judge(round, judge)
    _check(round, grade, kind, note, seconds)
    slots = _lock_slots(round, [item_id])
    row = Grade(
        item_id=item_id,
        judge=judge,
        judge_name=judge.get_username(),
        kind=kind,
        grade=grade,
        note=note,
        seconds=seconds,
        graded_at=timezone.now(),
    )
    answer = ["judge", "kind", "grade", "note", "seconds", "graded_at"]
    key = ["item", "source", "judge_name", "adjudicates"]
    Grade.objects.bulk_create([row], update_conflicts=True, unique_fields=key, update_fields=answer)  # one statement
    _settle_slot(slots, judge, is_done=kind != Grade.Kind.SKIP)
    return row


def lock_items(round: Round, item_ids: Collection[int]) -> None:
    """Lock an open round and the given items until the end of a transaction that grades them one by one.

    Without the lock, two judges who grade the same items in different orders would deadlock. Raises RoundError for an
    item of another round, RoundStateError.
    """
    lock_open_round(round)
    _lock_slots(round, item_ids)


@transaction.atomic
def undo(round: Round, judge: User, *, count: int = 1) -> list[int]:
    """Withdraw the last grades of a judge, at most MOST_UNDONE; return the items, which are leased to the judge again.

    Raises RoundStateError if the judge has no grades.
    """
    lock_open_round(round)
    require_judge(round, judge)
    if not 1 <= count <= MOST_UNDONE:
        raise RoundError(f"Undo 1 to {MOST_UNDONE} grades at once, not {count}.", field="count")
    last = list(load_grades(round, judge).values_list("item_id", flat=True)[:count])
    if not last:
        raise RoundStateError(f'{judge} has graded nothing in the round "{round}": there is nothing to undo.')
    _withdraw_grades(round, judge, last, hold=True)
    return last


@transaction.atomic
def ungrade(round: Round, judge: User, item_ids: Sequence[int], *, hold: bool = False) -> int:
    """Withdraw a judge's grades of these items; return the number of grades.

    The items go to the next judge who asks; with `hold` they are leased to this judge again.
    """
    lock_open_round(round)
    require_judge(round, judge)
    return _withdraw_grades(round, judge, item_ids, hold=hold)


def load_grades(round: Round, judge: User) -> QuerySet[Grade]:
    """Return a judge's grades in a round, latest first."""
    return Grade.objects.filter(item__round=round, judge=judge, adjudicates=False).order_by("-graded_at", "-id")


@transaction.atomic
def adjudicate(round: Round, item_id: int, by: User, grade: int, *, note: str = "") -> Grade:
    """Decide the grade of an item on which its judges are split evenly; return the decision.

    Raises RoundStateError if the item's judges are not split, RoundError, NotAJudgeError.
    """
    lock_open_round(round)
    require_lead(round, by)
    _check(round, grade, Grade.Kind.GRADE, note, None)
    _lock_slots(round, [item_id])
    grades = list(Grade.objects.filter(item=item_id, source=Grade.Source.HUMAN, kind=Grade.Kind.GRADE))
    decision = next((row for row in grades if row.adjudicates), None)
    if decision is None and not (grades and compute_consensus(item_id, grades).split):
        raise RoundStateError("The judges of this item are not split: there is nothing to adjudicate.")
    values = {"grade": grade, "note": note, "judge": by, "judge_name": by.get_username(), "graded_at": timezone.now()}
    row, _ = Grade.objects.update_or_create(item_id=item_id, adjudicates=True, defaults=values)
    return row


@transaction.atomic
def withdraw_adjudication(round: Round, item_id: int, by: User) -> bool:
    """Withdraw the decision of `by` on an item, which waits for adjudication again; return whether it existed.

    Raises RoundStateError, and NotAJudgeError for another user's decision, which a new decision may replace.
    """
    lock_open_round(round)
    require_lead(round, by)
    _lock_slots(round, [item_id])
    decision = Grade.objects.filter(item=item_id, adjudicates=True).first()
    if decision is None:
        return False
    if decision.judge_id != by.pk:
        raise NotAJudgeError(
            f"{decision.judge_name} decided this item and must withdraw it. You can only decide it again."
        )
    decision.delete()
    return True


def _check(round: Round, grade: int | None, kind: str, note: str, seconds: float | None) -> None:
    if kind not in Grade.Kind.values:
        raise RoundError(f"kind must be one of {', '.join(Grade.Kind.values)}, not {kind!r}.", field="kind")
    scale = list_grades(round.scale)
    if kind == Grade.Kind.GRADE and grade not in scale:
        listed = ", ".join(map(str, scale))
        raise RoundError(f"The grade must be one of {listed}, not {grade}.", field="grade")
    if kind != Grade.Kind.GRADE and grade is not None:
        raise RoundError(f"Leave out the grade if kind is {kind}.", field="grade")
    if len(note) > LONGEST_NOTE:
        raise RoundError(f"The note has more than {LONGEST_NOTE:,} characters.", field="note")
    if seconds is not None and not 0 <= seconds <= MOST_SECONDS:
        raise RoundError(f"The seconds must be from 0 to {MOST_SECONDS:,.0f}, not {seconds}.", field="seconds")


def _lock_slots(round: Round, item_ids: Collection[int]) -> list[Slot]:
    """Lock the slots of items, in a fixed order, and return them. Raises RoundError for another round's item."""
    slots = list(Slot.objects.select_for_update().filter(item__in=item_ids, round=round).order_by("item_id", "number"))
    if missing := set(item_ids) - {slot.item_id for slot in slots}:
        raise RoundError(f'The round "{round}" has no item {min(missing)}.', field="item_id")
    return slots


def _settle_slot(slots: Sequence[Slot], judge: User, *, is_done: bool) -> None:
    """Mark the judge's slot as done or free. A judge without a slot takes a free one."""
    now = timezone.now()
    slot = next((slot for slot in slots if slot.judge_id == judge.pk), None)
    if slot is None and is_done:
        free = [slot for slot in slots if not slot.done and (slot.until is None or slot.until < now)]
        slot = next(iter(free), None)
    if slot is not None:
        Slot.objects.filter(pk=slot.pk).update(judge=judge if is_done else None, until=None, done=is_done)


def _withdraw_grades(round: Round, judge: User, item_ids: Sequence[int], *, hold: bool) -> int:
    mine = load_grades(round, judge).filter(item__in=item_ids)
    items = list(mine.values_list("item_id", flat=True))
    slots = Slot.objects.filter(item__in=items, round=round)
    list(slots.select_for_update().order_by("item_id", "number").values_list("pk"))
    slots.filter(judge=judge).update(judge=None, until=None, done=False)
    Grade.objects.filter(pk__in=mine.values("pk")).delete()
    if hold:
        for item in RoundItem.objects.filter(pk__in=items):
            first = slots.filter(item=item, done=False, judge=None).order_by("number").values("pk")[:1]
            slots.filter(pk__in=first).update(judge=judge, until=Now() + LEASE)
    return len(items)
