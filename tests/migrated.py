"""A database with the tables of these migrations and no other rows than theirs, from which each run copies its own."""

import functools
from hashlib import sha256
from importlib import import_module
from pathlib import Path

from django.apps import apps
from django.db import connection

STEM = "migrated_"


@functools.cache
def name_migrated() -> str:
    """Return the name of the database: of what the migrations of all apps contain."""
    folders = [Path(config.path) / "migrations" for config in apps.get_app_configs()]
    files = [file for folder in folders for file in sorted(folder.glob("*.py"))]
    models = [import_module("django").__version__.encode(), *(file.read_bytes() for file in files)]
    return STEM + sha256(b"\0".join(models)).hexdigest()[:16]


def keeps_migrated() -> bool:
    return name_migrated() in _list_migrated()


def keep_migrated() -> None:
    """Copy this run's database, in which no test has worked yet, in place of earlier ones."""
    name = connection.settings_dict["NAME"]
    earlier = _list_migrated()
    connection.close()  # one that is copied must have no connections
    with connection._nodb_cursor() as cursor:
        for one in earlier:
            cursor.execute(f'DROP DATABASE "{one}"')
        cursor.execute(f'CREATE DATABASE "{name_migrated()}" TEMPLATE "{name}"')


def _list_migrated() -> list[str]:
    with connection._nodb_cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [STEM])
        return [name for (name,) in cursor.fetchall()]
