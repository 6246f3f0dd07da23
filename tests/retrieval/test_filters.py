"""What filters admit: the same in Python, and in each of the statements that ask PostgreSQL."""

from typing import Any

import pytest
from django.db import connection
from django.db.models import JSONField, Value
from psycopg import sql

from apps.retrieval.filters import admitted, condition, keeps_out, said
from tests.factories import make_collection

STATED: list[dict[str, Any]] = [
    {},
    *({"version": value} for value in ("16.0", "17.0", ["16.0", "17.0"], ["18.0"], [], None, 17, 17.0, True, [[1, 2]])),
    {"version": "16.0", "lang": ["de", "en"]},
    {"lang": "de"},
]
FILTERS: list[tuple[dict[str, Any], set[int]]] = [
    ({}, set(range(13))),
    ({"version": "16.0"}, {1, 3, 11}),
    ({"version": ["16.0", "17.0"]}, {1, 2, 3, 11}),
    ({"version": ["18.0", "17.0"]}, {2, 3, 4}),
    ({"version": ["19.0"]}, set()),
    ({"version": []}, {5}),
    ({"version": None}, {6}),
    ({"version": 17}, {7, 8}),
    ({"version": [True]}, {9}),
    ({"version": [1, 2]}, {10}),
    ({"version": "16.0", "lang": "de"}, {11}),
    ({"lang": ["fr", "de"]}, {11, 12}),
]


@pytest.mark.parametrize(("filter", "expected"), FILTERS, ids=[str(filter) for filter, _ in FILTERS])
def test_a_list_asks_for_any_of_its_values_and_a_document_has_each_of_its_own(
    db: None, filter: dict[str, Any], expected: set[int]
) -> None:
    documents = make_collection("modules", [{"metadata": metadata} for metadata in STATED]).documents.order_by("pk")
    places = {pk: place for place, pk in enumerate(documents.values_list("pk", flat=True))}
    assert {places[one.pk] for one in admitted(documents, filter)} == expected
    kept = documents.annotate(asked=Value(filter, output_field=JSONField())).exclude(keeps_out("asked", "metadata"))
    assert {places[one.pk] for one in kept} == expected
    where, parameters = condition(filter)
    with connection.cursor() as cursor:
        table = sql.Identifier(documents.model._meta.db_table)
        cursor.execute(sql.SQL("SELECT id FROM {table} WHERE {where}").format(table=table, where=where), parameters)
        assert {places[pk] for (pk,) in cursor.fetchall()} == expected


def test_a_filter_is_told_as_a_sentence_has_it() -> None:
    assert said({"version": ["16.0", "17.0"], "edition": "community", "size": 2}) == (
        "edition community, size 2, version 16.0 or 17.0"
    )
