"""The start of a schedule's benchmark: when it is due, once however many schedulers there are, or on request."""

import logging
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from apps.execution.defining.creating import clone
from apps.execution.launching import launch
from apps.operations.models import Priority, Status
from apps.operations.workers.limits import limited_transaction
from apps.records.models import Benchmark, Repeat, Schedule
from apps.retrieval.models import Index
from apps.verdicts.schedules.times import find_next_time
from benchbench.access import may_view, usable
from benchbench.database.failures import DeadlockError, LockedError, find_failure, read_again, was_ended
from benchbench.errors import BenchbenchError, ConflictError, error_text

log = logging.getLogger(__name__)
SKIPPED = "Skipped,"
NEEDED = ("benchmarks.add_benchmark", "benchmarks.change_benchmark")  # permissions of the owner


def start_due(schedule_id: str) -> Repeat | None:
    """Start the benchmark of a schedule if it is due. Return the repeat, which has the reason if it could not start.

    The transaction that creates the benchmark advances `next_run` by a conditional UPDATE, so of several workers one
    starts it. Times that passed while no worker ran count as one. Raises HeldError if the row stays locked.
    """
    now = timezone.now()
    with limited_transaction():
        due = Schedule.objects.filter(pk=schedule_id, enabled=True, next_run__lte=now)
        schedule = due.select_related("owner", "benchmark__mapping__collection").first()
        if schedule is None or schedule.next_run is None:
            return None
        at, schedule.next_run = schedule.next_run, find_next_time(schedule.cron, now)
        if not due.filter(next_run=at, cron=schedule.cron).update(next_run=schedule.next_run):
            return None  # another worker started it, or a user changed it
        return _repeat(schedule, at)


@transaction.atomic
def start_now(schedule: Schedule) -> Repeat:
    """Start the benchmark of a schedule for its owner at once. Raises ConflictError if it cannot start."""
    locked = read_again(Schedule.objects.select_for_update(of=("self",)).select_related("owner"), schedule.pk)
    repeat = _repeat(locked, timezone.now())
    if repeat.problem:
        raise ConflictError(repeat.problem)
    return repeat


def _repeat(schedule: Schedule, due_at: datetime) -> Repeat:
    """Start the benchmark, or store why it cannot start: that does not stop later times."""
    benchmark, problem = None, _find_obstacle(schedule)
    if not problem:
        try:
            benchmark = _start(schedule, due_at)
        except Exception as error:
            if was_ended(error) or isinstance(find_failure(error), DeadlockError | LockedError):
                raise
            if not isinstance(error, BenchbenchError):
                log.exception("Could not start the benchmark of the schedule %s.", schedule)
            problem = hide_choices(error_text(error))
    return Repeat.objects.create(schedule=schedule, due_at=due_at, benchmark=benchmark, problem=problem)


def hide_choices(problem: str) -> str:
    """Return a refusal without the names to choose from, which its owner sees, but perhaps not all of its team."""
    sentence, listing, _ = problem.partition("; choose one of ")
    return f"{sentence}." if listing else problem


def find_refusal(schedule: Schedule) -> str:
    """Return why the owner of a schedule may not start its benchmark, as a sentence; "" if the owner may."""
    owner = schedule.owner
    made_from = (schedule.benchmark, schedule.benchmark.mapping)
    if not owner or (owner.is_active and owner.has_perms(NEEDED) and all(may_view(row, owner) for row in made_from)):
        return ""
    return (
        f"Its owner {owner.get_username()} is inactive or may not start this benchmark: give the schedule to a user "
        "who may add and change benchmarks, and sees this one and its mapping."
    )


def _find_obstacle(schedule: Schedule) -> str:
    """Return why the schedule may not start a benchmark now, as a sentence; "" if it may."""
    if refusal := find_refusal(schedule):
        return refusal
    last = schedule.repeats.filter(benchmark__status__in=Status.active()).select_related("benchmark").first()
    return f"{SKIPPED} because its benchmark “{last.benchmark}” is still running." if last else ""


@transaction.atomic
def _start(schedule: Schedule, due_at: datetime) -> Benchmark:
    template, owner = schedule.benchmark, schedule.owner
    indexes = None
    if not schedule.newest_indexes:
        visible_indexes = usable(Index.objects.filter(runs__benchmark=template), owner).values("pk")
        runs = template.runs.filter(index__in=visible_indexes).select_related("index__chunk_set", "index__collection")
        indexes = {run.configuration.index: run.index for run in runs if run.index}
    name = f"{schedule.name[:180]}, {timezone.localtime(due_at):%Y-%m-%d %H:%M}"
    benchmark = clone(template, name=name, owner=owner, indexes=indexes)
    if schedule.team_id:
        Benchmark.objects.filter(pk=benchmark.pk).update(team=schedule.team_id)
    launch(benchmark, by=owner, priority=Priority.LOW)
    return benchmark
