"""Consensus: what the human grades of an item say together."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np

from apps.judging.models import Grade, Round


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
    grade, split = _truth([(row.grade, row.adjudicates) for row in grades if row.grade is not None])
    return Agreed(item_id, grade, split, tuple(grades))


@dataclass(frozen=True)
class Said:
    """What people said in a round so far, without who said it.

    `grades` are those that they agree on, by item id; `split` the items that they are split on; `unsure` those of which
    somebody could not tell and nobody gave a grade. `count` is how many grades they gave, adjudications too.
    """

    grades: dict[int, int]
    split: list[int]
    unsure: list[int]
    count: int

    @cached_property
    def done(self) -> set[int]:
        """The items that people are done with."""
        return {*self.grades, *self.unsure}

    def mark(self, basis: str) -> str:
        """Return a hash of all this and of `basis`: a state is that of now if it has the mark of now."""
        pairs = sorted([*self.grades.items(), *((item, -1) for item in self.unsure)])
        return sha256(f"{basis} {self.count} ".encode() + np.array(pairs, np.int64).tobytes()).hexdigest()


def said_in(round: Round) -> Said:
    """Return what people said in a round. One query, of numbers alone."""
    rows = Grade.objects.filter(item__round=round, source=Grade.Source.HUMAN).exclude(kind=Grade.Kind.SKIP).order_by()
    given: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    unsure, count = set(), 0
    for item_id, grade, adjudicates in rows.values_list("item_id", "grade", "adjudicates"):
        if grade is None:
            unsure.add(item_id)
        else:
            given[item_id].append((grade, adjudicates))
            count += 1
    truths = {item_id: _truth(grades) for item_id, grades in given.items()}
    return Said(
        {item_id: grade for item_id, (grade, _) in truths.items() if grade is not None},
        [item_id for item_id, (_, split) in truths.items() if split],
        sorted(unsure - given.keys()),
        count,
    )


def _truth(given: Sequence[tuple[int, bool]]) -> tuple[int | None, bool]:
    """Return the median of an item's grades, each with whether it adjudicates; and whether they are split.

    An adjudication decides. Of an even number the two grades in the middle must be equal: their mean is a grade that
    nobody gave.
    """
    if len(given) == 1:
        return given[0][0], False
    for grade, adjudicates in given:
        if adjudicates:
            return grade, False
    ordered = sorted(grade for grade, _ in given)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return (low, False) if low == high else (None, True)
