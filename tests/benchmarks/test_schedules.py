"""Benchmarks repeated on a schedule: their times, their starts by several schedulers, their results and turns."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import django_rq
import pytest
from croniter import croniter
from django.contrib.auth.models import Group, User
from django.db import connection
from django.utils import timezone

from apps.mappings.models import Mapping
from apps.operations import queueing
from apps.operations.models import Operation, Status
from apps.operations.timing import TimedJob, enqueue_due, list_timed_jobs, make_scheduler, schedule
from apps.operations.workers.jobs import name_function
from apps.operations.working import wait
from apps.records.models import Benchmark, GateOutcome, Notice, Repeat, Schedule
from apps.verdicts.schedules import starting
from apps.verdicts.schedules.repeats import end_repeat
from apps.verdicts.schedules.saving import save_schedule
from apps.verdicts.schedules.starting import start_due, start_now
from apps.verdicts.schedules.times import find_next_time, list_next_times
from benchbench.errors import BenchbenchError, ConflictError
from tests.benchmarks.gated import BEST, GOOD, POOR, make_gated, pinned, search
from tests.created import create_benchmark

RULES = "floors: {mrr: 0.6}\n"


def move_to(zone: str, settings: Any) -> None:
    settings.TIME_ZONE = zone
    timezone.get_default_timezone.cache_clear()


@pytest.fixture
def berlin(settings: Any) -> None:
    move_to("Europe/Berlin", settings)


def times(cron: str, after: str, number: int) -> list[str]:
    return [f"{time:%m-%d %H:%M}" for time in list_next_times(cron, datetime.fromisoformat(after), number)]


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("30 2 * * *", "2026-10-24T12:00+02:00", ["10-25 00:30", "10-26 01:30"]),  # 02:30 comes twice, and counts once
        ("0 * * * *", "2026-10-24T23:30+00:00", ["10-25 00:00", "10-25 02:00"]),
        ("30 2 * * *", "2027-03-27T12:00+01:00", ["03-28 01:30", "03-29 00:30"]),  # clocks skip 02:30
        ("0 3 * * 1-5", "2026-11-27T12:00+01:00", ["11-30 02:00", "12-01 02:00"]),
    ],
)
def test_times_follow_the_clocks_of_the_site(berlin, cron, after, expected):
    assert times(cron, after, 2) == expected


CHANGES = {  # days on which clocks change, forward and back
    "Europe/Berlin": ("2027-03-28", "2026-10-25"),
    "America/New_York": ("2027-03-14", "2026-11-01"),
    "Australia/Lord_Howe": ("2026-10-04", "2027-04-04"),  # by 30 minutes
    "Antarctica/Troll": ("2027-03-28", "2026-10-25"),  # by two hours
    "America/Santiago": ("2026-09-06", "2027-04-04"),  # at midnight
}


@pytest.mark.parametrize("cron", ["30 2 * * *", "10,35 2 * * *", "*/20 1-3 * * *", "*/7 * * * *", "30 0 * * *"])
@pytest.mark.parametrize(("zone", "day"), [(zone, day) for zone, days in CHANGES.items() for day in days])
def test_every_clock_time_comes_due_once(settings, cron, zone, day):
    """Whenever a worker starts that night: each minute of the clocks is its first moment, or as if they had waited."""
    move_to(zone, settings)
    midnight = datetime.fromisoformat(day)
    minutes = (midnight + timedelta(minutes=number) for number in range(-60, 36 * 60))
    matching = (minute for minute in minutes if croniter.match(cron, minute))
    expected = sorted({minute.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) for minute in matching})
    for number in range(0, 8 * 60, 17):
        start = midnight.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) + timedelta(minutes=number)
        assert find_next_time(cron, start) == next(time for time in expected if time > start)


@pytest.mark.parametrize(
    "cron", ["", "0 3 * *", "0 25 * * *", "0 0 30 2 *", "@daily", "* * * * * *", "R 3 * * *", "0 r(1-5) * * *"]
)
def test_cron_expressions_that_never_come_due_are_refused(cron):
    with pytest.raises(BenchbenchError, match="is not a cron expression"):
        find_next_time(cron, datetime.now(UTC))


def make_schedule(benchmark: Benchmark, **fields: Any) -> Schedule:
    """Return a schedule that is due."""
    values = {"name": "nightly", "cron": "0 3 * * *", **fields}
    stored = save_schedule(Schedule(benchmark=benchmark, owner=benchmark.owner, **values))
    Schedule.objects.filter(pk=stored.pk).update(next_run=timezone.now() - timedelta(days=3))
    stored.refresh_from_db()
    return stored


@pytest.fixture
def due(library: Mapping) -> Schedule:
    return make_schedule(create_benchmark(library, name="words", matrix={"search_modes": ["sparse"]}))


def test_missed_times_start_one_benchmark(due):
    before = timezone.now()
    repeat = start_due(str(due.pk))
    assert repeat
    assert repeat.benchmark
    assert start_due(str(due.pk)) is None
    due.refresh_from_db()
    assert due.next_run in {find_next_time(due.cron, moment) for moment in (before, timezone.now())}
    assert repeat.benchmark.status == Status.RUNNING or Benchmark.objects.get(pk=repeat.benchmark_id).operation
    assert Operation.objects.get(kind="benchmark").priority == "low"


def test_two_schedulers_start_one_benchmark(due):
    gate = threading.Barrier(2)

    def start() -> None:
        gate.wait()
        try:
            start_due(str(due.pk))
        finally:
            connection.close()

    both = [threading.Thread(target=start) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert due.repeats.count() == 1
    assert Benchmark.objects.count() == 2


def make_due(row: Schedule) -> None:
    Schedule.objects.filter(pk=row.pk).update(next_run=timezone.now())


def test_running_benchmark_skips_the_next_time_with_its_reason(due):
    first = start_due(str(due.pk))
    make_due(due)
    second = start_due(str(due.pk))
    assert first
    assert second
    assert first.benchmark
    assert second.benchmark is None
    assert "is still running" in second.problem
    with pytest.raises(ConflictError, match="is still running"):
        start_now(due)
    first.benchmark.refresh_from_db()
    wait(first.benchmark.operation)
    assert start_now(due).benchmark


def test_refused_start_does_not_stop_later_ones(due):
    due.benchmark.mapping.collection.indexes.update(status="failed")
    first = start_due(str(due.pk))
    assert first
    assert "has no ready index" in first.problem
    due.benchmark.mapping.collection.indexes.update(status="ready")
    make_due(due)
    second = start_due(str(due.pk))
    assert second
    assert second.benchmark


def test_an_inactive_owner_starts_nothing(due):
    owner = User.objects.create_user("bea", is_staff=True, is_superuser=True)
    Schedule.objects.filter(pk=due.pk).update(owner=owner)
    User.objects.update(is_active=False)
    repeat = start_due(str(due.pk))
    assert repeat
    assert repeat.problem.startswith("Its owner bea is inactive")
    assert Benchmark.objects.count() == 1


def test_scheduler_enqueues_due_jobs_and_replaces_a_dead_one(due):
    queue = django_rq.get_queue(queueing.SCHEDULES)
    queue.empty()
    one, second = make_scheduler(), make_scheduler()
    job = TimedJob(name_function(start_due), str(due.pk), due.next_run)
    later = TimedJob(name_function(start_due), str(due.pk), timezone.now() + timedelta(hours=1))
    schedule([job, later])
    try:
        enqueue_due(one)
        enqueue_due(second)
        assert queue.get_job_ids() == [job.id]
        assert second.acquired_locks == set()
        schedule([job, later])
        assert queue.get_job_ids() == [job.id], "it waits already"
        queue.empty()
        queue.scheduled_job_registry.remove(later.id)
        schedule(list_timed_jobs())
        one.release_locks()  # as after its minute
        enqueue_due(second)
        assert queue.get_job_ids() == [job.id]
    finally:
        one.release_locks()
        second.release_locks()
        queue.empty()


@pytest.fixture
def gated(db: None) -> Schedule:
    return make_schedule(search(make_gated(), GOOD, name="first"), rules=RULES)


def end_with(row: Schedule, *runs: list[int], **fields: Any) -> Repeat:
    """Return the repeat whose benchmark ended with runs of these ranks."""
    number = row.repeats.count() + 1
    benchmark = search(row.benchmark.mapping, *runs, name=f"night {number}", **fields)
    Benchmark.objects.filter(pk=benchmark.pk).update(completed_at=timezone.now())
    repeat = Repeat.objects.create(schedule=row, due_at=timezone.now(), benchmark=benchmark)
    end_repeat(str(repeat.pk))
    end_repeat(str(repeat.pk))  # a job may run twice
    repeat.refresh_from_db()
    row.refresh_from_db()
    return repeat


def test_gate_gives_a_notice_only_when_it_turns(gated):
    Schedule.objects.update(notify="team")
    nights = [GOOD, GOOD, POOR, POOR, BEST, POOR]
    repeats = [end_with(gated, ranks) for ranks in nights]
    assert [repeat.turned for repeat in repeats] == ["", "", "red", "", "green", "red"]
    assert [repeat.outcome for repeat in repeats] == ["passed", "passed", "failed", "failed", "passed", "failed"]
    assert list(Notice.objects.values_list("payload__state", flat=True)) == ["red", "green", "red"]
    assert [notice.due_at is None for notice in Notice.objects.all()] == [True, True, False], "only the last is true"
    assert GateOutcome.objects.count() == len(nights)
    first = Notice.objects.all()[0].payload
    assert first["schedule"]["name"] == "nightly"
    assert first["benchmark"]["name"] == "night 3"
    assert [check["name"] for check in first["failed"]] == ["RR"]
    assert first["verdict"] == repeats[2].result


def test_first_outcome_is_a_turn_only_if_red(gated):
    assert end_with(gated, POOR).turned == "red"


def test_result_is_compared_with_last_and_baseline(gated):
    pinned(gated.benchmark.runs.get())
    Schedule.objects.update(baseline="main")
    end_with(gated, BEST)
    repeat = end_with(gated, POOR, GOOD)
    assert repeat.result.startswith("Gate passed: all 2 checks.")
    assert "Against the last, “night 1”: " in repeat.result
    assert "worse." in repeat.result
    assert "Against the baseline “main”: " in repeat.result
    assert "+" not in repeat.result
    assert "not distinguishable" in repeat.result


def test_undecided_or_failed_benchmarks_keep_the_state(gated):
    end_with(gated, POOR)
    failed = end_with(gated, status=Status.FAILED)
    assert (failed.outcome, failed.turned, gated.state) == ("undecided", "", "red")
    assert failed.result.startswith("The benchmark failed.")
    assert end_with(gated, POOR).turned == ""


def test_a_retried_benchmark_is_judged_again(gated):
    """It keeps the turn that it was if it has the same outcome again."""
    repeat = end_with(gated, POOR)
    for _ in range(2):
        benchmark = search(gated.benchmark.mapping, BEST, completed_at=timezone.now())
        Repeat.objects.update(benchmark=benchmark)
        end_repeat(str(repeat.pk))
        repeat.refresh_from_db()
        assert (repeat.outcome, repeat.turned) == ("passed", "green")


def test_a_benchmark_that_became_the_baseline_ends(gated):
    """Its only run is not compared with itself."""
    Schedule.objects.update(baseline="main")
    repeat = end_with(gated, GOOD)
    pinned(repeat.benchmark.runs.get())
    Benchmark.objects.filter(pk=repeat.benchmark_id).update(completed_at=timezone.now())
    end_repeat(str(repeat.pk))
    repeat.refresh_from_db()
    assert "Against the baseline “main”: cannot be compared." in repeat.result


def test_schedule_can_be_disabled_though_its_baseline_is_gone(gated):
    gated.enabled, gated.baseline = False, "gone"
    assert save_schedule(gated, changed=["enabled"]).next_run is None
    gated.enabled = True
    with pytest.raises(BenchbenchError, match="no current baseline"):
        save_schedule(gated, changed=["enabled"])


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"cron": "tomorrow"}, "cron"),
        ({"rules": "floors: {nonsense: 1}"}, "rules"),
        ({"rules": "against_baseline: {mrr: {may_lose: 0.1}}"}, "baseline"),
        ({"baseline": "nobody"}, "baseline"),
        ({"notify": "nobody", "rules": RULES}, "notify"),
        ({"notify": "team"}, "notify"),  # without rules nothing turns
    ],
)
def test_invalid_schedules_are_refused_with_their_field(db, values, field):
    benchmark = search(make_gated(), GOOD)
    with pytest.raises(BenchbenchError) as refused:
        save_schedule(Schedule(name="nightly", benchmark=benchmark, **{"cron": "0 3 * * *", **values}))
    assert refused.value.field == field


@pytest.fixture
def shared(roles: None) -> Schedule:
    """A schedule that ada shares with a team; the baseline "plans" is of a benchmark that only she sees."""
    ada, team = User.objects.create_user("ada", is_staff=True), Group.objects.create(name="crew")
    ada.groups.set([team, Group.objects.get(name="editor")])
    mapping = make_gated()
    Mapping.objects.filter(pk=mapping.pk).update(owner=ada, team=team)
    pinned(search(mapping, GOOD, name="private", owner=ada).runs.get(), "plans")
    template = search(mapping, GOOD, name="public", owner=ada, team=team)
    pinned(template.runs.get(), "main")
    return Schedule(name="s", benchmark=template, cron="0 3 * * *", owner=ada, team=team)


@pytest.mark.parametrize("name", ["plans", "none such"])
def test_a_shared_schedule_names_no_private_baseline(shared, name):
    shared.baseline = name
    with pytest.raises(BenchbenchError) as refused:
        save_schedule(shared)
    assert refused.value.field == "baseline"
    assert "choose one of main." in refused.value.message
    assert "plans" not in refused.value.message.replace(repr(name), "")
    shared.team = None  # its owner alone sees both
    if name == "plans":
        save_schedule(shared)


def test_results_of_a_shared_schedule_name_no_private_baseline(shared):
    shared.save()
    Schedule.objects.update(baseline="gone", rules=RULES)
    Benchmark.objects.update(completed_at=timezone.now())
    repeat = Repeat.objects.create(schedule=shared, due_at=timezone.now(), benchmark=shared.benchmark)
    end_repeat(str(repeat.pk))
    repeat.refresh_from_db()
    assert "no current baseline 'gone'" in repeat.result
    assert "plans" not in repeat.result


def test_refused_starts_do_not_list_what_the_owner_sees(shared, monkeypatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise ConflictError("indexes: 'library' has no ready index named 'a'; choose one of private plans, b.c.")

    monkeypatch.setattr(starting, "clone", refuse)
    shared.save()
    Schedule.objects.update(owner=None)  # may start anything
    with pytest.raises(ConflictError, match=r"^indexes: 'library' has no ready index named 'a'\.$"):
        start_now(Schedule.objects.get())
