"""The bin: rows that a deletion takes, in tables of its own until they are restored or the bin is emptied.

A flag on deleted rows would have to be minded by every list, count and unique name. A table `bin_HASH_TABLE` has the
columns of a table, whose names and types the hash is of. PostgreSQL copies the rows from one to the other. Tables
without a model, such as vectors, are only renamed. A row with a `bin_field` was not deleted: it lost its reference in
that column.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from hashlib import sha256
from itertools import chain
from typing import Any, Protocol
from uuid import UUID

from django.apps import apps
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import SET_NULL, Model, QuerySet
from psycopg import sql

from benchbench.errors import ConflictError

PREFIX = "bin_"
HASH_LENGTH = 8
LOCK = 7_316_402  # of a transaction that makes a table of the bin
Columns = dict[str, str]  # types by name, in order


class Deletion(Protocol):
    """Contents of the bin of one deletion: the bin's tables with its rows, renamed tables, counts by model."""

    pk: Any
    tables: Any
    renamed: Any
    counts: Any


TAKING: ContextVar[Deletion | None] = ContextVar("taking", default=None)  # of `benchbench.deleting`, `drop_table`


def keep_rows(rows: QuerySet[Any], *, column: str = "") -> None:
    """Copy rows that are about to be deleted, or to lose the reference in `column`, if a deletion is being kept."""
    if (deletion := TAKING.get()) is None:
        return
    try:
        chosen, parameters = rows.order_by().values("pk").query.sql_with_params()
    except EmptyResultSet:
        return
    meta = rows.model._meta
    table = _make_table(meta.db_table, meta.pk.column)
    statement = "INSERT INTO {} SELECT %s, %s, t.* FROM {} t WHERE {} IN ({}) ON CONFLICT DO NOTHING"
    names = (table, meta.db_table, meta.pk.column, sql.SQL(chosen))
    count = _execute(statement, *names, by=(deletion.pk, column, *parameters))
    if count and table not in deletion.tables:
        deletion.tables.append(table)
    if not column:
        deletion.counts[meta.label] = deletion.counts.get(meta.label, 0) + count


def drop_table(name: str) -> None:
    """Delete a table without a model, if it exists; rename it if a deletion is being kept."""
    deletion = TAKING.get()
    if deletion is None:
        _execute("DROP TABLE IF EXISTS {}", name)
    elif _list_columns(name):
        _execute("ALTER TABLE {} RENAME TO {}", name, PREFIX + name)
        deletion.renamed.append(name)


def restore_rows(deletion: Deletion) -> None:
    """Put rows and tables back. Foreign keys are checked by the caller, at the end of its transaction.

    A reference whose row was deleted since becomes null where a deletion sets it null. Raises ConflictError if a table
    has lost a column, and the database's error for a name that is taken or a column that needs a value.
    """
    for name in deletion.renamed:
        _execute("ALTER TABLE {} RENAME TO {}", PREFIX + name, name)
    models = {model._meta.db_table: model for model in apps.get_models(include_auto_created=True)}
    restored = [(table, models.get(_find_origin(table))) for table in sorted(deletion.tables)]
    for table, model in restored:
        columns, now = _list_columns(table), _list_columns(_find_origin(table))
        if model is None or columns.keys() - now.keys() - {"bin_deletion", "bin_field"}:
            raise ConflictError(
                f"BenchBench was updated since: it has no place for all of {_find_origin(table)!r}. Restore a backup."
            )
        stored = {one.column for one in model._meta.concrete_fields if not one.generated}
        names = sql.SQL(", ").join(sql.Identifier(name) for name in columns if name in stored)
        statement = "INSERT INTO {} ({}) SELECT {} FROM {} WHERE bin_deletion = %s AND bin_field = ''"
        _execute(statement, model._meta.db_table, names, names, table, by=(deletion.pk,))
    for table, model in restored:
        _mend_references(deletion.pk, table, model)


def _mend_references(deletion: UUID, table: str, model: Any) -> None:
    """Drop the restored references to rows that are gone, and give those back that the deletion took."""
    meta = model._meta
    same = sql.SQL("{0} b WHERE b.bin_deletion = %s AND b.bin_field = %s AND b.{1} = t.{1}").format(
        sql.Identifier(table), sql.Identifier(meta.pk.column)
    )
    keys = [one for one in meta.concrete_fields if one.remote_field]
    for key in keys:
        column = sql.Identifier(key.column)
        missing = sql.SQL("t.{0} IS NOT NULL AND NOT EXISTS (SELECT FROM {1} g WHERE g.{2} = t.{0})").format(
            column, sql.Identifier(key.remote_field.model._meta.db_table), sql.Identifier(key.target_field.column)
        )
        if meta.auto_created:
            _execute("DELETE FROM {} t USING {} AND {}", meta.db_table, same, missing, by=(deletion, ""))
        elif key.remote_field.on_delete is SET_NULL:
            statement = "UPDATE {} t SET {} = NULL FROM {} AND {}"
            _execute(statement, meta.db_table, column, same, missing, by=(deletion, ""))
            statement = "UPDATE {} t SET {} = b.{} FROM {} AND t.{} IS NULL"
            _execute(statement, meta.db_table, column, column, same, column, by=(deletion, key.column))


