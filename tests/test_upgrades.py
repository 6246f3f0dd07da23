"""Migrations that old code survives: it goes on reading and writing while processes are replaced one by one."""

from typing import Any

import pytest
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED

# The last of each app that were written before this was promised.
BEFORE = {
    "api": "0002_roles",
    "benchmarks": "0009_rewriting",
    "collections": "0001_initial",
    "datasets": "0001_initial",
    "judging": "0004_stored_state",
    "mappings": "0002_mapping_for_each_owner",
    "operations": "0005_hung",
    "retrieval": "0005_llm_revisions",
}
TAKES_AWAY = (migrations.RemoveField, migrations.RenameField, migrations.DeleteModel, migrations.RenameModel)


def breaks(operation: Any) -> str:
    """Say why code that does not know an operation cannot go on after it; "" where it can."""
    if isinstance(operation, TAKES_AWAY):
        return "takes away what the code before still reads: stop using it in one version, and remove it in the next"
    if isinstance(operation, migrations.AddField):
        field = operation.field
        if not (field.null or field.many_to_many or field.db_default is not NOT_PROVIDED):
            return "adds a column that the code before cannot fill: give it db_default, or let it be null"
    return ""


def test_no_migration_breaks_the_code_before() -> None:
    loader = MigrationLoader(None)
    found = {
        f"{app}.{name}": why
        for (app, name), migration in loader.disk_migrations.items()
        if app in BEFORE and name > BEFORE[app]
        for operation in migration.operations
        if (why := breaks(operation))
    }
    assert found == {}
    assert all((app, name) in loader.disk_migrations for app, name in BEFORE.items())


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        (migrations.AddField("batch", "place", models.IntegerField(default=0)), "give it db_default"),
        (migrations.AddField("batch", "place", models.IntegerField(db_default=0)), ""),
        (migrations.AddField("batch", "place", models.IntegerField(null=True)), ""),
        (migrations.RenameField("batch", "place", "rank"), "remove it in the next"),
        (migrations.RemoveField("batch", "place"), "remove it in the next"),
        (migrations.AddIndex("batch", models.Index(fields=["state"], name="state")), ""),
    ],
)
def test_it_tells_what_breaks(operation: Any, told: str) -> None:
    assert told in breaks(operation)
    assert bool(breaks(operation)) == bool(told)
