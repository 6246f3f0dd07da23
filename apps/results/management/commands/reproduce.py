"""Run an exported benchmark again, and compare the figures with its file."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from apps.experiments.reproducing import read_definition, reproduce
from apps.experiments.verifying import verify
from apps.operations.models import Status
from apps.results.exporting import export_to
from apps.results.management.running import RunningCommand
from benchbench.errors import BenchbenchError
from benchbench.reading.strict_json import attributes

COMPARED = (Status.COMPLETED, Status.FAILED)


class Command(RunningCommand):
    help = """Run the benchmark of an experiment.yaml or config.yaml again, on the data that its hashes name.

If the file has figures, the command waits and compares them.

  benchbench reproduce which-search.experiment.yaml
"""
    statuses = (
        "0 done; 1 failed, with the reason on stderr: no run completed, or a figure of the file differs; 2 wrong usage."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("experiment", type=Path, metavar="FILE", help="A benchmark exported by BenchBench.")
        parser.add_argument("--name", default="", help="Name of the benchmark; by default made from the file's.")
        self.add_running_arguments(parser)

    def act(self, **options: Any) -> None:
        definition, folder = read_definition(options["experiment"]), options["output_dir"]
        if definition.get("id"):
            self.prepare_folder(folder, str(definition["id"]))
        with transaction.atomic():
            benchmark = reproduce(definition, owner=options["owner"], name=options["name"])
            operation = self.launch(benchmark, options)
        self.warn_of_settings(operation)
        if options["wait"] or folder or benchmark.manifest:
            self.wait_for(operation)
        benchmark.refresh_from_db()
        paths = [export_to(benchmark, "strategy", folder)] if folder else []
        if not benchmark.manifest or benchmark.status not in COMPARED:
            self.report_results(benchmark, paths, options)
            self.require_completed(benchmark)
            return
        verification = verify(benchmark)
        facts = {"verification": attributes(verification, "reproduces", "source", "differences", "environment")}
        lines = ["", verification.sentence, *verification.differences, *verification.environment]
        self.report_results(benchmark, paths, options, facts=facts, lines=lines)
        if not verification.reproduces:
            raise BenchbenchError(verification.sentence)
        self.require_completed(benchmark)
