"""State of the database's tables: whether they match this code. A worker waits until they do."""

import logging
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from django.db import InterfaceError, OperationalError, ProgrammingError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import DatabaseError

from benchbench.decimals import counted

log = logging.getLogger(__name__)
LOOK_SECONDS = 1.0
# Cheap enough to run before every batch. Each migration, forward or back, changes one of the two values.
STATE = "SELECT count(*), max(id) FROM django_migrations"


# Autovacuum's own condition, with its default share of the rows.
CHANGED = "SELECT relid::regclass::text FROM pg_stat_user_tables WHERE n_mod_since_analyze > 1000 + n_live_tup / 10"


def renew_statistics() -> None:
    """Renew PostgreSQL's statistics of tables that changed much, as autovacuum does within a minute.

    With old ones it chooses plans for small tables: a page of 10,000 new judgments takes a second longer. Does nothing
    in a transaction, which would keep the locks.
    """
    if connection.in_atomic_block:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")  # or the last commits of this session are not counted yet
        cursor.execute(CHANGED)
        if changed := [table for (table,) in cursor]:
            cursor.execute(f"ANALYZE (SKIP_LOCKED) {', '.join(changed)}")


def count_unapplied() -> int:
    """Return the number of migrations that the database lacks; 0 if its tables are up to date.

    Raises DatabaseError if it does not answer.
    """
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def list_unknown() -> list[str]:
    """Return the migrations of the database that this code lacks, sorted: those of a newer version.

    Raises DatabaseError if it does not answer.
    """
    loader = MigrationExecutor(connection).loader
    extra = loader.applied_migrations.keys() - (loader.disk_migrations or {}).keys()
    return sorted(f"{app}.{name}" for app, name in extra if app in loader.migrated_apps)


def explain_unusable(program: str, *, waits: bool = False) -> str:
    """Return why a command cannot use the database, and the remedy, in a sentence; "" if it can.

    One that `waits` by itself until it is updated may start on a database of a newer version.
    """
    try:
        missing, unknown = count_unapplied(), list_unknown()
    except DatabaseError as error:
        return (
            f"PostgreSQL does not answer: {error} Start it, correct DATABASE_URL, or unset it to use the embedded one."
        )
    if unknown and not waits:
        return (
            f"The database is from a newer BenchBench, whose migration {unknown[0]} is unknown here: update this "
            "installation. Nothing was changed."
        )
    if not missing:
        return ""
    is_empty = not MigrationExecutor(connection).loader.applied_migrations
    commands = describe_update(program, is_empty=is_empty)
    return f"The tables of the database are not up to date: {describe_missing(missing)}. {commands}"


def describe_update(program: str, *, is_empty: bool = False) -> str:
    """Return the commands that update the tables of a database, after a backup unless it `is_empty`."""
    return f"Run `{program} migrate`." if is_empty else f"Run `{program} backup FILE`, then `{program} migrate`."


def describe_missing(missing: int) -> str:
    """Return the number of missing migrations in words."""
    return f"{counted(missing, 'migration')} {'is' if missing == 1 else 'are'} not applied"


def wait_until_it_fits() -> None:
    """Wait until PostgreSQL answers and the tables match this code."""
    waited = False
    while reason := explain_waiting():
        if not waited:
            log.warning("This worker is waiting. %s", reason)
        waited = True
        time.sleep(LOOK_SECONDS)
    if waited:
        log.warning("The tables are up to date: this worker continues.")


def explain_waiting() -> str:
    """Return why a worker must wait, in a sentence: the tables do not match or are unavailable; "" if it can work."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(STATE)
            return _describe_misfit(cursor.fetchone())
    except ProgrammingError:  # the table does not exist yet
        return _describe_misfit(None)
    except (OperationalError, InterfaceError) as error:
        connection.close()
        return f"PostgreSQL does not answer: {error}".strip()


@lru_cache(maxsize=1)
def _describe_misfit(state: object) -> str:
    if newer := list_unknown():
        return (
            "The database is from a newer BenchBench: this worker does not know the migration "
            f"{newer[0]}. Update it and start it again."
        )
    if missing := count_unapplied():
        return f"The tables are older than this worker: {describe_missing(missing)}. {describe_update('benchbench')}"
    return ""


@contextmanager
def closing_cursors() -> Iterator[None]:
    """Close cursors that an error in this block leaves half read, by clearing the frames of the error and its causes.

    The garbage collector could close such a cursor during another statement of the same connection and thread. It
    would then wait forever for the connection's lock, which its own thread holds.
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
                traceback.clear_frames(raised.__traceback__)  # leaves running frames alone
                behind += [raised.__cause__, raised.__context__]
        raise
