"""Progress of a round: how much is graded, and each judge's pace and time left."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.db.models import Count, Max, Q
from django.utils import timezone

from apps.judging.models import Grade, Round, Slot

PACE_OF = 50  # the latest grades of a judge, which tell the pace
ACTIVE = timedelta(minutes=30)  # who graded within it is at work


@dataclass(frozen=True, slots=True)
class JudgeProgress:
    """What one judge did. `pace` is the median of the seconds of the latest grades, `left` the seconds to the end.

    Both are None where nobody can tell. The time left is that of an equal share among those at work.
    """

    user: Any
    graded: int
    skipped: int
    cant_tell: int
    pace: float | None
    left: float | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of a round is done: of the gradings that it wants, one a judge and item."""

    done: int
    wanted: int
    judges: list[JudgeProgress]


def progress_of(round: Round) -> Progress:
    """Return the progress of a round. Three queries, and one for each judge who graded."""
    done = Slot.objects.filter(round=round, done=True).count()
    wanted = Slot.objects.filter(round=round).count()
    if round.budget is not None and round.item_count > round.budget:
        wanted = max(done, round.budget)
    counted = _counts(round)
    now = timezone.now()
    at_work = sum(row["last"] is not None and now - row["last"] < ACTIVE for row in counted.values()) or len(counted)
    judges = []
    for user in round.judges.order_by("username"):
        row = counted.get(user.pk, {"graded": 0, "skipped": 0, "cant_tell": 0, "last": None})
        pace = _pace(round, user) if user.pk in counted else None
        left = None if pace is None else pace * -(-(wanted - done) // max(at_work, 1))
        judges.append(
            JudgeProgress(user, row["graded"], row["skipped"], row["cant_tell"], pace, left, last=row["last"])
        )
    return Progress(done, wanted, judges)


def _counts(round: Round) -> dict[int, dict[str, Any]]:
    kinds = {"graded": Grade.Kind.GRADE, "skipped": Grade.Kind.SKIP, "cant_tell": Grade.Kind.CANT_TELL}
    totals: Any = {name: Count("pk", filter=Q(kind=kind)) for name, kind in kinds.items()}
    rows: Any = Grade.objects.filter(item__round=round, adjudicates=False, source=Grade.Source.HUMAN).order_by()
    return {row["judge"]: row for row in rows.values("judge").annotate(**totals, last=Max("graded_at"))}


def _pace(round: Round, user: Any) -> float | None:
    rows = Grade.objects.filter(item__round=round, judge=user, adjudicates=False, seconds__isnull=False)
    seconds: list[Any] = list(
        rows.exclude(kind=Grade.Kind.SKIP).order_by("-graded_at").values_list("seconds", flat=True)[:PACE_OF]
    )
    return median(seconds) if seconds else None
