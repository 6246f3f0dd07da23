"""The state of PostgreSQL and its tables, asked on a connection apart from the pool, which requests may use up."""

import time
from functools import cache
from threading import Lock
from typing import Any

from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader

from benchbench.database.tables import STATE

FRESH_SECONDS = 1.0  # an answer serves all probes of this time
CONNECT_SECONDS = 3
APPLIED = "SELECT app, name FROM django_migrations"


class Probe:
    """A probe of the database for balancers: one connection at a time, however many ask."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._asked_at = float("-inf")
        self._answer = False, False
        self._fitting: Any = None  # the last state of the table of migrations that was found to fit

    def ask(self) -> tuple[bool, bool]:
        """Return whether PostgreSQL answers, and whether no migration is missing."""
        with self._lock:
            if time.monotonic() - self._asked_at > FRESH_SECONDS:
                self._answer = self._ask()
                self._asked_at = time.monotonic()
            return self._answer

    def _ask(self) -> tuple[bool, bool]:
        separate = connection.copy()
        separate.settings_dict["OPTIONS"].pop("pool", None)
        separate.settings_dict["OPTIONS"]["connect_timeout"] = CONNECT_SECONDS
        answers = fits = False
        try:
            with separate.cursor() as cursor:
                cursor.execute("SELECT 1")
                answers = True
                cursor.execute(STATE)
                state = cursor.fetchone()
                if state != self._fitting:
                    cursor.execute(APPLIED)
                    self._fitting = state if list_migrations() <= set(cursor.fetchall()) else None
                fits = state == self._fitting
        except DatabaseError:
            fits = False
        finally:
            separate.close()
        return answers, fits


@cache
def list_migrations() -> frozenset[tuple[str, str]]:
    """Return the app and name of each migration of this code, without those that a squashed one replaces."""
    migrations = (MigrationLoader(None).disk_migrations or {}).items()
    replaced = {key for _, migration in migrations for key in migration.replaces}
    return frozenset(key for key, _ in migrations if key not in replaced)
