"""State of the database's tables: whether they are those that this code needs."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import DatabaseError

from benchbench.decimals import counted


def unapplied() -> int:
    """Return how many migrations the database lacks; none are missing where its tables are up to date.

    Raises DatabaseError where it does not answer.
    """
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def unknown() -> list[str]:
    """Return the migrations of the database that this code does not have, sorted: those of a newer one.

    Raises DatabaseError where it does not answer.
    """
    loader = MigrationExecutor(connection).loader
    there = loader.applied_migrations.keys() - (loader.disk_migrations or {}).keys()
    return sorted(f"{app}.{name}" for app, name in there if app in loader.migrated_apps)


def why_not_usable(program: str) -> str:
    """Return the sentence that says why no command can use the database, and what to do; "" where all can."""
    try:
        missing = unapplied()
    except DatabaseError as error:
        return f"PostgreSQL does not answer: {error} Start it, or mend DATABASE_URL; unset, BenchBench starts its own."
    if not missing:
        return ""
    return f"The tables of the database are not up to date: {not_applied(missing)}. Run `{program} migrate`."


def not_applied(missing: int) -> str:
    """Say how many migrations are not applied."""
    return f"{counted(missing, 'migration')} {'is' if missing == 1 else 'are'} not applied"


@contextmanager
def closing_cursors() -> Iterator[None]:
    """Close whatever an error leaves half read in this block: clear the frames of it and of the errors behind it.

    Left to a garbage collection, a cursor is closed whenever that comes, and so perhaps amid another statement of the
    same connection and thread: it then waits for the connection's lock, which its own thread holds, for ever.
    """
    try:
        yield
    except BaseException as error:
        behind: list[BaseException | None] = [error]
        seen: set[int] = set()
        while behind:
            raised = behind.pop()
            if raised is not None and id(raised) not in seen:
                seen.add(id(raised))
                traceback.clear_frames(raised.__traceback__)  # those that are still at work are left alone
                behind += [raised.__cause__, raised.__context__]
        raise
