"""The state of a round: who renews it, how often, and what anyone who looks at it is informed of its age."""

import threading
import time

import pytest
from django.contrib.auth.models import User
from django.db import connection

from apps.judging import question, tasks
from apps.judging.grading import adjudicate, grade_item, undo
from apps.judging.handing import load_next_items
from apps.judging.models import Round, RoundItem, RoundState
from apps.judging.question import Question
from apps.judging.settling import consensus, deciding
from apps.judging.settling.renewing import load_round_status
from apps.judging.settling.report import build_round_report
from apps.judging.tasks import renew_state
from apps.operations import queueing
from apps.operations.management.commands.worker import Command
from apps.records.models import Benchmark
from benchbench.ir.judging.judging import Judging
from benchbench.ir.judging.state import State
from benchbench.process import reset_all
from tests.judging.rounds import open_for, state_now


@pytest.fixture(autouse=True)
def connection_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job begins with another connection, which does not see what a test has not committed."""
    monkeypatch.setattr(tasks, "close_old_connections", lambda: None)


@pytest.fixture
def decisive(benchmark: Benchmark, ada: User, grace: User) -> Round:
    return open_for(benchmark, [ada, grace], owner=ada, order="decisive", measure="nDCG@3", depth=4, overlap=1.0)


def graded(opened: Round, judge: User, limit: int, grade: int = 1) -> list[RoundItem]:
    items = load_next_items(opened, judge, count=limit)
    for item in items:
        grade_item(opened, item.pk, judge, grade=grade)
    return items


def test_without_a_worker_the_state_is_that_of_now(decisive, ada):
    for _ in range(3):
        graded(decisive, ada, 1)
        round_status = load_round_status(decisive)
        assert (round_status.is_current, round_status.row.grades) == (True, round_status.human_grades.count)
    undo(decisive, ada)
    assert load_round_status(decisive).row.grades == 2


def test_a_worker_is_asked_once_however_often_judges_grade(decisive, ada, quick):
    state_now(decisive)
    for _ in range(12):
        graded(decisive, ada, 1)
    assert len(quick.job_ids) == 1
    assert RoundState.objects.get().grades == 0, "no request reckons it"
    round_report = build_round_report(decisive, load_round_status(decisive))
    assert (round_report.counted_grades, round_report.grades, round_report.is_current) == (0, 10, False)
    assert round_report.sentence.endswith("The state counts 0 of 10 grades and is being updated.")
    renew_state(str(decisive.pk))
    round_report = build_round_report(decisive, load_round_status(decisive))
    assert (round_report.counted_grades, round_report.is_current) == (10, True)
    assert "updated" not in round_report.sentence
    graded(decisive, ada, 1)
    load_next_items(decisive, ada)
    assert len(quick.job_ids) == 2, "what comes after a job began wants another"


def test_reader_computes_an_overdue_state_without_a_worker(decisive, ada, quick):
    state_now(decisive)
    graded(decisive, ada, 1)
    assert not load_round_status(decisive).is_current
    (waits,) = quick.connection.scan_iter("benchbench:waits:*")
    quick.connection.expire(waits, queueing.WAITS_SECONDS - queueing.OVERDUE_SECONDS - 1)
    assert load_round_status(decisive).is_current


def test_first_state_is_immediate_and_commands_are_always_current(decisive, ada, quick):
    assert load_round_status(decisive).is_current
    graded(decisive, ada, 1)
    assert not load_round_status(decisive).is_current
    assert state_now(decisive).is_current


def test_changed_and_adjudicated_grades_make_the_state_stale(decisive, ada, grace, quick):
    (item,) = graded(decisive, ada, 1)
    state_now(decisive)
    grade_item(decisive, item.pk, ada, grade=0)
    round_report = build_round_report(decisive, load_round_status(decisive))
    assert not round_report.is_current, "as many grades as before, and another one"
    assert round_report.sentence.endswith("A grade changed; the state is being updated.")
    state_now(decisive)
    grade_item(decisive, item.pk, grace, grade=2)
    assert state_now(decisive).human_grades.split == [item.pk]
    adjudicate(decisive, item.pk, ada, 1)
    assert not load_round_status(decisive).is_current
    assert state_now(decisive).human_grades.split == []


def test_renewing_a_current_state_computes_nothing(decisive, ada, monkeypatch):
    graded(decisive, ada, 2)
    first = load_round_status(decisive)
    monkeypatch.setattr(Judging, "state", lambda *_, **__: pytest.fail("nothing is to be reckoned"))
    renew_state(str(decisive.pk))
    assert load_round_status(decisive).row.computed_at == first.row.computed_at


def test_stored_state_of_older_rules_is_read_and_renewed(decisive, ada, monkeypatch):
    graded(decisive, ada, 4)
    with monkeypatch.context() as older:
        older.setattr(consensus, "RULES", 1)
        row = deciding.renew(decisive)
    del row.state["runs"], row.state["pairs"][0]["low"], row.state["pairs"][0]["high"]
    row.save()
    stored = State.from_record(row.state)
    assert (stored.runs, stored.pairs[0].low <= stored.pairs[0].difference <= stored.pairs[0].high) == ((), True)
    round_status = load_round_status(decisive)
    assert (round_status.is_current, len(round_status.state.runs)) == (True, 2)
    assert round_status.state == State.from_record(round_status.state.as_record())


def test_new_process_reads_the_whole_cached_board(decisive, ada, monkeypatch):
    graded(decisive, ada, 5)
    round_status = load_round_status(decisive)
    reset_all()
    RoundState.objects.update(mark="")
    monkeypatch.setattr(question, "read_rankings", lambda *_: pytest.fail("the board is kept"))
    assert load_round_status(decisive).state == round_status.state


def test_searching_a_run_again_rebuilds_the_board(decisive, ada):
    before = RoundState.objects.get(pk=load_round_status(decisive) and decisive.pk).basis
    decisive.runs.update(failed_queries=1)
    assert load_round_status(decisive).is_current
    assert RoundState.objects.get().basis != before


def test_job_of_a_deleted_round_ends_without_a_state(decisive, ada, quick):
    state_now(decisive)
    graded(decisive, ada, 1)
    (waits,) = quick.connection.scan_iter("benchbench:waits:*")
    pk = str(decisive.pk)
    decisive.delete()
    renew_state(pk)
    assert not RoundState.objects.exists()
    assert not quick.connection.exists(waits)


@pytest.mark.django_db(transaction=True)
def test_worker_renews_requested_states(benchmark, ada, quick):
    opened = open_for(benchmark, [ada], owner=ada)
    assert len(quick.job_ids) == 1, "from opening"
    Command().handle(queues=["default"], burst=True)
    assert RoundState.objects.get(round=opened).computed_at
    assert not quick.job_ids


@pytest.mark.django_db(transaction=True)
def test_concurrent_renewals_of_a_round_run_once(benchmark, ada, monkeypatch):
    opened = open_for(benchmark, [ada], owner=ada)
    at_work, second_waits = threading.Event(), threading.Event()
    created = Question.build_judging
    reckoned: list[str] = []

    def slowly(question: Question) -> Judging:
        reckoned.append(threading.current_thread().name)
        at_work.set()
        assert second_waits.wait(60)
        return created(question)

    def renewed() -> None:
        deciding.renew(Round.objects.get(pk=opened.pk))
        connection.close()

    monkeypatch.setattr(Question, "build_judging", slowly)
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


@pytest.mark.parametrize(("order", "share", "expected"), [("depth", 0.2, 1), ("random", 0.1, 5), ("depth", 0.0, 0)])
def test_inclusion_probability_reflects_the_judged_sample(benchmark, ada, order, share, expected):
    opened = open_for(benchmark, [ada], owner=ada, order=order, uniform_share=share)
    graded(opened, ada, 5)
    round_status = load_round_status(opened)
    assert round_status.row.sampled_from == opened.pool_size == 10
    assert (round_status.row.sample_size, round_status.inclusion_probability) == (expected, expected / 10)
    planned = opened.items.values_list("planned_probability", flat=True)[0]
    assert planned == (1.0 if order == "random" else share), "of the whole round"


def test_unjudgeable_items_belong_to_the_sample(benchmark, ada):
    opened = open_for(benchmark, [ada], owner=ada, order="random")
    for item in load_next_items(opened, ada, count=2):
        grade_item(opened, item.pk, ada, kind="cannot_judge")
    assert load_round_status(opened).row.sample_size == 2
