"""Migrations that old code survives: it goes on reading and writing while processes are replaced one by one."""

from typing import Any

import pytest
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED

# Migrations that do something to look at, and why code that does not know them goes on.
LOOKED_AT: dict[str, str] = {}
TAKES_AWAY = (
    migrations.RemoveField,
    migrations.RenameField,
    migrations.DeleteModel,
    migrations.RenameModel,
    migrations.AlterModelTable,
)
GOES_ON = (
    migrations.CreateModel,
    migrations.AddIndex,
    migrations.RemoveIndex,
    migrations.RemoveConstraint,
    migrations.AlterModelOptions,
    migrations.AlterModelManagers,
)


def breaks(operation: Any, migration: str = "") -> str:
    """Say why code that does not know an operation of a migration cannot go on after it; "" where it can."""
    if isinstance(operation, TAKES_AWAY):
        return "takes away what the code before still reads: stop using it in one version, and remove it in the next"
    if isinstance(operation, migrations.AddField):
        field = operation.field
        if not (field.null or field.many_to_many or field.db_default is not NOT_PROVIDED):
            return "adds a column that the code before cannot fill: give it db_default, or let it be null"
        return ""
    if isinstance(operation, GOES_ON) or migration in LOOKED_AT:
        return ""
    return f"does {type(operation).__name__}: see what the code before writes and reads, and say so in LOOKED_AT"


def test_no_migration_breaks_the_code_before() -> None:
    loader = MigrationLoader(None)
    found = {
        f"{app}.{name}": why
        for (app, name), migration in loader.disk_migrations.items()
        if f"apps.{app}" in settings.INSTALLED_APPS and name > "0001_initial"
        for operation in migration.operations
        if (why := breaks(operation, f"{app}.{name}"))
    }
    assert found == {}
    known = {f"{app}.{name}" for app, name in loader.disk_migrations}
    assert LOOKED_AT.keys() <= known


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        (migrations.AddField("batch", "place", models.IntegerField(default=0)), "give it db_default"),
        (migrations.AddField("batch", "place", models.IntegerField(db_default=0)), ""),
        (migrations.AddField("batch", "place", models.IntegerField(null=True)), ""),
        (migrations.RenameField("batch", "place", "rank"), "remove it in the next"),
        (migrations.RemoveField("batch", "place"), "remove it in the next"),
        (migrations.AlterModelTable("batch", "batches"), "remove it in the next"),
        (migrations.AddIndex("batch", models.Index(fields=["state"], name="state")), ""),
        (migrations.RemoveConstraint("batch", "state"), ""),
        (migrations.AlterField("batch", "place", models.IntegerField(null=True)), "does AlterField"),
        (migrations.AddConstraint("batch", models.UniqueConstraint(fields=["place"], name="p")), "does AddConstraint"),
        (migrations.AlterUniqueTogether("batch", {("place", "state")}), "does AlterUniqueTogether"),
        (migrations.RunSQL("ALTER TABLE batch DROP place"), "say so in LOOKED_AT"),
        (migrations.RunPython(migrations.RunPython.noop), "does RunPython"),
        (migrations.SeparateDatabaseAndState(), "does SeparateDatabaseAndState"),
    ],
)
def test_it_tells_what_breaks(operation: Any, told: str) -> None:
    assert told in breaks(operation)
    assert bool(breaks(operation)) == bool(told)


def test_a_look_is_for_what_can_be_survived_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOOKED_AT, "benchmarks.0002_seen", "selects, and changes nothing")
    assert not breaks(migrations.RunSQL("SELECT 1"), "benchmarks.0002_seen")
    assert breaks(migrations.RunSQL("SELECT 1"), "benchmarks.0003_unseen")
    assert breaks(migrations.RemoveField("batch", "place"), "benchmarks.0002_seen")
