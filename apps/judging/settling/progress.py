"""Progress of a round: how much is graded, and each judge's pace and time left."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Annotated, Any

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Count, Max, Q
from django.utils import timezone

from apps.judging.models import Grade, Round, Slot
from benchbench.durations import estimate_by_pace

PACE_OF = 50  # latest grades of a judge that the pace is computed from
ACTIVE = timedelta(minutes=30)  # a judge who graded within it is at work


@dataclass(frozen=True)
class JudgeReport:
    """Progress of a judge."""

    judge: str
    graded: int
    skipped: int
    cannot_judge: int
    seconds_per_item: Annotated[float | None, "Median of the latest 50."]
    remaining_seconds: Annotated[float | None, "To the end, in equal shares; null before five grades."]
    last_graded_at: datetime | None


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a round: gradings that are done and wanted, one per judge and item."""

    completed_gradings: int
    total_gradings: int
    judges: list[JudgeReport]


# One statement, because it runs with every grade.
OWN_PROGRESS = """
WITH own AS (
    SELECT kind, seconds, graded_at FROM judging_grade JOIN judging_rounditem item ON item.id = item_id
    WHERE judge_id = %(judge)s AND round_id = %(round)s AND NOT adjudicates AND kind <> 'skip'
), timed AS (
    SELECT seconds FROM own WHERE seconds IS NOT NULL ORDER BY graded_at DESC LIMIT %(pace_of)s
)
SELECT
    (SELECT count(*) FROM judging_slot WHERE round_id = %(round)s AND NOT done),
    (SELECT count(*) FROM own),
    (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FROM timed),
    (SELECT count(*) FROM timed),
    (
        SELECT count(*) FROM judging_round_judges judge WHERE round_id = %(round)s AND (
            SELECT graded_at FROM judging_grade JOIN judging_rounditem item ON item.id = item_id
            WHERE judge_id = judge.user_id AND item.round_id = %(round)s AND NOT adjudicates AND source = 'human'
            ORDER BY graded_at DESC LIMIT 1
        ) >= %(active)s
    )
"""


def count_progress(round: Round, judge: User) -> dict[str, Any]:
    """Return the progress of a round and of one judge: `mine` counts the judge's grades without skips. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            OWN_PROGRESS, {"round": round.pk, "judge": judge.pk, "pace_of": PACE_OF, "active": timezone.now() - ACTIVE}
        )
        waiting, mine, pace, timed, at_work = cursor.fetchone()
    completed = round.gradings - waiting
    total = compute_target(round, completed)
    return {
        "done": completed,
        "wanted": total,
        "mine": mine,
        "pace": pace,
        "left": estimate_by_pace(pace, timed, _share_out(total - completed, at_work)),
    }


def compute_target(round: Round, completed: int) -> int:
    """Return the number of gradings that a round asks for: a budget counts where it ends the round."""
    is_whole = round.budget is None or round.item_count <= round.budget
    return round.gradings if is_whole else max(completed, round.budget or 0)


def _share_out(gradings: int, at_work: int) -> int:
    """Return the gradings of each judge at work."""
    return -(-gradings // max(at_work, 1))


def compute_progress(round: Round) -> Progress:
    """Return the progress of a round. Three queries, plus one for each judge who graded."""
    completed = Slot.objects.filter(round=round, done=True).count()
    total = compute_target(round, completed)
    kinds = {"graded": Grade.Kind.GRADE, "skipped": Grade.Kind.SKIP, "cannot_judge": Grade.Kind.CANNOT_JUDGE}
    totals: Any = {name: Count("pk", filter=Q(kind=kind)) for name, kind in kinds.items()}
    rows: Any = Grade.objects.filter(item__round=round, adjudicates=False, source=Grade.Source.HUMAN).order_by()
    counted = {row["judge"]: row for row in rows.values("judge").annotate(**totals, last=Max("graded_at"))}
    now = timezone.now()
    at_work = sum(row["last"] is not None and now - row["last"] < ACTIVE for row in counted.values()) or len(counted)
    judges = []
    for user in round.judges.order_by("username"):
        row = counted.get(user.pk, {"graded": 0, "skipped": 0, "cannot_judge": 0, "last": None})
        seconds = _load_seconds(round, user) if user.pk in counted else []
        pace = median(seconds) if seconds else None
        left = estimate_by_pace(pace, len(seconds), _share_out(total - completed, at_work))
        numbers = row["graded"], row["skipped"], row["cannot_judge"]
        judges.append(JudgeReport(user.username, *numbers, pace, left, row["last"]))
    return Progress(completed, total, judges)


def count_by_query(round: Round) -> list[tuple[str, int, int]]:
    """Return the key of each query with its gradings that are done and wanted. One query."""
    slots = Slot.objects.filter(round=round).order_by("item__query__key").values_list("item__query__key")
    return list(slots.annotate(done_count=Count("pk", filter=Q(done=True)), wanted=Count("pk")))


def _load_seconds(round: Round, user: User) -> list[Any]:
    """Return the times of a judge's latest grades."""
    rows = Grade.objects.filter(item__round=round, judge=user, adjudicates=False, seconds__isnull=False)
    return list(rows.exclude(kind=Grade.Kind.SKIP).order_by("-graded_at").values_list("seconds", flat=True)[:PACE_OF])
