"""The state of PostgreSQL and its tables, asked on a connection apart from the pool, which requests may use up."""

import time
from threading import Lock
from typing import Any

from django.db import DatabaseError, connection

from benchbench.database.tables import STATE, count_unapplied

FRESH_SECONDS = 1.0  # an answer serves all probes of this time
CONNECT_SECONDS = 3


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
        answers = False
        try:
            with separate.cursor() as cursor:
                cursor.execute("SELECT 1")
                answers = True
                cursor.execute(STATE)
                state = cursor.fetchone()
            if state != self._fitting and not count_unapplied(separate):
                self._fitting = state
            return True, state == self._fitting
        except DatabaseError:
            return answers, False
        finally:
            separate.close()
