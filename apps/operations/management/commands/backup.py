"""Write the whole database to a file."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.template.defaultfilters import filesizeformat

from apps.operations.commands import UseCaseCommand
from benchbench.database.backups import back_up


class Command(UseCaseCommand):
    help = """Write the whole database to a file, in the custom format of pg_dump.

Workers and the site keep running; the file has the state of the database when the backup began. It excludes files of
vectors, which are rebuilt. Back up SECRET_KEY (or the file secret_key of an evaluation site) separately: sessions need
it. The file contains password hashes, and only you can read it.

  benchbench backup nightly.dump
  benchbench backup /backups/benchbench.dump --force
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="File to write.")
        parser.add_argument("--force", action="store_true", help="Replace an existing file.")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        with self.busy("Writing"):
            size = back_up(options["file"], force=options["force"])
        self.report(
            {"file": str(options["file"]), "bytes": size},
            f"Wrote {options['file']}, {filesizeformat(size)}. `benchbench restore` fills an empty database with it.",
            as_json=options["json"],
        )
