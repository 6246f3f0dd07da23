"""Timed jobs of schedules: starts, ends and notices, each derived from the row that holds its time."""

from collections.abc import Iterable
from typing import Any

from django.db.models import F, Q, QuerySet

from apps.operations.models import Status
from apps.records.models import Notice, Repeat, Schedule


def filter_ended() -> QuerySet[Repeat]:
    """Return the repeats whose benchmark has ended, perhaps again after a retry, without a result of that end."""
    ended = Repeat.objects.filter(benchmark__completed_at__isnull=False).exclude(benchmark__status__in=Status.active())
    return ended.filter(Q(ended_at=None) | ~Q(ended_at=F("benchmark__completed_at")))


def list_starts() -> Iterable[tuple[object, Any]]:
    return Schedule.objects.filter(next_run__isnull=False).order_by().values_list("pk", "next_run")


def list_notices() -> Iterable[tuple[object, Any]]:
    return Notice.objects.filter(due_at__isnull=False).order_by().values_list("pk", "due_at")


def list_ends() -> Iterable[tuple[object, Any]]:
    return filter_ended().order_by().values_list("pk", "benchmark__completed_at")
