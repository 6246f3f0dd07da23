"""Backups of the whole database, by PostgreSQL's own pg_dump and pg_restore.

Everything that figures are made of is in the database: files of a machine are made anew from it, and what Redis holds
is made anew too. The secret key (SECRET_KEY, or the file `secret_key` of an evaluation site) is no part of a backup.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from benchbench.embedded import EmbeddedError
from benchbench.embedded.postgres import programs
from benchbench.errors import BenchbenchError
from benchbench.local_files.placing import place

Told = Callable[[int, int], None]  # how many tables are done, of how many

FORMAT = b"PGDMP"  # with what a file of pg_dump's custom format begins
WITHOUT_RIGHTS = ("--no-owner", "--no-privileges")  # whoever restores owns what comes of it
SAID = 8  # the last lines of a program that failed, which say why


class BackupError(BenchbenchError):
    """A backup that cannot be made, or not be restored."""

    code = "backup"


def back_up(path: Path, *, force: bool = False, told: Told) -> int:
    """Write the database as it is at one moment to `path`, in pg_dump's custom format; return the bytes of the file.

    Whoever works on goes on meanwhile. The file appears when it is whole, or not at all. Raises BackupError, and
    OutputError where the file cannot be written, or is there and not to be replaced.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
        tables = cursor.fetchone()[0]

    def write(file: IO[bytes]) -> None:
        with _running("pg_dump", "--format=custom", "--verbose", *WITHOUT_RIGHTS, output=file) as lines:
            _count(lines, "dumping contents of table", tables, told)

    place(write, path, force=force, mode=0o600)  # it holds the hashes of passwords
    return path.stat().st_size


def restore(path: Path, *, told: Told) -> int:
    """Fill the empty database with the backup `path`, bring its tables up to date; return how many were filled.

    What Redis kept of another database is forgotten. Raises BackupError: before anything is changed where the file is
    no backup, was made by a newer BenchBench, or the database is not empty.
    """
    _require_backup(path)
    _require_known_migrations(path)
    if connection.introspection.table_names():
        raise BackupError(
            f'The database "{connection.settings_dict["NAME"]}" is not empty, and a restore replaces nothing: make an '
            "empty one (createdb NAME) and name it in DATABASE_URL, or name a new folder in BENCHBENCH_DATA_DIR."
        )
    tables = sum(" TABLE DATA " in line for line in _output("pg_restore", "--list", str(path)).splitlines())
    jobs = f"--jobs={os.cpu_count() or 1}"
    into = f"--dbname={_address()}"
    with _running("pg_restore", "--verbose", "--exit-on-error", jobs, *WITHOUT_RIGHTS, into, str(path)) as lines:
        _count(lines, "TABLE DATA", tables, told, word="finished item")
    call_command("migrate", verbosity=0)
    cache.clear()
    return tables


def _require_backup(path: Path) -> None:
    try:
        with path.open("rb") as file:
            begins = file.read(len(FORMAT))
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror or error}.") from None
    if begins != FORMAT:
        raise BackupError(f"{path} is no backup: it is not in the custom format of pg_dump, as `backup` writes it.")


def _require_known_migrations(path: Path) -> None:
    """Raise BackupError where a newer BenchBench made the backup, or it is of another application."""
    rows = _output("pg_restore", "--data-only", "--table=django_migrations", "--file=-", str(path)).splitlines()
    applied = [tuple(row.split("\t")[1:3]) for row in rows if row.count("\t") == 3]
    known = set(MigrationLoader(None, ignore_no_migrations=True).disk_migrations or ())
    if not applied:
        raise BackupError(f"{path} is a backup of another application: it has no table of migrations.")
    if unknown := sorted(".".join(names) for names in applied if names not in known):
        raise BackupError(
            f"A newer BenchBench made {path}: this one does not know its migration {unknown[0]}. Install the newer one."
        )


def _count(lines: Iterator[str], text: str, total: int, told: Told, *, word: str = "") -> None:
    done = 0
    for line in lines:
        if text in line and word in line:
            done += 1
            told(min(done, total), total)


@contextmanager
def _running(program: str, *arguments: str, output: IO[bytes] | None = None) -> Iterator[Iterator[str]]:
    """Run a program and give its messages as they come. Raises BackupError with the last of them where it fails."""
    said: list[str] = []
    with subprocess.Popen(
        [_program(program), *arguments],
        stdout=output or subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=_environment(),
    ) as process:
        assert process.stderr is not None
        lines = process.stderr

        def heard() -> Iterator[str]:
            for line in lines:
                said.append(line)
                del said[:-SAID]
                yield line

        try:
            yield heard()
            failed = process.wait()
        except BaseException:
            process.kill()
            raise
    if failed:
        raise BackupError(
            f"{program} failed: {' '.join(line.strip() for line in said)}"
            + (" Drop the database and make it again before the next try." if program == "pg_restore" else "")
        )


def _output(program: str, *arguments: str) -> str:
    """Run a program that reads a file alone, and return what it printed. Raises BackupError."""
    done = subprocess.run([_program(program), *arguments], capture_output=True, text=True, env=_environment())
    if done.returncode:
        raise BackupError(f"The file is damaged, or was made by a newer pg_dump: {done.stderr.strip()}")
    return done.stdout


def _program(name: str) -> str:
    """Return a program of PostgreSQL: those that are installed with BenchBench, or else those of the machine."""
    try:
        return str(programs(as_root=os.geteuid() == 0) / name)
    except EmbeddedError:
        if program := shutil.which(name):
            return program
    raise BackupError(f"There is no {name} on this machine: install the client programs of PostgreSQL.")


def _address() -> str:
    connection.ensure_connection()
    return connection.connection.info.dsn  # without the password, which others of the machine could read


def _environment() -> dict[str, str]:
    """The environment of a program that reaches the database and speaks English."""
    connection.ensure_connection()
    info = connection.connection.info
    address = {"PGHOST": info.host, "PGPORT": str(info.port), "PGUSER": info.user, "PGDATABASE": info.dbname}
    return os.environ | address | {"PGPASSWORD": info.password, "LC_ALL": "C"}
