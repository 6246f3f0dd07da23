"""Stored rankings, read in bulk."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from apps.benchmarks.models import Run
from benchbench.binary import binary_cursor

Rankings = dict[int, list[int]]  # document ids, best first, by query


class Stored(NamedTuple):
    """A query result as it is stored; without documents and scores where there is an `error`."""

    key: str
    query_id: int
    repetition: int
    error: str
    document_ids: list[int]
    scores: list[float]


def rows_of(values: QuerySet[Any, Any]) -> Iterator[Any]:
    """Yield the rows of a `values_list` of numbers, texts and arrays of them, in PostgreSQL's binary format.

    Django asks for text, and to print and to parse an array of scores takes five times as long. What Django itself
    converts (JSON, fields with a converter) comes as psycopg reads it.
    """
    whole = _statement(values)
    with binary_cursor() as cursor:
        yield from cursor.execute(whole, binary=True)


def streamed_rows_of(values: QuerySet[Any, Any]) -> Iterator[Any]:
    """Yield the same one by one as they come, of which one is in memory. Until the last nothing else can be asked."""
    whole = _statement(values)
    with binary_cursor() as cursor:
        yield from cursor.stream(whole, binary=True)


def _statement(values: QuerySet[Any, Any]) -> bytes:
    try:
        statement, parameters = values.query.sql_with_params()
    except EmptyResultSet:  # of an empty list of ids: Django sees that no row can be
        return b"SELECT WHERE false"
    with connection.cursor() as cursor:
        whole: str = cursor.cursor.mogrify(statement, parameters)
    return whole.encode()


def stored_results(run: Run) -> list[Stored]:
    """Return all that the run stored, failures too, by query key, then repetition."""
    ordered = run.query_results.order_by("query__key", "query_id", "repetition")
    return [
        Stored(*row)
        for row in rows_of(
            ordered.values_list("query__key", "query_id", "repetition", "error", "document_ids", "scores")
        )
    ]


def rankings_of(run: Run) -> Rankings:
    """Return the ranked document ids of each query that did not fail; of several repetitions the first."""
    rows = run.query_results.filter(error="").order_by("query_id", "repetition").values_list("query_id", "document_ids")
    rankings: Rankings = {}
    for query_id, document_ids in rows_of(rows):
        rankings.setdefault(query_id, document_ids)
    return rankings
