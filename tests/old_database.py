"""A database as earlier migrations made it, with rows, for this code to migrate."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection

from benchbench import embedded

DEFAULTS: dict[str, Any] = {
    "uuid": uuid.UUID(int=1),
    "jsonb": "{}",
    "ARRAY": [],
    "boolean": False,
    "text": "",
    "character varying": "x",
    "bytea": b"",
    "timestamp with time zone": "2026-01-01T00:00Z",
}
MIGRATE = """
import sys, django
django.setup()
from django.core.management import call_command
for app in sys.argv[1:]:
    call_command("migrate", *app.split(), verbosity=0)
"""
NEEDED = (
    "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s AND is_nullable = 'NO' "
    "AND column_default IS NULL AND is_identity = 'NO'"
)


@contextmanager
def old_database(*migrations: str) -> Iterator[psycopg.Connection[Any]]:
    """A database of these migrations, each an app and the beginning of a name."""
    name = f"old_{uuid.uuid4().hex}"
    with psycopg.connect(embedded.database_url(str(connection.settings_dict["NAME"])), autocommit=True) as here:
        here.execute(f"CREATE DATABASE {name}")
        try:
            migrate(name, *migrations)
            with psycopg.connect(embedded.database_url(name), autocommit=True) as there:
                yield there
        finally:
            here.execute(f"DROP DATABASE {name} WITH (FORCE)")


def migrate(database: str, *migrations: str) -> None:
    python(database, MIGRATE, *migrations)


def python(database: str, program: str, *arguments: str) -> str:
    """Run a program of this code on a database; return what it prints."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "benchbench.settings",
        "DATABASE_URL": embedded.database_url(database),
        "REDIS_URL": settings.REDIS_URL,
        "SECRET_KEY": settings.SECRET_KEY,
    }
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, check=True, timeout=300, stdout=subprocess.PIPE, text=True
    ).stdout


def add(there: psycopg.Connection[Any], table: str, **row: Any) -> None:
    """Insert a row; what it needs besides is made up: of numbers and ids 1."""
    row = {name: DEFAULTS.get(kind, 1) for name, kind in there.execute(NEEDED, [table])} | row
    names, places = ", ".join(f'"{name}"' for name in row), ", ".join(["%s"] * len(row))
    there.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", list(row.values()))
