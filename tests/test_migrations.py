"""Migrations of a database that is not empty: every table of the first ones has a row, and it is there at the end."""

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.old_database import add, migrate, old_database, python
from tests.test_upgrades import BEFORE

pytestmark = pytest.mark.thorough

STATED: dict[str, dict[str, Any]] = {  # what checks of the tables want
    "api_accesstoken": {"scope": "read"},
    "collections_collection": {"kind": "documents"},
    "retrieval_index": {"status": "ready", "store": "pgvector", "chunk_set_id": uuid.UUID(int=1)},
    "retrieval_vectorspace": {"kind": "query"},
    "datasets_query": {"text": "apple"},
    "datasets_judgment": {"source": "human"},
    "operations_operation": {"status": "completed", "kind": "benchmark"},
    "operations_batch": {"state": "done"},
    "mappings_mapping": {"status": "resolved"},
    "mappings_resolution": {"outcome": "resolved", "document_id": 1},
    "benchmarks_benchmark": {
        "status": "completed",
        "execution": "shared",
        "unresolved": "count",
        "empty_queries": "zero",
    },
    "benchmarks_run": {"status": "completed", "index_id": uuid.UUID(int=1), "config": '{"search_mode": "dense"}'},
    "judging_round": {"order": "random", "overlap_judges": 2, "state": "open"},
    "judging_grade": {"kind": "grade", "grade": 1, "source": "human", "judge_name": "x", "judge_id": 1},
}
READ = """
import django
django.setup()
from django.apps import apps
for model in apps.get_models(include_auto_created=True):
    if model.__module__.startswith("apps."):
        print(model._meta.db_table, *(len(str(vars(row))) for row in model._default_manager.all()))
"""
TABLES = "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'public'"
# What migrations took away or hold otherwise: that its content is kept is tested by tests/benchmarks/test_migrating.py.
MOVED = {
    *("benchmarks_queryresult.id", "benchmarks_evaluation.values"),
    *("benchmarks_stagelist.benchmark_id", "benchmarks_stagelist.stage_key"),
    *("judging_rounditem.probability", "judging_rounditem.uniform"),
    *("retrieval_index.store", "retrieval_index.store_parameters"),
    "operations_operation.stage",
}


@pytest.fixture
def old(db: None) -> Iterator[psycopg.Connection[Any]]:
    """A database of the first migrations."""
    # The first of judging asks for later ones of others.
    with old_database(*(f"{app} 0001" for app in BEFORE if app != "judging")) as there:
        yield there


def populate(there: psycopg.Connection[Any]) -> None:
    """Give each of our tables that has none a row, number 1, that names number 1 of every other."""
    tables = ["auth_user", *(name for name, kind in there.execute(TABLES) if kind == "BASE TABLE" and is_ours(name))]
    with there.transaction():
        there.execute("SET CONSTRAINTS ALL DEFERRED")
        for table in tables:
            if there.execute(f"SELECT 1 FROM {table}").fetchone() is None:
                add(there, table, **STATED.get(table, {}))


def is_ours(table: str) -> bool:
    return table.partition("_")[0] in BEFORE


def rows(there: psycopg.Connection[Any]) -> dict[str, Any]:
    """Return the values of the first row of each of our tables and views, by table and column."""
    with there.cursor(row_factory=dict_row) as cursor:
        names = [name for name, _ in there.execute(TABLES) if is_ours(name)]
        first = {name: cursor.execute(f"SELECT * FROM {name} ORDER BY 1 LIMIT 1").fetchone() or {} for name in names}
    return {f"{name}.{column}": value for name, row in first.items() for column, value in row.items()}


def test_every_row_of_the_first_tables_is_there_after_the_last_migration(old: psycopg.Connection[Any]) -> None:
    populate(old)
    before = rows(old)
    migrate(old.info.dbname, "judging 0001")
    populate(old)
    before = rows(old) | before
    migrate(old.info.dbname, "")
    after = rows(old)
    assert {name for name, value in before.items() if name not in after or after[name] != value} == MOVED
    read = dict(line.split(maxsplit=1) for line in python(old.info.dbname, READ).splitlines() if " " in line)
    assert read.keys() >= {name.partition(".")[0] for name in before}
