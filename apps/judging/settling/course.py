"""Course of a round: what was settled after how many of its grades, from the grades that stand now."""

from collections.abc import Sequence
from dataclasses import dataclass

from apps.judging.models import Round
from apps.judging.settling.consensus import agreed_of
from apps.judging.settling.deciding import desk_of
from benchbench.ir.judging.state import MoreGrades

MOST_POINTS = 12


@dataclass(frozen=True, slots=True)
class Point:
    """The state after `grades` items had a grade: of the likeliest verdict the probability, and of the pairs of runs
    the share that is settled at 95 %, both 0 to 1. Before there are grades enough to say (`State.reason`) it is None.
    """

    grades: int
    probability: float | None
    settled: float | None


@dataclass(frozen=True, slots=True)
class Course:
    """The points of a round, in the order of its grades, and the forecast of its last state."""

    points: Sequence[Point]
    more: MoreGrades


def course_of(round: Round) -> Course | None:
    """Return the course of a round; None for one that compares nothing, or has no grade.

    Grades that stand are taken in anew, in the order in which they came: an item with the last of its grades. Costs a
    state for each of at most MOST_POINTS points, without bounds.
    """
    known = [agreed for agreed in agreed_of(round).values() if agreed.grade is not None]
    desk = desk_of(round) if known else None
    if desk is None or (judging := desk.judging) is None:
        return None
    known.sort(key=lambda agreed: max(row.graded_at for row in agreed.grades))
    given = [(desk.pair(agreed.item_id), agreed.grade) for agreed in known if agreed.item_id in desk.items]
    points, taken, state = [], 0, judging.state(bounds=False)
    for count in _counts(len(given)):
        for item, grade in given[taken:count]:
            judging.grade(item, grade)
        taken, state = count, judging.state(bounds=False)
        says = state.reason is None
        share = sum(pair.settled for pair in state.pairs) / len(state.pairs)
        points.append(Point(count, state.probability if says else None, share if says else None))
    return Course(points, state.more)


def _counts(grades: int) -> list[int]:
    """Return after how many grades there is a point: evenly apart, the last after all."""
    points = min(grades, MOST_POINTS)
    return [grades * place // points for place in range(1, points + 1)]