def rename_rows(deletion: Deletion, model: type[Model], choose: Callable[[str], str]) -> None:
    """Give the deleted row of `model` another name in the bin, which `choose` finds for its name."""
    (table,) = (table for table in deletion.tables if _find_origin(table) == model._meta.db_table)
    statement = sql.SQL("SELECT name FROM {} WHERE bin_deletion = %s AND bin_field = ''").format(sql.Identifier(table))
    with connection.cursor() as cursor:
        (name,) = cursor.execute(statement, [deletion.pk]).fetchone()
    _execute("UPDATE {} SET name = %s WHERE bin_deletion = %s", table, by=(choose(name), deletion.pk))


def forget_rows(deletion: Deletion) -> None:
    """Delete for good what a deletion has in the bin."""
    for table in sorted(deletion.tables):
        _execute("DELETE FROM {} WHERE bin_deletion = %s", table, by=(deletion.pk,))
    for name in deletion.renamed:
        _execute("DROP TABLE IF EXISTS {}", PREFIX + name)


def list_needed(model: type[Model], column: str) -> list[Any]:
    """Return the keys in `column` of the rows of `model` in the bin: they cannot be restored without those rows."""
    with connection.cursor() as cursor:
        pattern = f"^{PREFIX}[0-9a-f]{{{HASH_LENGTH}}}_{model._meta.db_table}$"
        cursor.execute("SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relname ~ %s", [pattern])
        selections = [f"SELECT {column} FROM {table}" for (table,) in cursor.fetchall()]  # nosec # names of tables
        cursor.execute(" UNION ".join(selections) or "SELECT WHERE false")
        return [key for (key,) in cursor.fetchall() if key]


def count_rows(groups: Sequence[QuerySet[Model]]) -> dict[str, int]:
    """Return the number of rows of each queryset by its table, in one statement."""
    statements, parameters = zip(
        *(rows.order_by().values("pk").query.sql_with_params() for rows in groups), strict=True
    )
    counts = (sql.SQL("(SELECT count(*) FROM ({}) g)").format(sql.SQL(statement)) for statement in statements)
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT {}").format(sql.SQL(", ").join(counts)), [*chain(*parameters)])
        return dict(zip((rows.model._meta.db_table for rows in groups), cursor.fetchone(), strict=True))


def estimate_bytes(counts: dict[str, int]) -> int:
    """Return about how many bytes so many rows of tables take with their indexes, from the tables' sizes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, pg_total_relation_size(oid), reltuples FROM pg_class WHERE relname = ANY(%s) "
            "AND relkind = 'r' AND relnamespace = current_schema()::regnamespace",
            [[table for table, count in counts.items() if count]],
        )
        return int(sum(size * min(1, counts[table] / max(rows, 1)) for table, size, rows in cursor.fetchall()))


def _find_origin(table: str) -> str:
    return table[len(PREFIX) + HASH_LENGTH + 1 :]


def _make_table(origin: str, key: str) -> str:
    """Return the name of the bin's table for the present columns of a table, which is made if it is missing."""
    described = sha256(repr(_list_columns(origin)).encode()).hexdigest()[:HASH_LENGTH]
    table = f"{PREFIX}{described}_{origin}"
    if not _list_columns(table):
        _execute("SELECT pg_advisory_xact_lock(%s)", by=(LOCK,))
        columns = "(bin_deletion uuid, bin_field text, LIKE {}, PRIMARY KEY (bin_deletion, bin_field, {}))"
        _execute("CREATE TABLE IF NOT EXISTS {} " + columns, table, origin, key)
    return table


def _list_columns(table: str) -> Columns:
    """Return the columns of a table with their types; none if the table does not exist."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(quote_ident(%s)) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [table],
        )
        return dict(cursor.fetchall())


def _execute(statement: str, *names: str | sql.Composable, by: tuple[Any, ...] = ()) -> int:
    """Execute a statement with names of tables and columns in its braces. Return the number of its rows."""
    pieces = (sql.Identifier(name) if isinstance(name, str) else name for name in names)
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(statement).format(*pieces), by)
        return int(cursor.rowcount)
