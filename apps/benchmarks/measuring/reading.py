"""Stored rankings and values, read in bulk."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import BinaryField, Func, QuerySet
from numpy.typing import NDArray

from apps.benchmarks.models import Run, StageList
from benchbench.database.binary import binary_cursor
from benchbench.ir.measures import Values

ARRAY_HEAD = 20  # bytes: dimensions, null flag, type, length, lower bound
NOTHING = np.empty(0)
Rankings = dict[int, list[int]]  # document ids, best first, by query


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


def by_source(runs: Iterable[Run]) -> dict[int | None, list[Run]]:
    """Return the runs by the source of their lists."""
    sources: dict[int | None, list[Run]] = {}
    for run in runs:
        sources.setdefault(run.source_id, []).append(run)
    return sources


def documents_by_query(source_id: int | None) -> dict[int, tuple[NDArray[np.int64], list[int]]]:
    """Return the documents and lengths of each query that did not fail; of several repetitions the first."""
    lists = StageList.objects.filter(source=source_id, lengths__isnull=False, error="")
    rows = lists.order_by("query_id", "repetition").values_list("query_id", _sent("document_ids"), "lengths")
    by_query: dict[int, tuple[NDArray[np.int64], list[int]]] = {}
    for query_id, documents, lengths in rows_of(rows):
        by_query.setdefault(query_id, (_array(documents, ">i8").astype(np.int64), lengths))
    return by_query


def _sent(column: str) -> Func:
    """An array as PostgreSQL sends it, to be read by NumPy at once: to make an object of each number takes long."""
    return Func(column, function="array_send", output_field=BinaryField())


def _array(sent: bytes, kind: str) -> NDArray[Any]:
    """Read a one-dimensional array without nulls; see `benchbench.database.binary`."""
    cells = np.dtype([("size", ">i4"), ("value", kind)])
    whole: NDArray[Any] = np.frombuffer(sent, cells, offset=ARRAY_HEAD)["value"] if len(sent) > ARRAY_HEAD else NOTHING
    return whole


def in_order(values: Values, own: Sequence[int], query_ids: Sequence[int]) -> Values:
    """Return values (measures, queries) of the queries `own` in the order of `query_ids`, NaN where one has none."""
    if own == query_ids:
        return values
    place = {query_id: n for n, query_id in enumerate(own)}
    known = [(n, place[query_id]) for n, query_id in enumerate(query_ids) if query_id in place]
    ordered = np.full((len(values), len(query_ids)), np.nan)
    ordered[:, [n for n, _ in known]] = values[:, [n for _, n in known]]
    return ordered


def rankings_of(run: Run) -> Rankings:
    """Return the ranked document ids of each query that did not fail; of several repetitions the first."""
    rows = run.query_results.filter(error="").order_by("query_id", "repetition").values_list("query_id", "document_ids")
    rankings: Rankings = {}
    for query_id, document_ids in rows_of(rows):
        rankings.setdefault(query_id, document_ids)
    return rankings
