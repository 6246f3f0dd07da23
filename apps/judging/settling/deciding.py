"""State of a round's question: what its grades have settled, how many more are needed, and the next items."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import Min, Q
from django.db.models.functions import Now
from django.utils import timezone

from apps.judging import process
from apps.judging.models import Round, RoundItem, RoundState, Slot
from apps.judging.question import Numbers, Question, load_question, pack, unpack
from apps.judging.settling import evidence
from apps.judging.settling.consensus import load_human_grades
from apps.judging.settling.evidence import ModelEvidence
from apps.records.models import Run
from benchbench.ir.judging.judging import Judging
from benchbench.ir.judging.orders import order_by_weight, sample_of, upcoming
from benchbench.ir.judging.pool import Item, JudgingError
from benchbench.ir.judging.state import State

MAX_CACHED = 8  # rounds whose pools a process caches
FRONT_SIZE = 60  # items at the front of the decisive order that each new state reorders


@dataclass(eq=False)
class JudgingBoard:
    """The question of a round in memory, with the grades applied so far, by item.

    Not thread-safe: hold the lock on the round's `RoundState`.
    """

    basis: str
    question: Question
    judging: Judging | None  # None for a round that compares no runs
    items: dict[int, int]  # by item id, the number of its pair in the pool
    ids: dict[int, int]  # item ids by number of the pair
    sample: Numbers  # the numbers of the round's pairs in the sample's order
    taken: dict[int, int] = field(default_factory=dict)
    model: ModelEvidence = field(default_factory=ModelEvidence)  # the model whose grades the judging uses as evidence

    def find_pair(self, item: int) -> Item:
        return self.question.pool.get_item(self.items[item])


_boards: "OrderedDict[UUID, JudgingBoard]" = OrderedDict()
process.add(_boards.clear)
_guard = threading.Lock()


@transaction.atomic
def renew(round: Round, *, runs: Sequence[Run] | None = None, model: ModelEvidence | None = None) -> RoundState:
    """Compute the state of a round from its grades so far and return it. Returns a current state unchanged.

    The lock on the row makes a second caller for the same round wait. While the round is open, this also stores whether
    its question is settled and updates the decisive order. Split items count as unjudged. Pass `runs` and `model`,
    whose grades are evidence, to avoid reading them again.
    """
    row, _ = RoundState.objects.select_for_update().defer("board").get_or_create(round=round)
    round.refresh_from_db(fields=["state", "settled_at", "continue_after_settled"])
    runs = load_runs(round) if runs is None else runs
    basis, human_grades = hash_basis(round, runs), load_human_grades(round)
    model = model or evidence.load_evidence(round)
    if row.mark == (mark := human_grades.compute_mark(basis + model.mark)):
        return row
    board = _load_board(round, row, basis, runs)
    changed = ["state", "grades", "mark", "evidence", "sample_size", "sampled_from", "front", "computed_at"]
    before = State.from_record(row.state) if row.state and row.basis == basis else None
    if row.basis != basis:
        items = np.array([board.ids.get(number, 0) for number in range(board.question.pool.size)], np.int64)
        row.basis, row.board = basis, pack(board.question, items)
        changed += ["basis", "board"]
    state = None
    if board.judging is not None:
        _inform(board, board.judging, round, model)
        _apply_grades(board, board.judging, human_grades.grades)
        state = board.judging.state(before=before)
        if round.is_open:
            _note(round, state)
        if round.order == Round.Order.DECISIVE and round.offers_items:
            row.front = _reorder_front(round, board, board.judging, row.front)
    share = 1.0 if round.order == Round.Order.RANDOM else round.uniform_share
    judged = [board.items[item] for item in human_grades.finished_items if item in board.items]
    row.sample_size, row.sampled_from = len(sample_of(board.sample, judged, share=share)), len(board.sample)
    index = None if board.question.axes is None else evidence.find_vector_index(runs)
    row.evidence = {"index": str(index or ""), "model": model.name}
    row.state = None if state is None else state.as_record()
    row.grades, row.mark, row.computed_at = human_grades.count, mark, timezone.now()
    row.save(update_fields=changed)
    return row


def load_runs(round: Round) -> list[Run]:
    """Return the runs of a round, in the order in which its state numbers them."""
    runs = round.runs.select_related("benchmark", "index__chunk_set").order_by("-benchmark__created_at", "run_order")
    return list(runs.defer("config", "provenance", "timing", "warnings"))


def hash_basis(round: Round, runs: Sequence[Run]) -> str:
    """Return a hash that changes when the rankings or the existing judgments of a round change."""
    of_runs = [(str(run.pk), run.status, run.failed_queries, str(run.completed_at)) for run in runs]
    return sha256(f"{round.mapping.resolved_at} {of_runs}".encode()).hexdigest()


def _load_board(round: Round, row: RoundState, basis: str, runs: Sequence[Run]) -> JudgingBoard:
    """Return the board of a round from this process's cache, which drops the least recently used beyond MAX_CACHED."""
    with _guard:
        board = _boards.get(round.pk)
    if board is None or board.basis != basis:
        board = _build_board(round, row, basis, runs)
    with _guard:
        _boards[round.pk] = board
        _boards.move_to_end(round.pk)
        while len(_boards) > MAX_CACHED:
            _boards.popitem(last=False)
    return board


