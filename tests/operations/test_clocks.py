"""The clock that decides about leases is PostgreSQL's: those of workers may differ."""

from collections.abc import Callable, Iterator

import psycopg
import pytest
from django.db import connection

from apps.operations.ending import sweep
from apps.operations.leasing import claim
from apps.operations.models import Operation, Status
from apps.operations.workers import limits
from benchbench import embedded
from tests.operations.adding import batches, start_adding

pytestmark = pytest.mark.django_db(transaction=True)
DAY = 86_400
SetClock = Callable[[int], None]


@pytest.fixture
def set_clock() -> Iterator[SetClock]:
    """Set PostgreSQL's clock, as this session sees it, ahead of the worker's by some seconds."""

    def set_ahead(seconds: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute("CREATE SCHEMA IF NOT EXISTS ahead")
            for name in ("now", "statement_timestamp"):
                cursor.execute(
                    f"CREATE OR REPLACE FUNCTION ahead.{name}() RETURNS timestamptz LANGUAGE sql "
                    f"RETURN pg_catalog.{name}() + interval '{seconds} s'"
                )
            cursor.execute("SET search_path = ahead, public, pg_catalog")

    yield set_ahead
    with connection.cursor() as cursor:
        cursor.execute("RESET search_path")
        cursor.execute("DROP SCHEMA IF EXISTS ahead CASCADE")


def test_leases_use_the_database_clock(handler, set_clock, settings):
    settings.BENCHBENCH_MAX_ATTEMPTS = 2
    key = batches(start_adding({"number": 1}))[0].pk
    set_clock(DAY)
    assert claim(key, "first") is not None
    assert claim(key, "second") is None
    set_clock(2 * DAY)
    assert claim(key, "second") is not None
    sweep()
    assert Operation.objects.get().status == Status.RUNNING
    set_clock(3 * DAY)
    assert claim(key, "third") is None
    sweep()
    assert Operation.objects.get().status == Status.FAILED


def test_sweep_ends_transactions_of_expired_leases(handler, set_clock):
    """As that of a frozen worker, which would keep its locks until it is woken."""
    batch = claim(batches(start_adding({"number": 1}))[0].pk, "frozen")
    name = f"{limits.AT_WORK}{batch.pk}.{batch.attempts}"
    with psycopg.connect(
        embedded.find_places().database_url(connection.settings_dict["NAME"]), application_name=name
    ) as frozen:
        frozen.execute("SELECT 1")
        set_clock(5)
        sweep()
        frozen.execute("SELECT 1")
        set_clock(DAY)
        sweep()
        with pytest.raises(psycopg.OperationalError, match="terminating connection"):
            frozen.execute("SELECT 1")
