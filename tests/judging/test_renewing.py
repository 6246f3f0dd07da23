"""The state of a round: who renews it, how often, and what whoever looks at it is told of its age."""

import threading
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from apps.benchmarks.models import Benchmark
from apps.judging import question, tasks
from apps.judging.grading import adjudicate, grade_item, undo
from apps.judging.handing import next_items
from apps.judging.models import Round, RoundItem, RoundState
from apps.judging.settling import deciding
from apps.judging.settling.renewing import known_state
from apps.judging.settling.report import round_report
from apps.judging.tasks import renew_state
from apps.operations import queueing
from apps.operations.management.commands.worker import Command
from tests.judging.rounds import open_for, state_now


@pytest.fixture(autouse=True)
def connection_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job begins with another connection, which does not see what a test has not committed."""
    monkeypatch.setattr(tasks, "close_old_connections", lambda: None)


@pytest.fixture
def decisive(benchmark: Benchmark, ada: User, grace: User) -> Round:
    return open_for(benchmark, [ada, grace], owner=ada, order="decisive", measure="nDCG@3", depth=4, overlap=1.0)


def graded(opened: Round, judge: User, most: int, grade: int = 1) -> list[RoundItem]:
    items = next_items(opened, judge, count=most)
    for item in items:
        grade_item(opened, item.pk, judge, grade=grade)
    return items


def test_without_a_worker_the_state_is_that_of_now(decisive, ada):
    for _ in range(3):
        graded(decisive, ada, 1)
        told = known_state(decisive)
        assert (told.is_current, told.row.grades) == (True, told.said.count)
    undo(decisive, ada)
    assert known_state(decisive).row.grades == 2


def test_a_worker_is_asked_once_however_often_judges_grade(decisive, ada, quick):
    state_now(decisive)
    for _ in range(12):
        graded(decisive, ada, 1)
    assert len(quick.job_ids) == 1
    assert RoundState.objects.get().grades == 0, "no request reckons it"
    told = round_report(decisive, known_state(decisive))
    assert (told.counted_grades, told.grades, told.is_current) == (0, 10, False)
    assert told.sentence.endswith("That counts 0 of 10 grades; it is being renewed.")
    renew_state(str(decisive.pk))
    told = round_report(decisive, known_state(decisive))
    assert (told.counted_grades, told.is_current) == (10, True)
    assert "renewed" not in told.sentence
    graded(decisive, ada, 1)
    next_items(decisive, ada)
    assert len(quick.job_ids) == 2, "what comes after a job began wants another"


def test_where_no_worker_comes_whoever_needs_the_state_reckons_it(decisive, ada, quick):
    state_now(decisive)
    graded(decisive, ada, 1)
    assert not known_state(decisive).is_current
    (waits,) = quick.connection.scan_iter("benchbench:waits:*")
    quick.connection.expire(waits, queueing.WAITS_SECONDS - queueing.OVERDUE_SECONDS - 1)
    assert known_state(decisive).is_current


def test_the_first_state_is_never_waited_for_and_commands_have_that_of_now(decisive, ada, quick):
    assert known_state(decisive).is_current
    graded(decisive, ada, 1)
    assert not known_state(decisive).is_current
    assert state_now(decisive).is_current


def test_a_grade_that_changes_and_one_that_is_decided_make_the_state_old(decisive, ada, grace, quick):
    (item,) = graded(decisive, ada, 1)
    state_now(decisive)
    grade_item(decisive, item.pk, ada, grade=0)
    told = round_report(decisive, known_state(decisive))
    assert not told.is_current, "as many grades as before, and another one"
    assert told.sentence.endswith("A grade has changed since; that is being renewed.")
    state_now(decisive)
    grade_item(decisive, item.pk, grace, grade=2)
    assert state_now(decisive).said.split == [item.pk]
    adjudicate(decisive, item.pk, ada, 1)
    assert not known_state(decisive).is_current
    assert state_now(decisive).said.split == []


def test_a_renewal_of_what_is_current_reckons_nothing(decisive, ada, monkeypatch):
    graded(decisive, ada, 2)
    first = known_state(decisive)
    monkeypatch.setattr(deciding, "_desk", lambda *_: pytest.fail("nothing is to be reckoned"))
    renew_state(str(decisive.pk))
    assert known_state(decisive).row.computed_at == first.row.computed_at


def test_a_process_that_comes_new_reads_the_board_in_one_piece(decisive, ada, monkeypatch):
    graded(decisive, ada, 5)
    known = known_state(decisive)
    deciding._desks.clear()
    RoundState.objects.update(mark="")
    monkeypatch.setattr(question, "read_rankings", lambda *_: pytest.fail("the board is kept"))
    assert known_state(decisive).state == known.state


def test_a_run_that_was_searched_again_makes_the_board_anew(decisive, ada):
    before = RoundState.objects.get(pk=known_state(decisive) and decisive.pk).basis
    decisive.runs.update(failed_queries=1)
    assert known_state(decisive).is_current
    assert RoundState.objects.get().basis != before


def test_the_job_of_a_round_that_was_deleted_ends_and_makes_no_state(decisive, ada, quick):
    state_now(decisive)
    graded(decisive, ada, 1)
    (waits,) = quick.connection.scan_iter("benchbench:waits:*")
    pk = str(decisive.pk)
    decisive.delete()
    renew_state(pk)
    assert not RoundState.objects.exists()
    assert not quick.connection.exists(waits)


@pytest.mark.django_db(transaction=True)
def test_a_worker_renews_what_is_asked_for(benchmark, ada, quick):
    opened = open_for(benchmark, [ada], owner=ada)
    assert len(quick.job_ids) == 1, "from opening"
    Command().handle(queues=["default"], burst=True)
    assert RoundState.objects.get(round=opened).computed_at
    assert not quick.job_ids


@pytest.mark.django_db(transaction=True)
def test_two_never_renew_one_round_and_the_second_finds_it_done(benchmark, ada, monkeypatch):
    opened = open_for(benchmark, [ada], owner=ada)
    at_work, second_waits = threading.Event(), threading.Event()
    made = deciding._made
    reckoned: list[str] = []

    def slowly(*arguments: Any) -> deciding.Desk:
        reckoned.append(threading.current_thread().name)
        at_work.set()
        assert second_waits.wait(60)
        return made(*arguments)

    def renewed() -> None:
        deciding.renew(Round.objects.get(pk=opened.pk))
        connection.close()

    monkeypatch.setattr(deciding, "_made", slowly)
    first, second = (threading.Thread(target=renewed, name=name) for name in ("first", "second"))
    first.start()
    assert at_work.wait(60)
    second.start()
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%%roundstate%%'"
    for _ in range(600):
        with connection.cursor() as cursor:
            cursor.execute(waiting)
            if cursor.fetchone()[0]:
                break
        time.sleep(0.1)
    else:
        pytest.fail("the second does not wait for the first")
    second_waits.set()
    first.join()
    second.join()
    assert reckoned == ["first"]


@pytest.mark.parametrize(("order", "share", "wanted"), [("depth", 0.2, 1), ("random", 0.1, 5), ("depth", 0.0, 0)])
def test_the_inclusion_probability_is_that_of_what_was_judged(benchmark, ada, order, share, wanted):
    opened = open_for(benchmark, [ada], owner=ada, order=order, uniform_share=share)
    graded(opened, ada, 5)
    told = known_state(opened)
    assert told.row.sampled_from == opened.pool_size == 10
    assert (told.row.sample_size, told.inclusion_probability) == (wanted, wanted / 10)
    planned = opened.items.values_list("planned_probability", flat=True)[0]
    assert planned == (1.0 if order == "random" else share), "of the whole round"


def test_what_nobody_can_tell_is_of_the_sample(benchmark, ada):
    opened = open_for(benchmark, [ada], owner=ada, order="random")
    for item in next_items(opened, ada, count=2):
        grade_item(opened, item.pk, ada, kind="cannot_judge")
    assert known_state(opened).row.sample_size == 2
