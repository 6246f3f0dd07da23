"""Fit of the database's tables and this code: a worker that they do not fit says so, and waits."""

import logging
import time

from django.db import InterfaceError, OperationalError, ProgrammingError, connection

from benchbench.database.tables import not_applied, unapplied, unknown

log = logging.getLogger(__name__)
LOOK_SECONDS = 1.0
# Cheap, so that it can be asked before every batch: whatever is migrated, forward or back, moves one of the two.
STATE = "SELECT count(*), max(id) FROM django_migrations"
_seen: tuple[object, str] = None, ""


def misfit() -> str:
    """Return the sentence that says why this code cannot work on the tables; "" where it can."""
    global _seen
    try:
        with connection.cursor() as cursor:
            cursor.execute(STATE)
            state = cursor.fetchone()
    except ProgrammingError:  # there is no table yet
        state = None
    if state is None or state != _seen[0]:
        _seen = state, _misfit()
    return _seen[1]


def wait_until_it_fits() -> None:
    """Return once the tables are those of this code, and PostgreSQL is there."""
    waited = False
    while reason := why_it_waits():
        if not waited:
            log.warning("This worker waits. %s", reason)
        waited = True
        time.sleep(LOOK_SECONDS)
    if waited:
        log.warning("The tables fit: this worker goes on.")


def why_it_waits() -> str:
    """Return the sentence that says why a worker cannot work, as the tables do not fit or are away; "" where it can."""
    try:
        return misfit()
    except (OperationalError, InterfaceError) as error:
        connection.close()
        return f"PostgreSQL does not answer: {error}".strip()


def _misfit() -> str:
    if newer := unknown():
        return (
            f"The database is of a newer BenchBench: this worker does not know the migration {newer[0]}. Update it and "
            "start it again."
        )
    if missing := unapplied():
        return f"The tables are older than this worker: {not_applied(missing)}. Run `manage.py migrate`."
    return ""
