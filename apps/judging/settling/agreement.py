"""Agreement of the judges of a round: alpha of all, each pair's kappa and confusion, each judge's shift."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import numpy as np

from apps.judging.models import Grade, Round
from apps.judging.scales import list_grades
from benchbench.ir.judging.agreement import alpha, confusion, shifts


@dataclass(frozen=True)
class PairAgreementReport:
    """Agreement of two judges on the items that both graded."""

    first: str
    second: str
    shared: int
    kappa: Annotated[float | None, "Cohen's, unweighted; null where nothing could differ."]
    scale: list[int]
    counts: list[list[int]]
    items: Annotated[list[list[list[int]]], "The ids behind the counts."]


@dataclass(frozen=True)
class ShiftReport:
    """Mean difference between a judge's grades and those of the other judges of the same items."""

    judge: str
    mean: float | None
    items: int


@dataclass(frozen=True)
class AgreementReport:
    """Agreement of the judges of a round. Adjudications do not count."""

    alpha: Annotated[float | None, "Krippendorff's, ordinal; null: nothing could differ."]
    alpha_low: Annotated[float | None, "95 %; null below 30 shared items."]
    alpha_high: float | None
    shared: Annotated[int, "Items that two judges or more graded."]
    shifts: list[ShiftReport]
    pairs: list[PairAgreementReport]


def compute_agreement(round: Round) -> AgreementReport:
    """Return the agreement of the human judges of a round. One query."""
    rows = Grade.objects.filter(
        item__round=round, source=Grade.Source.HUMAN, kind=Grade.Kind.GRADE, adjudicates=False
    ).values_list("judge_name", "item_id", "grade")
    grades = list(rows)
    judges = sorted({name for name, _, _ in grades})
    items = sorted({item for _, item, _ in grades})
    matrix = np.full((len(judges), len(items)), np.nan)
    row_of, column_of = ({key: index for index, key in enumerate(keys)} for keys in (judges, items))
    for name, item, grade in grades:
        matrix[row_of[name], column_of[item]] = grade
    scale = list_grades(round.scale)
    of_all = alpha(matrix, seed=round.seed & 0xFFFF_FFFF)
    return AgreementReport(
        alpha=of_all.value,
        alpha_low=of_all.interval.low if of_all.interval else None,
        alpha_high=of_all.interval.high if of_all.interval else None,
        shared=of_all.shared,
        shifts=[
            ShiftReport(judge, shift.mean, shift.items) for judge, shift in zip(judges, shifts(matrix), strict=True)
        ],
        pairs=[_compare_pair(judges, matrix, items, scale, *pair) for pair in combinations(range(len(judges)), 2)],
    )


def _compare_pair(
    judges: Sequence[str],
    matrix: np.ndarray,
    items: Sequence[int],
    scale: list[int],
    first: int,
    second: int,
) -> PairAgreementReport:
    cells: list[list[list[int]]] = [[[] for _ in scale] for _ in scale]
    for column in np.flatnonzero(~np.isnan(matrix[[first, second]]).any(axis=0)).tolist():
        i, j = (scale.index(matrix[row, column]) for row in (first, second))
        cells[i][j].append(items[column])
    both = confusion(matrix[first], matrix[second], tuple(map(float, scale)))
    return PairAgreementReport(
        judges[first], judges[second], both.shared, both.kappa, scale, both.counts.tolist(), cells
    )
