"""Upgrades of the embedded database that can be undone: a backup first, restored by itself if a migration fails."""

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from django.core.management import call_command
from django.db import connection

from benchbench.database.backups import BackupError, back_up, replace
from benchbench.database.tables import count_unapplied, describe_missing
from benchbench.durations import format_duration
from benchbench.embedded import find_places
from benchbench.errors import BenchbenchError, error_text


class UpgradeError(BenchbenchError):
    """The tables of the embedded database could not be updated."""

    code = "upgrade"


def upgrade(report: Callable[[str], None]) -> None:
    """Update the tables of the embedded database, after a backup if it has any. `report` prints a sentence.

    If a migration fails, the backup replaces the database. Raises BackupError before anything was changed, and
    UpgradeError.
    """
    missing = count_unapplied()
    if not missing:
        return
    if not connection.introspection.table_names():
        call_command("migrate", verbosity=0)
        return
    path = find_places().data / "backups" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.dump"
    path.parent.mkdir(exist_ok=True)
    report(f"The database is of an older version: {describe_missing(missing)}. Writing a backup first …")
    back_up(path)
    began = time.monotonic()
    try:
        call_command("migrate", verbosity=0)
    except (Exception, KeyboardInterrupt) as error:
        raise _undo(path, error) from error
    report(
        f"Updated the database in {format_duration(time.monotonic() - began)}. To go back, install the former version "
        f"and fill a new data folder: {_spell_restore(path, f'{path.parent.parent}-former')}"
    )


def _undo(path: Path, error: Exception | KeyboardInterrupt) -> UpgradeError:
    reason = f"The update failed: {error_text(error)}" if isinstance(error, Exception) else "The update was stopped."
    try:
        replace(path)
    except BackupError as second:
        return UpgradeError(
            f"{reason} The backup {path} was not restored either: {second.message} Restore it into a new folder: "
            f"{_spell_restore(path, 'FOLDER')}"
        )
    return UpgradeError(f"{reason} The database is as before: its backup {path} was restored. Use the former version.")


def _spell_restore(path: Path, folder: str) -> str:
    """Return the line to type; the program by its path, because a virtual environment is seldom active."""
    program = Path(sys.executable).with_name("benchbench")
    return f"BENCHBENCH_DATA_DIR={quote(folder)} {quote(str(program))} restore {quote(str(path))}"
