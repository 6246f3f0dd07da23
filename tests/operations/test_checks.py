"""`manage.py check` says in a sentence what is missing."""

import subprocess
import sys
from unittest.mock import Mock

import pytest
from django.conf import settings
from django.core.management import get_commands
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.utils import OperationalError

from benchbench import cli
from benchbench.database import tables
from benchbench.database.tables import describe_missing, explain_unusable
from benchbench.markup import html_is_slow

pytestmark = pytest.mark.thorough


def check(environment: dict[str, str]) -> str:
    finished = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True
    )
    return finished.stderr + finished.stdout


def test_check_finds_no_issues_in_a_working_setup(process_environment):
    output = check(process_environment)
    if html_is_slow():
        assert "Install Python 3.11.14, 3.12.12 or 3.13.6, or a later one" in output
        assert "identified 1 issue" in output
    else:
        assert "no issues" in output


@pytest.mark.parametrize(
    ("version", "slow"),
    [
        ((3, 11, 13), True),
        ((3, 11, 14), False),
        ((3, 12, 11), True),
        ((3, 12, 12), False),
        ((3, 13, 5), True),
        ((3, 13, 6), False),
        ((3, 14, 0), False),
    ],
)
def test_it_knows_which_python_reads_html_slowly(version, slow):
    assert html_is_slow(version) is slow


def test_it_names_all_that_is_not_there(process_environment):
    missing = {
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "BENCHBENCH_DEFAULT_MODEL": "nobody/has-this-model",
    }
    output = check(process_environment | missing)
    assert "PostgreSQL at '127.0.0.1' does not answer" in output
    assert "HINT: Start PostgreSQL, or correct DATABASE_URL" in output
    assert "Redis does not answer" in output
    assert "HINT: Start Redis, or correct REDIS_URL" in output
    assert "nobody/has-this-model" in output
    assert "Traceback" not in output


def test_it_counts_missing_migrations(process_environment):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'benchmarks' RETURNING name, applied")
        removed = cursor.fetchall()
    try:
        output = check(process_environment)
    finally:
        with connection.cursor() as cursor:
            for name, applied in removed:
                cursor.execute(
                    "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, %s)",
                    ["benchmarks", name, applied],
                )
    assert f"{describe_missing(len(removed))}." in output
    assert "HINT: Run `benchbench backup FILE`, then `benchbench migrate`." in output


def test_command_explains_why_the_database_is_unusable(db, monkeypatch):
    assert explain_unusable("benchbench") == ""
    ((app, newest),) = MigrationLoader(connection).graph.leaf_nodes("mappings")
    with connection.cursor() as cursor:  # tables of an older version
        cursor.execute("DELETE FROM django_migrations WHERE app = %s AND name = %s", [app, newest])
    assert explain_unusable("benchbench") == (
        "The tables of the database are not up to date: 1 migration is not applied. "
        "Run `benchbench backup FILE`, then `benchbench migrate`."
    )
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, now())", [app, newest])
        cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('datasets', '0999_new', now())")
    assert "from a newer BenchBench, whose migration datasets.0999_new is unknown" in explain_unusable("benchbench")
    assert explain_unusable("benchbench", waits=True) == ""  # a worker, which takes nothing meanwhile
    monkeypatch.setattr(tables, "MigrationExecutor", Mock(side_effect=OperationalError("no route to host")))
    assert "PostgreSQL does not answer: no route to host" in explain_unusable("benchbench")


@pytest.mark.parametrize(("version", "warns"), [("0.8.3", True), ("0.8", True), ("0.8.4", False), ("0.10.0", False)])
def test_it_warns_of_a_pgvector_that_damages_indexes(monkeypatch, db, version, warns):
    from apps.operations import checks

    monkeypatch.setattr(sys, "argv", ["manage.py", "check"])
    monkeypatch.setattr(checks, "VERSION", f"SELECT '{version}' WHERE %s <> ''")
    messages = checks.check_database()
    assert [message.id for message in messages] == ["benchbench.W005"] * warns
    assert all(f"pgvector {version} can damage" in message.msg for message in messages)


def test_it_names_the_extension_that_a_server_lacks(monkeypatch, db):
    from apps.operations import checks

    monkeypatch.setattr(sys, "argv", ["manage.py", "check"])
    monkeypatch.setattr(checks, "EXTENSION", "no_such_extension")
    (message,) = checks.check_database()
    assert message.id == "benchbench.E002"
    assert "The extension `no_such_extension` is not available" in message.msg


def test_statistics_of_changed_tables_are_renewed(transactional_db):
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE numbers AS SELECT n FROM generate_series(1, 3000) AS n")
        tables.renew_statistics()
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'numbers'")
        (recognised,) = cursor.fetchone()
        cursor.execute("DROP TABLE numbers")
    assert recognised == 3000


def test_every_command_that_writes_refuses_newer_tables(process_environment):
    """Those of Django that make the tables, inspect them or restore others are the exception, and the worker waits."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('datasets', '0999_new', now())")
    try:
        personal = sorted(name for name, app in get_commands().items() if str(app).startswith("apps."))
        exempt = {"worker", *cli.WITHOUT_TABLES}
        assert {name for name in personal if name in exempt} == {"backup", "demo", "restore", "serve", "worker"}
        for name in ("prune", "createsuperuser"):
            command = [sys.executable, "-m", "benchbench", name]
            process = subprocess.run(
                command, cwd=settings.BASE_DIR, env=process_environment, capture_output=True, text=True
            )
            assert process.returncode == 1
            assert "from a newer BenchBench, whose migration datasets.0999_new is unknown" in process.stderr
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM django_migrations WHERE name = '0999_new'")
