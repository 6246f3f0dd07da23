"""Workers whose code does not fit the tables: they log it, wait and continue by themselves."""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from apps.operations import queueing
from apps.operations.models import Operation
from apps.operations.waiting import describe_wait
from tests.faults.kit import hold, undisturbed, until
from tests.faults.work import KINDS

STATED_SECONDS = 5
(NEWEST,) = MigrationLoader(None).graph.leaf_nodes("accounts")


@pytest.fixture
def migrations(transactional_db: None) -> Iterator[None]:
    """The tests say of the tables what is not so; this takes it back."""
    yield
    forget("0099_newer")
    remember(NEWEST[1])


def forget(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'accounts' AND name = %s", [name])


def remember(name: str) -> None:
    forget(name)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('accounts', %s, now())", [name])


@pytest.mark.parametrize(
    ("change", "mend", "sentence"),
    [
        (lambda: remember("0099_newer"), lambda: forget("0099_newer"), "accounts.0099_newer"),
        (lambda: forget(NEWEST[1]), lambda: remember(NEWEST[1]), "1 migration is not applied"),
    ],
    ids=["the tables are newer", "the tables are older"],
)
def test_a_worker_that_the_tables_do_not_fit_waits(crew, migrations, change, mend, sentence):
    kind = KINDS["resolve"]
    expected = undisturbed(kind)
    change()
    operation = kind.start()
    crew.start()
    until(lambda: queueing.find_waiting_workers("default"), "the worker's sentence")
    (reason,) = queueing.find_waiting_workers("default").values()
    assert sentence in reason
    assert queueing.find_workers("default") == set()
    assert describe_wait(operation) == f"Waits for a worker. {reason}"
    assert set(operation.batches.values_list("state", "attempts")) == {("pending", 0)}
    mend()
    crew.slowest = crew.sees_the_end_of(operation)
    hold(kind, Operation.objects.get(pk=operation.pk), expected)
    assert set(operation.batches.values_list("attempts", flat=True)) == {1}
