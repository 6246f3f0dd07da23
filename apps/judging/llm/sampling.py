"""Calibration sample of a round: a frozen uniform sample of its pairs, which people judge and models judge."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from apps.judging.errors import RoundError, RoundStateError
from apps.judging.judges import require_lead, require_open
from apps.judging.models import CalibrationItem, Grade, Round, RoundItem
from apps.judging.settling.consensus import agreed_of
from apps.judging.settling.deciding import question_of
from benchbench.database.rereading import read_again
from benchbench.decimals import counted
from benchbench.ir.judging.calibration import LEAST, MOST


@dataclass(frozen=True, slots=True)
class Sampled:
    """A pair of the sample that people are done with. `grade` is None where they could not tell."""

    item_id: int
    query_id: int
    document_id: int
    grade: int | None


@dataclass(frozen=True, slots=True)
class Sample:
    """A round's calibration sample: its size, and of its order the beginning that people are done with.

    The order is random, so that a beginning of it is a uniform sample too; what is graded further on waits for those
    before it.
    """

    size: int
    done: list[Sampled]

    @property
    def waiting(self) -> int:
        return self.size - len(self.done)


@transaction.atomic
def draw_sample(round: Round, size: int, by: Any) -> int:
    """Freeze the first `size` pairs of a round's random order as its calibration sample; return how many.

    Of a smaller pool it is every pair. People judge them as any items of the round. `by` leads the round; None is
    whoever runs commands. Raises RoundError for a size outside 30 to 500, and pairs that are no items of the round;
    RoundStateError where there is a sample.
    """
    if by is not None:
        require_lead(round, by)
    round = read_again(
        Round.objects.select_for_update(of=("self",)).select_related("mapping", "dataset_version"), round.pk
    )
    require_open(round)
    if drawn := round.calibration_items.count():
        raise RoundStateError(f'The calibration sample of "{round}" is drawn, {counted(drawn, "pair")}: it is frozen.')
    if not LEAST <= size <= MOST:
        raise RoundError(f"A calibration sample has {LEAST} to {MOST} pairs, not {size:,}.", field="size")
    items = _first_items(round, size)
    CalibrationItem.objects.bulk_create(
        CalibrationItem(round=round, item_id=item, place=place) for place, item in enumerate(items, start=1)
    )
    return len(items)


def sample_of(round: Round) -> Sample:
    """Return the calibration sample of a round as people judged it so far. Three queries."""
    rows = list(
        CalibrationItem.objects.filter(round=round)
        .order_by("place")
        .values_list("item_id", "item__query_id", "item__document_id")
    )
    known = agreed_of(round)
    kinds = Grade.objects.filter(item__round=round, source=Grade.Source.HUMAN, kind=Grade.Kind.CANT_TELL)
    unsure = set(kinds.values_list("item_id", flat=True))
    done: list[Sampled] = []
    for item_id, query_id, document_id in rows:
        agreed = known.get(item_id)
        if (agreed is None and item_id not in unsure) or (agreed is not None and agreed.split):
            break
        done.append(Sampled(item_id, query_id, document_id, agreed.grade if agreed else None))
    return Sample(len(rows), done)


def _first_items(round: Round, size: int) -> Sequence[int]:
    """Return the items of the first pairs of the random order. Raises RoundError where they are no items."""
    question, query_ids = question_of(round, list(round.runs.order_by("benchmark", "run_order")))
    order = question.sample_order(question.holes())
    rows = RoundItem.objects.filter(round=round).values_list("query_id", "document_id", "pk")
    ids = {(query, document): pk for query, document, pk in rows}
    pairs = [question.pool.item(number) for number in order[:size].tolist()]
    items = [ids.get((query_ids[pair.query], int(str(pair.document)))) for pair in pairs]
    if None in items:
        raise RoundError(
            f"Only the first {items.index(None):,} pairs of the random order are items of the round, whose budget left "
            "the others out: open a round with a greater budget or uniform share, or take a smaller sample.",
            field="size",
        )
    return [item for item in items if item is not None]