def _build_board(round: Round, row: RoundState, basis: str, runs: Sequence[Run]) -> JudgingBoard:
    question, items = unpack(bytes(row.board), round) if row.basis == basis and row.board else _read(round, runs)
    judging = None
    if question.pool.runs >= 2:
        with suppress(JudgingError):  # fewer than two queries that every run answered
            judging = question.build_judging()
    ids = {number: item for number, item in enumerate(items.tolist()) if item}
    numbers = {item: number for number, item in ids.items()}
    return JudgingBoard(basis, question, judging, numbers, ids, question.sample_order(question.find_holes()))


def _read(round: Round, runs: Sequence[Run]) -> tuple[Question, Numbers]:
    """Return the question of a round and the item id of each pair of its pool, 0 without one."""
    question, query_ids = load_question(round, runs)
    question = replace(question, axes=evidence.load_text_axes(question.pool, runs))
    rows = RoundItem.objects.filter(round=round).values_list("query_id", "document_id", "pk")
    index_of = {query: index for index, query in enumerate(query_ids)}
    numbers = question.pool.numbers
    items = np.zeros(question.pool.size, np.int64)
    for query, document, pk in rows:
        pair = Item(index_of.get(query, -1), document)
        if pair in numbers:  # a retry may change rankings
            items[numbers[pair]] = pk
    return question, items


def _inform(board: JudgingBoard, judging: Judging, round: Round, model: ModelEvidence) -> None:
    """Pass the grades of the model that is evidence to the judging, unless it has them."""
    if model == board.model:
        return
    model_grades = np.full(board.question.pool.size, np.nan)
    for item, grade in evidence.load_model_grades(round, model.name).items() if model.name else ():
        if item in board.items:
            model_grades[board.items[item]] = grade
    judging.inform(model_grades if model.name else None)
    board.model = model


def _apply_grades(board: JudgingBoard, judging: Judging, grades: dict[int, int]) -> None:
    """Apply added, changed and removed grades to the model."""
    grades = {item: grade for item, grade in grades.items() if item in board.items}
    for item in board.taken.keys() - grades.keys():
        judging.grade(board.find_pair(item), None)
        del board.taken[item]
    for item, grade in grades.items():
        if board.taken.get(item) != grade:
            judging.grade(board.find_pair(item), grade)
            board.taken[item] = grade


def _note(round: Round, state: State) -> None:
    """Store whether the question is settled. If no pair is unjudged, judging continues: only second gradings remain."""
    if state.is_settled != (round.settled_at is not None) and (state.unjudged or not state.is_settled):
        round.settled_at = timezone.now() if state.is_settled else None
        Round.objects.filter(pk=round.pk, state=Round.State.OPEN).update(settled_at=round.settled_at)


def _reorder_front(round: Round, board: JudgingBoard, judging: Judging, before: list[int]) -> list[int]:
    """Move the next items of the decisive order to the front of the waiting ones, and return them.

    They are those with the greatest weights, and the uniform share. A calibration sample, with which the uniform sample
    begins, comes first only in a settled round that goes on: a model's grades are evidence without it. `before` is the
    previous front; an equal one is left in place. Locked slots are skipped, so this never waits.
    """
    slots = Slot.objects.filter(round=round)
    claimed_items = slots.filter(Q(done=True) | Q(until__gte=Now())).values_list("item_id", flat=True)
    claimed_numbers = {board.items[item] for item in claimed_items if item in board.items}
    sample = evidence.load_sample(round) if round.settled_at else ()
    calibrating = np.array([board.items[item] for item in sample if item in board.items], np.int64)
    primary = np.concatenate([calibrating, order_by_weight(judging.compute_weights())])
    coming = upcoming(primary, board.sample, claimed_numbers, share=round.uniform_share)
    front = [board.ids[number] for number in islice((number for number in coming if number in board.ids), FRONT_SIZE)]
    if front == before:
        return front
    first = slots.aggregate(least=Min("place"))["least"] or 0
    position_of = {item: first - len(front) + index for index, item in enumerate(front)}
    moved = list(slots.filter(item__in=front, done=False).select_for_update(skip_locked=True))
    for slot in moved:
        slot.place = position_of[slot.item_id]
    Slot.objects.bulk_update(moved, ["place"])
    return front
