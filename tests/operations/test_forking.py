"""The children of a pool of workers: each has a session of PostgreSQL that no other process has."""

import subprocess
import sys

import pytest

from tests.checkout import CHECKOUT
from tests.services import environment_of_processes
from tests.waiting import HANG_SECONDS

FORK = """
import django; django.setup()
from functools import partial
from django.db import connection
from apps.operations.workers.pool import Pool

def print_session(burst):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        print(cursor.fetchone()[0], flush=True)

pool = Pool(["default"], works=[print_session] * 2, release=print)
for name in ("first", "second"):
    print_session(True)  # what the pool does itself between two forks
    process = pool.get_worker_process(name, True)
    process.start()
    process.join()
print_session(True)
"""


@pytest.mark.django_db(transaction=True)
def test_no_child_has_a_session_of_its_pool() -> None:
    completed = subprocess.run(
        [sys.executable, "-c", FORK],
        cwd=CHECKOUT,
        env=environment_of_processes() | {"DATABASE_POOL": "2"},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    sessions = completed.stdout.split()
    assert len(sessions) == 5, completed.stderr
    assert len(set(sessions)) == 5
