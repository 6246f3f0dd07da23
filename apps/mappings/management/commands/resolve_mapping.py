"""Resolve a mapping: find the document of each judgment."""

from typing import Any

from django.core.management.base import CommandParser

from apps.mappings.models import Mapping
from apps.mappings.resolving import build_facts, describe, resolve
from apps.operations.commands import UseCaseCommand
from apps.operations.working import wait
from benchbench.names import find_named


class Command(UseCaseCommand):
    help = """Resolve a mapping: find for every judgment of its dataset the document of its collection.

If none matches, the reason is stored. Run it again after the dataset or the collection has changed.

  benchbench resolve_mapping scifact
  benchbench resolve_mapping scifact --json
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("mapping", help="Name (or id) of the mapping.")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        resolved = resolve(find_named(Mapping, options["mapping"]))
        mapping = resolved.mapping
        if resolved.operation:
            with self.progress("references") as progress:
                wait(
                    resolved.operation,
                    on_progress=lambda event: progress.show_units(event, "processed_refs", "total_refs"),
                )
            mapping.refresh_from_db()
        self.report(build_facts(mapping), describe(mapping), as_json=options["json"])
