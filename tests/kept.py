"""A world of rows that a process of tests makes once, and puts back for each further test that begins with it."""

import re
import uuid
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Model, QuerySet

from apps.retrieval.models import Index
from apps.retrieval.search import vectors as tables

ROOMS = ("benchmarks_", "collections_", "datasets_", "judging_", "mappings_", "operations_", "retrieval_")
USERS = "auth_user"
UUID = re.compile(rb"\b([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})\b")
Row = TypeVar("Made", bound=Model)
Rows = dict[str, list[bytes]]  # of each table, as COPY has them: every second part is a UUID


def made_once(make: Callable[..., Row]) -> Callable[..., Row]:
    """Make what `make` returns, with all rows that it rests on, once for each choice of options; then copy those rows.

    Users whom it makes are among the rows. The copy has other UUIDs, so that nothing that the process keeps of one is
    taken for the other's, and the numbers that the first had. Where other tests' rows may be in the way, as in a test
    that makes two, it is made again.
    """
    stored: dict[tuple[Any, ...], tuple[type[Row], bytes, Rows]] = {}

    @wraps(make)
    def created(**options: Any) -> Row:
        key = tuple(sorted(options.items()))
        if any(_tables().values()):
            return make(**options)
        if key in stored:
            model, pk, rows = stored[key]
            return model._default_manager.get(pk=_put_back(rows)[pk].decode())
        users = set(User.objects.values_list("pk", flat=True))
        first = make(**options)
        stored[key] = type(first), str(first.pk).encode(), _rows(User.objects.exclude(pk__in=users))
        return first

    return created


@cache
def _names() -> list[str]:
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return sorted(name for name in names if name.startswith(ROOMS))


def _tables() -> dict[str, bool]:
    """The tables of the rooms, and whether each has rows."""
    tables = _names()
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(f"EXISTS (SELECT FROM {table})" for table in tables))
        return dict(zip(tables, cursor.fetchone(), strict=True))


def _rows(users: QuerySet[User]) -> Rows:
    ids = ", ".join(str(user.pk) for user in users)
    tables = [table for table, has_rows in _tables().items() if has_rows]
    of_indexes = {index.vector_table for index in Index.objects.all()}
    rows = {}
    with connection.cursor() as cursor:
        for table in [*tables, *of_indexes.intersection(connection.introspection.table_names())]:
            with cursor.cursor.copy(f"COPY {table} TO STDOUT") as copy:
                rows[table] = UUID.split(b"".join(copy))
        if ids:
            with cursor.cursor.copy(f"COPY (SELECT * FROM {USERS} WHERE id IN ({ids})) TO STDOUT") as copy:
                rows[USERS] = [b"".join(copy)]
    return rows


def _put_back(rows: Rows) -> dict[bytes, bytes]:
    """Write the rows, and return the new UUID for each of theirs."""
    new = {old: str(uuid.uuid4()).encode() for segments in rows.values() for old in segments[1::2]}
    with transaction.atomic(), connection.cursor() as cursor:

        def write(table: str, pieces: list[bytes]) -> None:
            with cursor.cursor.copy(f"COPY {table} FROM STDIN") as copy:
                copy.write(b"".join(new[piece] if position % 2 else piece for position, piece in enumerate(pieces)))

        cursor.execute("SET LOCAL session_replication_role = replica")  # it does not check foreign keys
        of_rooms = [table for table in rows if table.startswith((*ROOMS, USERS))]
        for table in of_rooms:
            write(table, rows[table])
        cursor.execute("SET LOCAL session_replication_role = origin")
        for table in rows.keys() - set(of_rooms):
            index = Index.objects.get(pk=new[str(uuid.UUID(table.removeprefix("vectors_"))).encode()].decode())
            assert index.dimension is not None
            tables.create_table(index.vector_table, index.dimension)
            write(index.vector_table, rows[table])
    return new
