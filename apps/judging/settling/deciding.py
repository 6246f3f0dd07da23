"""State of a round's question: what its grades have settled, how many more are needed, and which items come next."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import Min, Q
from django.db.models.functions import Now
from django.utils import timezone
from numpy.typing import NDArray

from apps.benchmarks.models import Run
from apps.judging.models import Grade, Round, RoundItem, Slot
from apps.judging.ordering import Question
from apps.judging.pooling import known_grades, pool_of, read_rankings
from apps.judging.scales import grades_of
from apps.judging.settling.consensus import agreed_of
from benchbench.ir.judging.judging import Judging
from benchbench.ir.judging.orders import upcoming, weight_order
from benchbench.ir.judging.pool import Item, JudgingError, Pool
from benchbench.ir.judging.state import State
from benchbench.ir.measures import Measure

KEPT = 8  # rounds whose pools a process keeps
RENEWED_AFTER = 10  # grades
PLACED_ANEW = 60  # items at the front of the decisive order that each new state puts in place

Numbers = NDArray[np.int64]


@dataclass(eq=False)
class Desk:
    """The pool of a round in memory, with the grades that were taken in, by item."""

    pool: Pool
    judging: Judging
    runs: list[Run]
    items: dict[int, Item]
    """By the id of a round's item, its pair in the pool."""
    ids: dict[int, int]
    """By the number of a pair in the pool, the id of its item."""
    sample: Numbers
    """The numbers of the round's pairs in the sample's order."""
    front: list[int] = field(default_factory=list)
    """The items that were put in place last, in their order."""
    taken: dict[int, int] = field(default_factory=dict)


@dataclass(eq=False)
class Room:
    """The desk of one round, made by whoever comes first, at which one thread works at a time."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    is_made: bool = False
    desk: Desk | None = None
    """None before it is made, and for a round that compares nothing."""


_rooms: "OrderedDict[UUID, Room]" = OrderedDict()
_guard = threading.Lock()


def state_of(round: Round) -> tuple[State, list[Run]] | None:
    """Return the state of a round after its grades so far and its runs, which it names by row.

    None for a round that compares nothing: of one run, or of fewer than two queries that all runs answered. What its
    judges are split on counts as unjudged. While the round is open it is noted with it whether its question is settled,
    and the decisive order is brought up to date.
    """
    room = _room(round)
    with room.lock:
        return _state(round, room)


def bring_up_to_date(round: Round) -> None:
    """Ask for the state again where RENEWED_AFTER grades came since it was asked for last: nobody may look at it.

    Where another thread is at it, nothing waits for that.
    """
    room = _room(round)
    if abs(_graded(round) - round.stated_grades) >= RENEWED_AFTER and room.lock.acquire(blocking=False):
        try:
            _state(round, room)
        finally:
            room.lock.release()


def _state(round: Round, room: Room) -> tuple[State, list[Run]] | None:
    graded = _graded(round)
    if not room.is_made:
        room.desk, room.is_made = desk_of(round), True
    desk, state = room.desk, None
    if desk is not None:
        _take_in(desk, {item: one.grade for item, one in agreed_of(round).items() if one.grade is not None})
        state = desk.judging.state()
        if round.is_open:
            _note(round, state)
        if round.order == Round.Order.DECISIVE and round.hands_out:
            _place_anew(round, desk)
    if graded != round.stated_grades:
        Round.objects.filter(pk=round.pk).update(stated_grades=graded)
        round.stated_grades = graded
    return None if desk is None or state is None else (state, desk.runs)


def _graded(round: Round) -> int:
    return Grade.objects.filter(item__round=round, source=Grade.Source.HUMAN, kind=Grade.Kind.GRADE).count()


def question_of(round: Round, runs: Sequence[Run]) -> tuple[Question, list[int]]:
    """Return what a round asks, as it began, and the ids of the queries of its pool."""
    known = known_grades(round.mapping, round.dataset_version)
    query_ids = sorted(known)
    pool = pool_of(read_rankings(runs, round.depth), query_ids, round.depth)
    truths = [known[query] for query in query_ids]
    return Question(pool, Measure.parse(round.measure), grades_of(round.scale), truths, round.seed), query_ids


def _room(round: Round) -> Room:
    """Return the room of a round in this process; the one that was asked for longest ago goes, past KEPT."""
    with _guard:
        room = _rooms.setdefault(round.pk, Room())
        _rooms.move_to_end(round.pk)
        while len(_rooms) > KEPT:
            _rooms.popitem(last=False)
    return room


def desk_of(round: Round) -> Desk | None:
    """Return the desk of a round as it began, without a grade; None for a round that compares nothing."""
    runs = list(round.runs.order_by("benchmark", "run_order"))
    if len(runs) < 2:
        return None
    question, query_ids = question_of(round, runs)
    try:
        judging = question.judging()
    except JudgingError:
        return None
    place_of = {query: place for place, query in enumerate(query_ids)}
    rows = RoundItem.objects.filter(round=round).values_list("pk", "query_id", "document_id")
    pairs = {pk: Item(place_of[query], document) for pk, query, document in rows if query in place_of}
    items = {pk: item for pk, item in pairs.items() if item in question.pool.numbers}  # a retry may change rankings
    ids = {question.pool.numbers[item]: pk for pk, item in items.items()}
    sample = question.sample_order(question.holes())
    return Desk(question.pool, judging, runs, items, ids, sample)


def _take_in(desk: Desk, grades: dict[int, int]) -> None:
    """Let the judging know the grades that are new or other than those that it knows, and those that are gone."""
    grades = {item: grade for item, grade in grades.items() if item in desk.items}
    for item in desk.taken.keys() - grades.keys():
        desk.judging.grade(desk.items[item], None)
        del desk.taken[item]
    for item, grade in grades.items():
        if desk.taken.get(item) != grade:
            desk.judging.grade(desk.items[item], grade)
            desk.taken[item] = grade


def _note(round: Round, state: State) -> None:
    """Note that the question is settled, or no more; where no pair is left, only second judges are, and they go on."""
    if state.settled != (round.answered_at is not None) and (state.holes or not state.settled):
        round.answered_at = timezone.now() if state.settled else None
        Round.objects.filter(pk=round.pk, state=Round.State.OPEN).update(answered_at=round.answered_at)


@transaction.atomic
def _place_anew(round: Round, desk: Desk) -> None:
    """Put the next items of the decisive order before all others that wait: those of the greatest weights now.

    Slots that somebody is taking at this moment are passed over: nothing waits for this.
    """
    slots = Slot.objects.filter(round=round)
    given = slots.filter(Q(done=True) | Q(until__gte=Now())).values_list("item_id", flat=True)
    numbers = desk.pool.numbers
    out = {numbers[desk.items[item]] for item in given if item in desk.items}
    primary = weight_order(desk.judging.weights())
    coming = upcoming(primary, desk.sample, out, share=round.uniform_share)
    front = [desk.ids[number] for number, _ in islice((one for one in coming if one[0] in desk.ids), PLACED_ANEW)]
    if front == desk.front:
        return
    desk.front = front
    first = slots.aggregate(least=Min("place"))["least"] or 0
    place_of = {item: first - len(front) + place for place, item in enumerate(front)}
    waiting = slots.filter(item__in=front, done=False).select_for_update(skip_locked=True)
    moved = list(waiting)
    for slot in moved:
        slot.place = place_of[slot.item_id]
    Slot.objects.bulk_update(moved, ["place"])
