"""What another process does at the same moment: its session with PostgreSQL is its own."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from django.db import connection


def elsewhere(act: Callable[[], Any]) -> Future[Any]:
    """Do something as another process would, on a connection of its own."""

    def finished() -> Any:
        try:
            return act()
        finally:
            connection.close()

    executor = ThreadPoolExecutor(1)
    future = executor.submit(finished)
    executor.shutdown(wait=False)
    return future


def is_waited_for() -> bool:
    """Whether another session waits for a lock of this one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))")
        return cursor.rowcount > 0


def until_waited_for(future: Future[Any]) -> None:
    """Return once what is done elsewhere waits for this session; it must not end before."""
    while not is_waited_for():
        assert not future.done(), future.result()


def finish_unblocked(act: Callable[[], Any]) -> Any:
    """Return what an act elsewhere returns; it must not wait for this session."""
    future = elsewhere(act)
    while not future.done():
        assert not is_waited_for(), "it waits for this session"
    return future.result()
