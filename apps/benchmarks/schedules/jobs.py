"""Timed jobs of schedules: starts, ends and notices, each derived from the row that holds its time.

RQ's scheduler gets a job when its row is written, and from the sweep if Redis has lost it.
"""

from collections.abc import Iterator
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet

from apps.benchmarks.models import Notice, Repeat, Schedule
from apps.operations import queueing
from apps.operations.models import Status
from apps.operations.timing import TimedJob, schedule


def filter_ended() -> QuerySet[Repeat]:
    """Return the repeats whose benchmark has ended, perhaps again after a retry, without a result of that end."""
    ended = Repeat.objects.filter(benchmark__completed_at__isnull=False)
    ended = ended.exclude(benchmark__status__in=Status.active())
    return ended.filter(Q(ended_at=None) | ~Q(ended_at=F("benchmark__completed_at")))


def plan_start(row: Schedule) -> None:
    """Schedule the next start once the transaction has committed."""
    jobs = [TimedJob(queueing.START_REPEAT, str(row.pk), row.next_run)] if row.next_run else []
    transaction.on_commit(lambda: schedule(*jobs))


def plan_end(benchmark_id: UUID) -> None:
    """Schedule the comparison of a benchmark that ended, if a schedule started it, once that is committed."""
    transaction.on_commit(lambda: schedule(*_list_ends(filter_ended().filter(benchmark=benchmark_id))), robust=True)


def plan_notice(row: Notice) -> None:
    """Schedule the next attempt to send a notice once the transaction has committed."""
    jobs = [TimedJob(queueing.SEND_NOTICE, str(row.pk), row.due_at)] if row.due_at else []
    transaction.on_commit(lambda: schedule(*jobs))


def list_timed_jobs() -> Iterator[TimedJob]:
    """Yield every job that waits for its time. Three queries."""
    starts = Schedule.objects.filter(enabled=True).order_by().values_list("pk", "next_run")
    notices = Notice.objects.filter(due_at__isnull=False).order_by().values_list("pk", "due_at")
    yield from (TimedJob(queueing.START_REPEAT, str(pk), at) for pk, at in starts if at)
    yield from (TimedJob(queueing.SEND_NOTICE, str(pk), at) for pk, at in notices if at)
    yield from _list_ends(filter_ended())


def _list_ends(repeats: QuerySet[Repeat]) -> list[TimedJob]:
    rows = repeats.order_by().values_list("pk", "benchmark__completed_at")
    return [TimedJob(queueing.END_REPEAT, str(pk), at) for pk, at in rows if at]
