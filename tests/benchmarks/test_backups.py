"""Backups: every row is there again, every figure is computed again, and nothing is replaced."""

import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from apps.accounts.bin import keep_deleted
from apps.experiments.manifests import build_manifest
from apps.retrieval.deleting import delete_index
from apps.retrieval.indexing import create_index
from benchbench import embedded
from benchbench.reading import strict_yaml
from tests.commands import json_of, output_of
from tests.created import build, run_benchmark
from tests.factories import make_collection
from tests.library import make_library
from tests.retrieval.opened import KEYWORDS

pytestmark = pytest.mark.thorough

RESTORE = """
from apps.accounts.bin import restore
from apps.accounts.models import Deletion
from apps.retrieval.search.vectors import count_rows
index = restore(Deletion.objects.get())
print(f"{index.name}, with {count_rows(index.vector_table)} vectors")
"""
WITHOUT_CONTENT = {"django_content_type", "auth_permission"}  # of which Django makes rows by itself


@pytest.fixture
def empty_database(transactional_db: None) -> Iterator[str]:
    name = f"restored_{uuid.uuid4().hex}"
    with psycopg.connect(
        embedded.find_places().database_url(str(connection.settings_dict["NAME"])), autocommit=True
    ) as local:
        local.execute(f"CREATE DATABASE {name}")
        yield name
        local.execute(f"DROP DATABASE {name} WITH (FORCE)")


def manage(database: str, environment: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=environment | {"DATABASE_URL": embedded.find_places().database_url(database)},
        capture_output=True,
        text=True,
        timeout=600,
    )


def rows_of(database: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, vectors of indexes too."""
    with psycopg.connect(embedded.find_places().database_url(database)) as remote:
        tables = remote.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return {name: sorted(remote.execute(f'SELECT t::text FROM "{name}" t').fetchall()) for (name,) in tables}


def test_a_restored_database_is_whole(empty_database, process_environment, tmp_path):
    library = make_library(queries=3, documents=10)
    benchmark = run_benchmark(library, name="kept", matrix={"search_modes": ["dense", "hybrid"]})
    index = create_index(make_collection("few", [{"external_id": "a", "text": "apple"}]), name="few", encoder=KEYWORDS)
    build(index)
    with keep_deleted(index, None):
        delete_index(index)
    backup, manifest = tmp_path / "backup.dump", tmp_path / "experiment.yaml"
    manifest.write_text(strict_yaml.dump(build_manifest(benchmark)))

    answer = json_of("backup", backup)
    restored = manage(empty_database, process_environment, "restore", str(backup))
    assert restored.returncode == 0, restored.stderr

    assert answer["bytes"] == backup.stat().st_size
    assert backup.stat().st_mode & 0o077 == 0, "it holds the hashes of passwords"
    before, after = rows_of(str(connection.settings_dict["NAME"])), rows_of(empty_database)
    assert any("vector" in name and rows for name, rows in after.items())
    assert {name for name in before if before[name] != after.get(name)} <= WITHOUT_CONTENT
    files_made_anew = process_environment | {"BENCHBENCH_VECTOR_DIR": str(tmp_path / "vectors")}
    declared = [str(manifest), "--name", "again", "--json"]
    again = manage(empty_database, files_made_anew, "reproduce", *declared)
    assert again.returncode == 0, again.stdout + again.stderr

    undone = manage(empty_database, process_environment, "shell", "-c", RESTORE)
    assert undone.stdout.endswith("few, with 1 vectors\n"), undone.stdout + undone.stderr

    onto_itself = manage(empty_database, process_environment, "restore", str(backup))
    assert onto_itself.returncode == 1
    assert "must be empty for a restore" in onto_itself.stderr


def test_an_unfit_backup_is_refused(empty_database, process_environment, tmp_path):
    second, newer = tmp_path / "other.dump", tmp_path / "newer.dump"
    second.write_text("CREATE TABLE documents ();")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('judging', '9999_later', now())")
    try:
        output_of("backup", newer)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM django_migrations WHERE name = '9999_later'")

    for file, sentence in (
        (tmp_path / "absent.dump", "cannot be read: No such file or directory"),
        (second, "is not a backup: it must be in the custom format of pg_dump"),
        (newer, "the migration judging.9999_later is unknown. Install the newer version."),
    ):
        with pytest.raises(CommandError, match=sentence.replace(".", r"\.")):
            call_command("restore", str(file))
    with pytest.raises(CommandError, match="exists already"):
        call_command("backup", str(newer))
    with psycopg.connect(embedded.find_places().database_url(empty_database)) as remote:
        assert remote.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
