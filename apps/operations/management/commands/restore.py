"""Fill an empty database with a backup."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.operations.commands import UseCaseCommand
from benchbench.database.backups import restore


class Command(UseCaseCommand):
    help = """Fill an empty database with a backup, and migrate its tables.

Nothing is replaced: first set DATABASE_URL to an empty database, or, without it, BENCHBENCH_DATA_DIR to a new folder.
A backup of an older BenchBench is migrated; one of a newer BenchBench is refused. Active operations continue when a
worker starts.

  benchbench restore nightly.dump
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="A file that `benchbench backup` wrote.")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        with self.busy("Restoring"):
            tables = restore(options["file"])
        self.report(
            {"file": str(options["file"]), "tables": tables},
            f"Restored {tables} tables and migrated them.",
            as_json=options["json"],
        )
