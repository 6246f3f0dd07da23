"""Backups of the whole database, by PostgreSQL's own pg_dump and pg_restore.

The database holds everything that results depend on. A machine's files and the contents of Redis are rebuilt from it.
A backup does not contain the secret key (SECRET_KEY, or the file `secret_key` of an evaluation site).
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import IO

import psycopg
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from psycopg.sql import SQL, Identifier

from benchbench.embedded import EmbeddedError
from benchbench.embedded.postgres import find_programs
from benchbench.errors import BenchbenchError
from benchbench.local_files.placing import write_file

FORMAT = b"PGDMP"  # the first bytes of pg_dump's custom format
WITHOUT_RIGHTS = ("--no-owner", "--no-privileges")  # the user who restores owns the restored tables
ERROR_LINES = 8  # the last lines of a failed program, which give the reason


class BackupError(BenchbenchError):
    """A backup cannot be made or restored."""

    code = "backup"


def back_up(path: Path, *, force: bool = False) -> int:
    """Write a snapshot of the database to `path`, in pg_dump's custom format; return the size of the file in bytes.

    Users and workers continue meanwhile. The file appears when it is complete, or not at all. Raises BackupError, and
    OutputError if the file cannot be written, or exists and may not be replaced.
    """

    def write(file: IO[bytes]) -> None:
        _run("pg_dump", "--format=custom", *WITHOUT_RIGHTS, output=file)

    write_file(write, path, force=force, mode=0o600)  # it holds the hashes of passwords
    return path.stat().st_size


def restore(path: Path) -> int:
    """Restore the backup `path` into the empty database and migrate its tables; return the number of filled tables.

    Redis is cleared of another database's data. Raises BackupError. Nothing is changed if the file is not a backup or
    was made by a newer BenchBench, or if the database is not empty.
    """
    _require_backup(path)
    if connection.introspection.table_names():
        raise BackupError(
            f'The database "{connection.settings_dict["NAME"]}" must be empty for a restore. Create a '
            "database (createdb NAME) and name it in DATABASE_URL, or name a new folder in "
            "BENCHBENCH_DATA_DIR."
        )
    tables = _run("pg_restore", "--list", str(path)).count(" TABLE DATA ")
    try:
        _fill(path, str(connection.settings_dict["NAME"]))
    except BackupError as error:
        raise BackupError(f"{error.message} Drop the database and create it again before you retry.") from None
    call_command("migrate", verbosity=0)
    cache.clear()
    return tables


def replace(path: Path) -> None:
    """Replace the database by the backup `path`, whose tables stay as they were. For a user who may create databases.

    Other processes lose their connections. Raises BackupError; the database is then as it was.
    """
    name = str(connection.settings_dict["NAME"])
    fresh = f"{name}_restored"
    connection.ensure_connection()
    info, old, new = connection.connection.info, Identifier(name), Identifier(fresh)
    try:
        with psycopg.connect(info.dsn, dbname="postgres", password=info.password, autocommit=True) as server:
            server.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(new))
            server.execute(SQL("CREATE DATABASE {}").format(new))
            _fill(path, fresh)
            connection.close()
            server.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(old))
            server.execute(SQL("ALTER DATABASE {} RENAME TO {}").format(new, old))
    except psycopg.Error as error:
        raise BackupError(f"PostgreSQL reported an error: {str(error).strip()}") from None
    cache.clear()


def _fill(path: Path, database: str) -> None:
    into = f"--dbname={database}"  # the rest of its address is in the environment, which other users cannot read
    _run("pg_restore", "--exit-on-error", f"--jobs={os.cpu_count() or 1}", *WITHOUT_RIGHTS, into, str(path))


def _require_backup(path: Path) -> None:
    """Raise BackupError if the file is not a backup, or was made by another application or a newer BenchBench."""
    try:
        with path.open("rb") as file:
            begins = file.read(len(FORMAT))
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror or error}.") from None
    if begins != FORMAT:
        raise BackupError(f"{path} is not a backup: it must be in the custom format of pg_dump, as `backup` writes it.")
    rows = _run("pg_restore", "--data-only", "--table=django_migrations", "--file=-", str(path)).splitlines()
    applied = [tuple(row.split("\t")[1:3]) for row in rows if row.count("\t") == 3]
    migrations = set(MigrationLoader(None, ignore_no_migrations=True).disk_migrations or ())
    if not applied:
        raise BackupError(f"{path} is a backup of another application: it has no table of migrations.")
    if unknown := sorted(".".join(names) for names in applied if names not in migrations):
        raise BackupError(
            f"{path} was made by a newer BenchBench: the migration {unknown[0]} is unknown. Install the newer version."
        )


def _run(name: str, *arguments: str, output: IO[bytes] | int = subprocess.PIPE) -> str:
    """Run a program of PostgreSQL, in English, and return what it printed. Raises BackupError with its last lines.

    Uses the program that is installed with BenchBench, else that of the machine.
    """
    try:
        program = str(find_programs(as_root=os.geteuid() == 0) / name)
    except EmbeddedError:
        program = shutil.which(name) or ""
    if not program:
        raise BackupError(f"{name} was not found: install the client programs of PostgreSQL.")
    connection.ensure_connection()
    info = connection.connection.info
    address = {"PGHOST": info.host, "PGPORT": str(info.port), "PGUSER": info.user, "PGDATABASE": info.dbname}
    environment = os.environ | address | {"PGPASSWORD": info.password, "LC_ALL": "C"}
    result = subprocess.run([program, *arguments], stdout=output, stderr=subprocess.PIPE, env=environment)
    if result.returncode:
        lines = result.stderr.decode(errors="replace").splitlines()[-ERROR_LINES:]
        raise BackupError(f"{name} failed: {' '.join(map(str.strip, lines))}")
    return (result.stdout or b"").decode()
