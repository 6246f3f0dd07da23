"""Consensus: the grade of an item from all its human grades."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np

from apps.judging.models import Grade, Round
from benchbench.ir.judging.state import RULES


@dataclass(frozen=True, slots=True)
class Consensus:
    """The consensus on an item: its grade, or that its grades are split evenly and need adjudication."""

    item_id: int
    grade: int | None
    split: bool
    grades: tuple[Grade, ...]


def load_consensus(round: Round) -> dict[int, Consensus]:
    """Return the consensus by item id for each item with a human grade. One query.

    The truth is their median; an adjudication overrides it. An even split, whose two middle grades differ, has no grade
    before adjudication.
    """
    rows = Grade.objects.filter(item__round=round, source=Grade.Source.HUMAN, kind=Grade.Kind.GRADE)
    by_item: dict[int, list[Grade]] = defaultdict(list)
    for row in rows.order_by("item__place", "adjudicates", "judge_name"):
        by_item[row.item_id].append(row)
    return {item_id: compute_consensus(item_id, grades) for item_id, grades in by_item.items()}


def compute_consensus(item_id: int, grades: Sequence[Grade]) -> Consensus:
    """Return the consensus of the human grades of one item."""
    grade, split = _compute_truth([(row.grade, row.adjudicates) for row in grades if row.grade is not None])
    return Consensus(item_id, grade, split, tuple(grades))


@dataclass(frozen=True)
class HumanGrades:
    """People's grades in a round so far, without the judges' names.

    `grades` are those on which they agree, by item id. `split`: items on which they are split. `unsure`: items without
    a grade that some judge was unsure of. `count`: the number of grades, with adjudications.
    """

    grades: dict[int, int]
    split: list[int]
    unsure: list[int]
    count: int

    @cached_property
    def finished_items(self) -> set[int]:
        """Ids of the items that people are done with."""
        return {*self.grades, *self.unsure}

    def compute_mark(self, basis: str) -> str:
        """Return a hash of these grades, `basis` and the rules: a state is current if it has the current mark."""
        pairs = sorted([*self.grades.items(), *((item, -1) for item in self.unsure)])
        return sha256(f"{RULES} {basis} {self.count} ".encode() + np.array(pairs, np.int64).tobytes()).hexdigest()


def load_human_grades(round: Round) -> HumanGrades:
    """Return people's grades in a round. One query, which reads numbers only."""
    rows = Grade.objects.filter(item__round=round, source=Grade.Source.HUMAN).exclude(kind=Grade.Kind.SKIP).order_by()
    pairs_by_item: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    unsure, count = set(), 0
    for item_id, grade, adjudicates in rows.values_list("item_id", "grade", "adjudicates"):
        if grade is None:
            unsure.add(item_id)
        else:
            pairs_by_item[item_id].append((grade, adjudicates))
            count += 1
    truths = {item_id: _compute_truth(grades) for item_id, grades in pairs_by_item.items()}
    return HumanGrades(
        {item_id: grade for item_id, (grade, _) in truths.items() if grade is not None},
        [item_id for item_id, (_, split) in truths.items() if split],
        sorted(unsure - pairs_by_item.keys()),
        count,
    )


def _compute_truth(pairs: Sequence[tuple[int, bool]]) -> tuple[int | None, bool]:
    """Return the median of an item's (grade, adjudicates) pairs, and whether they are split.

    An adjudication decides. For an even number of grades the two in the middle must be equal, because their mean may be
    a grade that no judge gave.
    """
    if len(pairs) == 1:
        return pairs[0][0], False
    for grade, adjudicates in pairs:
        if adjudicates:
            return grade, False
    ordered = sorted(grade for grade, _ in pairs)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return (low, False) if low == high else (None, True)
