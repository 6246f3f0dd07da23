"""Whose batch a worker takes next, where several operations wait."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import django_rq
import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection

from apps.operations import queueing
from apps.operations.ending import sweep
from apps.operations.launching import PriorityError, start_operation
from apps.operations.leasing import claim, get_this_worker
from apps.operations.management.commands.worker import Command
from apps.operations.models import Batch, Operation
from apps.operations.workers.turns import take_turn
from apps.operations.working import work_batch
from benchbench import embedded
from tests.operations.adding import start_adding

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def empty(transactional_db: None) -> None:
    for queue in ("gpu", "default"):
        django_rq.get_queue(queue).empty()


@contextmanager
def other_session() -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(
        embedded.find_places().database_url(str(connection.settings_dict["NAME"])), autocommit=True
    ) as session:
        yield session


def start(user: User | None = None, batches: int = 4, queue: str = "default") -> Operation:
    return start_adding(*[{"number": 1}] * batches, by=user, queue=queue)


def do(batch: Batch) -> None:
    """Do what RQ does with the job of a batch."""
    django_rq.get_queue("default").remove(queueing.name_job(batch))
    work_batch(batch.pk)


def served() -> list[Any]:
    """Return the operations in the order in which their batches were begun."""
    return list(Batch.objects.filter(state="done").order_by("started_at").values_list("operation_id", flat=True))


def test_operations_on_several_queues_take_turns(handler):
    on_gpu, on_default = start(queue="gpu"), start()
    Command().serve(["gpu", "default"], burst=True)
    assert served() == [one.pk for _ in range(4) for one in (on_gpu, on_default)]
    assert [django_rq.get_queue(name).count for name in ("gpu", "default")] == [0, 0]


def test_worker_leaves_other_queues_alone(handler):
    on_gpu, on_default = start(queue="gpu", batches=1), start(batches=1)
    Command().serve(["default"], burst=True)
    assert served() == [on_default.pk]
    assert django_rq.get_queue("gpu").count == 1
    Command().serve(["gpu"], burst=True)
    assert served() == [on_default.pk, on_gpu.pk]


def test_operations_take_turns_whichever_came_first(handler):
    first, second, third = start(), start(batches=2), start(batches=1)
    Command().serve(["default"], burst=True)
    assert served() == [one.pk for one in (first, second, third, first, second, first, first)]
    assert django_rq.get_queue("default").count == 0
    assert set(Operation.objects.values_list("status", flat=True)) == {"completed"}


def test_turns_are_shared_equally_between_users(handler):
    """Of two workers one is at Ada's: the other goes to Bob, though two more of hers were never served."""
    ada, bob = User.objects.create(username="ada"), User.objects.create(username="bob")
    first, _, second, of_bob = start(ada), start(ada), start(ada), start(bob)
    assert claim(first.batches.all()[0].pk, "another") is not None
    do(second.batches.all()[0])
    do(second.batches.all()[1])
    assert served() == [of_bob.pk] * 2


def test_one_worker_serves_users_in_turn_and_not_operations(handler):
    """Ada's new operations, which were never served, come before her others, and not before Bob's."""
    ada, bob = User.objects.create(username="ada"), User.objects.create(username="bob")
    first, of_bob, second = start(ada, batches=2), start(bob, batches=3), start(ada, batches=1)
    Command().serve(["default"], burst=True)
    assert served() == [one.pk for one in (first, of_bob, second, of_bob, first, of_bob)]


def test_locked_batch_does_not_block_others(handler):
    first, second = start(batches=2), start(batches=1)
    locked, free = first.batches.all()
    with other_session() as session:
        session.execute("BEGIN")
        session.execute("SELECT 1 FROM operations_batch WHERE id = %s FOR UPDATE", [locked.pk])
        assert take_turn(second.batches.get().pk, get_this_worker()) == free.pk
        session.execute("ROLLBACK")


def test_each_batch_that_waits_keeps_one_job(handler):
    first, second = start(), start()
    do(first.batches.all()[0])
    supplied = first.batches.all()[1]
    django_rq.get_queue("default").remove(queueing.name_job(supplied))
    chosen = take_turn(supplied.pk, get_this_worker())
    assert chosen == second.batches.all()[0].pk
    waiting = {queueing.name_job(batch) for batch in Batch.objects.filter(state="pending").exclude(pk=chosen)}
    assert queueing.list_job_ids("default") == waiting
    assert claim(chosen, get_this_worker()) is not None
    assert sweep() == 0


def test_job_of_a_finished_batch_runs_another_batch(handler):
    batch = start(batches=1).batches.get()
    do(batch)
    second = start(batches=1)
    work_batch(batch.pk)
    assert second.batches.get().state == "done"
    assert queueing.list_job_ids("default") == set()


def test_higher_priority_comes_first_and_turns_within_it(handler):
    ada, bob = User.objects.create(username="ada"), User.objects.create(username="bob")
    low, first, second = start(bob, batches=1), start(ada, batches=2), start(bob, batches=1)
    Operation.objects.filter(pk=low.pk).update(priority="low")
    high = start(ada, batches=2)
    Operation.objects.filter(pk=high.pk).update(priority="high")
    waiting = list(Operation.objects.order_by("created_at"))
    assert [queueing.count_each_ahead(waiting)[one] for one in (high, first, second, low)] == [0, 1, 2, 3]
    Command().serve(["default"], burst=True)
    assert served() == [one.pk for one in (high, high, second, first, first, low)]


def test_only_superusers_start_work_of_high_priority(handler):
    ada, root = User.objects.create(username="ada"), User.objects.create(username="root", is_superuser=True)
    options = {"batches": [({"number": 1}, 1)], "priority": "high"}
    with pytest.raises(PriorityError, match="Only superusers"):
        start_operation(Operation.Kind.RESOLVE, subject_id=uuid.uuid4(), by=ada, **options)
    for user in (root, None):  # a command without an owner
        assert start_operation(Operation.Kind.RESOLVE, subject_id=uuid.uuid4(), by=user, **options).priority == "high"
