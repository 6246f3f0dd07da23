"""Consensus: what the human grades of an item say together."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from apps.judging.models import Grade, Round
from benchbench.ir.judging.consensus import consensus


@dataclass(frozen=True, slots=True)
class Agreed:
    """What is known of an item: its grade, or that its grades are split evenly and somebody must adjudicate."""

    item_id: int
    grade: int | None
    split: bool
    grades: tuple[Grade, ...]


def agreed_of(round: Round) -> dict[int, Agreed]:
    """Return by item id what the human grades of each item that has one say. One query.

    The truth is their median; an adjudication decides. An even split, whose two middle grades differ, has no grade
    before somebody adjudicates it.
    """
    rows = Grade.objects.filter(item__round=round, source=Grade.Source.HUMAN, kind=Grade.Kind.GRADE)
    by_item: dict[int, list[Grade]] = defaultdict(list)
    for row in rows.order_by("item", "adjudicates", "judge_name"):
        by_item[row.item_id].append(row)
    return {item_id: agreed(item_id, grades) for item_id, grades in by_item.items()}


def agreed(item_id: int, grades: Sequence[Grade]) -> Agreed:
    """Return what the human grades of one item say."""
    for row in grades:
        if row.adjudicates:
            return Agreed(item_id, row.grade, False, tuple(grades))
    median = consensus([row.grade for row in grades if row.grade is not None])
    return Agreed(item_id, None if median.grade is None else int(median.grade), median.split is not None, tuple(grades))
