"""Timed jobs of schedules: starts, ends and notices, each derived from the row that holds its time."""

from collections.abc import Iterator

from django.db.models import F, Q, QuerySet

from apps.benchmarks.models import Notice, Repeat, Schedule
from apps.operations import queueing
from apps.operations.models import Status
from apps.operations.timing import TimedJob


def filter_ended() -> QuerySet[Repeat]:
    """Return the repeats whose benchmark has ended, perhaps again after a retry, without a result of that end."""
    ended = Repeat.objects.filter(benchmark__completed_at__isnull=False).exclude(benchmark__status__in=Status.active())
    return ended.filter(Q(ended_at=None) | ~Q(ended_at=F("benchmark__completed_at")))


def list_timed_jobs() -> Iterator[TimedJob]:
    """Yield every job that waits for its time. Three queries."""
    kinds: list[tuple[str, QuerySet, str]] = [
        (queueing.START_REPEAT, Schedule.objects.filter(next_run__isnull=False), "next_run"),
        (queueing.SEND_NOTICE, Notice.objects.filter(due_at__isnull=False), "due_at"),
        (queueing.END_REPEAT, filter_ended(), "benchmark__completed_at"),
    ]
    for name, rows, time in kinds:
        yield from (TimedJob(name, str(pk), at) for pk, at in rows.order_by().values_list("pk", time))
