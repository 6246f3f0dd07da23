"""Write the results of a benchmark or a run to a file."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.operations.commands import UseCaseCommand
from apps.records.finding import find_subject
from apps.records.models import Run
from apps.results.exporting import EXPORTERS, describe_failures, export_to


def list_formats() -> str:
    return "\n".join(
        f"  {exporter.name:<24} {exporter.exports:<10} {exporter.title}" for exporter in EXPORTERS.values()
    )


class Command(UseCaseCommand):
    help = f"""Write the results of a benchmark, or of one of its runs, to a file.

Formats, and what they export:
{list_formats()}

  benchbench export_results nightly --format markdown --output comment.md
  benchbench export_results nightly --run 2 --format trec-run --output dense.run
  benchbench export_results nightly --dataset-version 3 --format csv --output rescored.csv
  benchbench export_results nightly --format strategy --output results
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("subject", metavar="BENCHMARK|RUN", help="Name or id of a benchmark, or id of a run.")
        parser.add_argument(
            "--run", type=int, metavar="N", help="Run N of the benchmark, from 1, as its leaderboard numbers them."
        )
        parser.add_argument(
            "--format", required=True, choices=EXPORTERS, metavar="FORMAT", help=f"One of {', '.join(EXPORTERS)}."
        )
        parser.add_argument(
            "--dataset-version",
            type=int,
            metavar="N",
            help=(
                "Values on version N of the dataset, as measured by `rescore`; default: the benchmark's own version."
            ),
        )
        parser.add_argument(
            "--output",
            required=True,
            type=Path,
            metavar="PATH",
            help="File to write, or a folder to write it into. Directory formats need a folder.",
        )
        parser.add_argument(
            "--force", action="store_true", help="Replace an existing file; directories are never replaced."
        )
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        subject = find_subject(options["subject"], run=options["run"])
        format, version = options["format"], options["dataset_version"]
        with self.busy("Writing"):
            path = export_to(subject, format, options["output"], version=version, force=options["force"])
        if sentence := describe_failures(subject, EXPORTERS[format], version=version):
            self.warn(sentence)
        size = sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path]))
        run = subject if isinstance(subject, Run) else None
        run_text = f": run {run.run_order}, {run.label}" if run else ""
        facts = {"path": str(path), "format": format, "run": run and run.run_order, "bytes": size}
        facts["warning"] = sentence or None
        self.report(facts, f"Wrote {path}{run_text}, {size:,} bytes.", as_json=options["json"])
