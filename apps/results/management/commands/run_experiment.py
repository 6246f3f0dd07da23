"""Run each combination of an experiment's strategies, stores and models."""

from typing import Any

from django.core.management.base import CommandParser

from apps.execution.defining.matrix_options import add_experiment
from apps.experiments.experiments import plan_experiment, prepare_experiment
from apps.results.exporting import export_to
from apps.results.management.running import RunningCommand


class Command(RunningCommand):
    help = """Run each combination of strategy, backend and embedding of an experiment file (docs/formats.md).

It imports the documents and questions that the file names, and builds the indexes. Without --wait a worker does the
runs. preview_experiment shows what would be done.

  benchbench run_experiment baseline.yaml --preset quick_test --output-dir results
"""

    def add_arguments(self, parser: CommandParser) -> None:
        add_experiment(parser)
        parser.add_argument("--name", default="", help="Name of the benchmark; by default the id of the experiment.")
        self.add_running_arguments(parser)

    def act(self, **options: Any) -> None:
        planned = plan_experiment(options["experiment"], preset=options["preset"])
        self.prepare_folder(options["output_dir"], planned.experiment.id)
        with self.progress("documents indexed") as progress:
            prepared = prepare_experiment(
                planned, name=options["name"], owner=options["owner"], on_progress=progress.show_documents
            )
        for warning in prepared.warnings:
            self.warn(warning)
        benchmark, folder = prepared.benchmark, options["output_dir"]
        operation = self.launch(benchmark, options)
        self.warn_of_settings(operation)
        if options["wait"] or folder:
            self.wait_for(operation)
        benchmark.refresh_from_db()
        self.report_results(benchmark, [export_to(benchmark, "strategy", folder)] if folder else [], options)
        self.require_completed(benchmark)
