"""Agreement of the judges of a round: alpha of all, each pair's kappa and confusion, each judge's shift."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from apps.judging.models import Grade, Round
from apps.judging.scales import grades_of
from benchbench.ir.judging.agreement import Alpha, Confusion, Shift, alpha, confusion, shifts


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How two judges graded what both graded. `items[i][j]`: those with grade i of the first and j of the second."""

    first: str
    second: str
    confusion: Confusion
    items: list[list[list[int]]]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of a round's judges, by name in the order of `judges`."""

    judges: list[str]
    alpha: Alpha | None
    shifts: list[Shift]
    pairs: list[PairAgreement]


def agreement_of(round: Round) -> Agreement:
    """Return how far the human judges of a round agree. One query. Adjudications are no judge's grades."""
    rows = Grade.objects.filter(
        item__round=round, source=Grade.Source.HUMAN, kind=Grade.Kind.GRADE, adjudicates=False
    ).values_list("judge_name", "item_id", "grade")
    given = list(rows)
    judges = sorted({name for name, _, _ in given})
    items = sorted({item for _, item, _ in given})
    if not judges:
        return Agreement([], None, [], [])
    matrix = np.full((len(judges), len(items)), np.nan)
    row_of, column_of = ({key: place for place, key in enumerate(keys)} for keys in (judges, items))
    for name, item, grade in given:
        matrix[row_of[name], column_of[item]] = grade
    scale = tuple(map(float, grades_of(round.scale)))
    return Agreement(
        judges,
        alpha(matrix, seed=round.seed & 0xFFFF_FFFF) if len(judges) > 1 else None,
        list(shifts(matrix)),
        [_pair(judges, matrix, items, scale, *pair) for pair in combinations(range(len(judges)), 2)],
    )


def _pair(
    judges: Sequence[str],
    matrix: np.ndarray,
    items: Sequence[int],
    scale: tuple[float, ...],
    first: int,
    second: int,
) -> PairAgreement:
    cells: list[list[list[int]]] = [[[] for _ in scale] for _ in scale]
    for column in np.flatnonzero(~np.isnan(matrix[[first, second]]).any(axis=0)).tolist():
        i, j = (scale.index(matrix[row, column]) for row in (first, second))
        cells[i][j].append(items[column])
    told = confusion(matrix[first], matrix[second], scale)
    return PairAgreement(judges[first], judges[second], told, cells)
