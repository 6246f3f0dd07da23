"""Write a version of a dataset in a format that import_dataset reads again."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.datasets.formats.registry import WRITERS
from apps.datasets.models import Dataset
from apps.datasets.versions import find_version
from apps.mappings.exporting import export_dataset
from apps.mappings.models import Mapping
from apps.operations.commands import UseCaseCommand
from benchbench.decimals import counted
from benchbench.names import find_named


def list_formats() -> str:
    return "\n".join(
        f"  {name:<18}{writer.label}{'' if writer.extension else ' (a directory, or a zip)'}"
        for name, writer in WRITERS.items()
    )


class Command(UseCaseCommand):
    help = f"""Write a version of a dataset, its draft too, in a format that import_dataset reads again.

{list_formats()}

What a format cannot hold is left out, with a message; an export that would change relevance is refused. PATH is
compressed if it ends in .gz. A format of several files is a zip if PATH ends in .zip, else a directory. Formats
that name documents by id alone need --mapping if judgments use other references; with it a BEIR directory holds the
corpus too.

  benchbench export_dataset support --format benchbench-json --output support.json
  benchbench export_dataset support --format beir --mapping "support on handbook" --output support-beir/
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("dataset", help="Name (or id) of the dataset.")
        parser.add_argument(
            "--format", required=True, choices=WRITERS, metavar="FORMAT", help=f"One of {', '.join(WRITERS)}."
        )
        parser.add_argument(
            "--output",
            required=True,
            type=Path,
            metavar="PATH",
            help="File to write, or a folder for it; for several files, a new directory or a .zip.",
        )
        parser.add_argument(
            "--dataset-version", type=int, metavar="N", help="Number of the version (default: the newest frozen one)."
        )
        parser.add_argument("--mapping", metavar="NAME", help="Name documents as this mapping of the dataset does.")
        parser.add_argument("--force", action="store_true", help="Replace an existing file.")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        version = find_version(find_named(Dataset, options["dataset"]), options["dataset_version"])
        mapping = find_named(Mapping, options["mapping"]) if options["mapping"] else None
        with self.busy("Writing"):
            export = export_dataset(version, options["format"], mapping=mapping)
            path = export.save(options["output"], force=options["force"])
        for warning in export.warnings:
            self.warn(warning)
        queries = export.record.queries
        facts = {
            "path": str(path),
            "format": options["format"],
            "version": version.number,
            "queries": len(queries),
            "judgments": sum(len(query.judgments) for query in queries),
            "warnings": export.warnings,
        }
        totals = f"{counted(facts['queries'], 'query')}, {counted(facts['judgments'], 'judgment')}"
        text = f"Wrote {version} to {path}: {totals}."
        self.report(facts, text, as_json=options["json"])
