"""Run a matrix of search configurations over a mapping."""

import contextlib
import time
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from apps.benchmarks.defining.creating import BenchmarkOptions, create_benchmark
from apps.benchmarks.defining.matrix_options import (
    OPTIONS,
    add_execution,
    add_matrix_arguments,
    add_report_of_spec002,
    add_what_is_run,
    build_matrix,
    in_options,
    name_of,
)
from apps.benchmarks.defining.previewing import preview, preview_text
from apps.benchmarks.launching import launch
from apps.benchmarks.models import Benchmark
from apps.benchmarks.provenance import SETTINGS
from apps.benchmarks.repeating.experiments import plan_experiment, prepare_experiment
from apps.benchmarks.repeating.reproducing import read_definition, reproduce
from apps.benchmarks.repeating.verifying import verify
from apps.collections.models import Collection
from apps.datasets.formats.registry import read_dataset
from apps.datasets.importing import ensure_dataset
from apps.datasets.models import DatasetVersion
from apps.mappings.creating import ensure_external, ensure_mapping
from apps.mappings.models import Mapping
from apps.operations.commands import UseCaseCommand
from apps.operations.ending import fit_workers
from apps.operations.models import Operation, Status
from apps.operations.working import OperationFailedError, wait
from apps.results.exporters.documents import render_text
from apps.results.exporters.results_json import build_results
from apps.results.exporters.spec002 import Console, write_baselines
from apps.results.exporting import export_to
from benchbench.environment import list_stated
from benchbench.errors import BenchbenchError
from benchbench.files.spec002 import LIMIT
from benchbench.ir.planning.configuration import DEFAULTS
from benchbench.local_files.placing import make_folder
from benchbench.names import MAX_LENGTH, find_named
from benchbench.reading.kinds import split_calls
from benchbench.reading.strict_json import attributes

DEFAULT_TOP_K = DEFAULTS["top_k"]
COMPARED = (Status.COMPLETED, Status.FAILED)
EXPERIMENT_OPTIONS = (  # options that an experiment file states
    *OPTIONS.values(),
    "--tags",
    "--measures",
    "--execution",
    "--seed",
    "--unresolved",
    "--empty-queries",
    "--weighting",
    "--allow-missing",
)


class Command(UseCaseCommand):
    help = """Run a matrix of search configurations over a mapping, and measure every one of them.

Each option that takes a list multiplies the matrix, except in modes that do not use it. Without --wait a worker does
the runs. With --wait they are done here if no worker is running, and the leaderboard is printed.

  benchbench run_benchmark scifact --modes dense,sparse,hybrid --rrf-k 20,60 --wait
  benchbench run_benchmark scifact --rerank both --rerank-depth 20 --dry-run
  benchbench run_benchmark --queries benchmark_queries.json --collection odoo --verbose --output-dir results
  benchbench run_benchmark --experiment baseline.yaml --preset quick_test --output-dir results
  benchbench run_benchmark --experiment which-search.experiment.yaml
"""
    statuses = (
        "0 done; 1 failed, with the reason on stderr: no run completed, or a figure of the experiment "
        "file differs; 2 wrong usage."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_what_is_run(parser)
        parser.add_argument("--name", help="Name of the benchmark; by default the mapping's name and the time.")
        parser.add_argument("--tags", type=split_calls, default=[], help="Comma-separated words to filter lists by.")
        parser.add_argument(
            "--allow-missing",
            action="store_true",
            help="Run module queries (SPEC-001) even if the collection lacks modules; those count as not found.",
        )
        add_matrix_arguments(parser)
        add_execution(parser)
        add_report_of_spec002(parser)
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        self.require_fitting(options)
        if not options["execution"] and (options["verbose"] or options["output_dir"]) and not options["experiment"]:
            options["execution"] = Benchmark.Execution.ISOLATED  # the report of SPEC-002 has each query's own time
        if options["experiment"]:
            self.run_experiment(**options)
            return
        if options["dry_run"]:
            self.foresee(**options)
            return
        with transaction.atomic(), in_options():  # nothing is stored unless the benchmark starts
            mapping, version = self.load_mapping(options)
            now = f" {time.strftime('%Y-%m-%d %H:%M:%S')}"
            name = options["name"] or mapping.name[: MAX_LENGTH - len(now)] + now
            settings = BenchmarkOptions.from_values(options, name=name, matrix=build_matrix(mapping, options))
            benchmark = create_benchmark(mapping, settings, owner=options["owner"], version=version)
            operation = self.launch(benchmark, options)
            self.prepare_folder(options)
        self.run(benchmark, operation, **options)

    def foresee(self, **options: Any) -> None:
        """Show what a benchmark of a mapping would do."""
        mapping, _ = self.load_mapping(options)
        with in_options():
            preview_options = {name: options[name] for name in ("owner", "measures", "allow_missing")}
            preview_options["execution"] = options["execution"] or Benchmark.Execution.SHARED
            planned = preview(mapping, build_matrix(mapping, options), **preview_options)
        facts = {"total_runs": planned.total_runs} | asdict(planned)
        self.report(facts, preview_text(planned, preview_options["execution"]), as_json=options["json"])

    def launch(self, benchmark: Benchmark, options: dict[str, Any]) -> Operation:
        return launch(benchmark, by=options["owner"], priority=options["priority"])

    def prepare_folder(self, options: dict[str, Any]) -> None:
        """Make the folder of the results: a search whose results cannot be written would be in vain."""
        if options["output_dir"]:
            make_folder(options["output_dir"])

    def require_fitting(self, options: dict[str, Any]) -> None:
        """Refuse options that conflict, or that an experiment file states itself."""
        subjects = [name for name in ("mapping", "queries", "experiment") if options[name]]
        conflicts = [option for option in EXPERIMENT_OPTIONS if options[name_of(option)] not in (None, False, [])]
        if len(subjects) != 1:
            raise self.misuse(
                "Name one thing to run: a mapping, --queries FILE with --collection NAME, or --experiment FILE."
            )
        if options["experiment"] and conflicts:
            raise self.misuse(f"The experiment file defines what to run: leave out {', '.join(conflicts)}.")
        if options["preset"] and not options["experiment"]:
            raise self.misuse("--preset needs --experiment.")
        if bool(options["queries"]) != bool(options["collection"] or (options["queries"] and options["engines"])):
            raise self.misuse("Give --queries and --collection together; search engines alone need no --collection.")
        if options["queries"] and options["dry_run"]:
            raise self.misuse("--dry-run cannot import --queries: name a mapping instead.")
        if options["verbose"] and options["json"]:
            raise self.misuse("--verbose prints for people and --json for programs: choose one.")
        if options["limit"] and not (options["verbose"] or options["output_dir"]):
            raise self.misuse(
                "--limit needs --verbose or --output-dir; use --top-k to set how many results a run returns."
            )
        top_k = min(options["top_k"] or [DEFAULT_TOP_K])
        if (options["limit"] or LIMIT) > top_k and (options["verbose"] or options["output_dir"]):
            raise self.misuse(f"--limit {options['limit'] or LIMIT} must be at most --top-k, which is {top_k}.")

    def load_mapping(self, options: dict[str, Any]) -> tuple[Mapping, DatasetVersion | None]:
        """Return the named mapping, or the mapping of the queries file and the version that holds its content."""
        if not options["queries"]:
            return find_named(Mapping, options["mapping"], owner=options["owner"]), None
        name, owner = options["collection"], options["owner"]
        collection = find_named(Collection, name, owner=owner) if name else None
        record, source = read_dataset(options["queries"]), f"queries {options['queries'].resolve()}"
        imported = ensure_dataset(record, name=record.name, source=source, owner=owner)
        dataset = imported.version.dataset
        for warning in imported.report.warnings:
            self.warn(warning)
        mapping = ensure_mapping(dataset, collection, owner=owner) if collection else ensure_external(dataset)
        return mapping, imported.version

    def run(self, benchmark: Benchmark, operation: Operation, **options: Any) -> None:
        """Report the results of a started benchmark, or that it is running."""
        limit, folder = options["limit"] or LIMIT, options["output_dir"]
        self.warn_of_settings(operation)
        if options["verbose"]:
            console = Console(benchmark, self.stdout.write, limit=limit, source=str(options["queries"] or ""))
            with contextlib.suppress(OperationFailedError):  # reported below
                wait(operation, on_progress=lambda event: console.poll())
        elif options["wait"] or folder:
            self.wait_for(operation)
        benchmark.refresh_from_db()
        baselines = write_baselines(benchmark, folder, limit=limit) if folder and not options["experiment"] else {}
        if options["verbose"]:
            console.close(baselines)
        paths = [*baselines.values()]
        if folder and options["experiment"]:
            paths.append(export_to(benchmark, "strategy", folder))
        verification = verify(benchmark) if benchmark.manifest and benchmark.status in COMPARED else None
        facts = asdict(build_results(benchmark)) | ({"files": [str(path) for path in paths]} if folder else {})
        lines = [render_text(benchmark), *(f"Wrote {path}." for path in paths)]
        if verification:
            names = ("reproduces", "source", "differences", "environment")
            facts["verification"] = attributes(verification, *names)
            lines += ["", verification.sentence, *verification.differences, *verification.environment]
        text = "\n".join(lines)
        if not options["verbose"] or benchmark.total_runs > 1:
            self.report(facts, text, as_json=options["json"])
        else:  # the report of SPEC-002 does not show warnings
            for warning in benchmark.runs.get().warnings:
                self.warn(warning)
        if verification and not verification.reproduces:
            raise BenchbenchError(verification.sentence)
        self.require_completed(benchmark)

    def run_experiment(self, **options: Any) -> None:
        """Run an experiment file, or show the plan."""
        if definition := read_definition(options["experiment"]):
            self.run_definition(definition, **options)
            return
        planned = plan_experiment(options["experiment"], preset=options["preset"])
        if options["dry_run"]:
            self.report(planned.as_dict(), planned.as_text(), as_json=options["json"])
            return
        self.require_room(planned.experiment.id, options)
        with self.progress("documents indexed") as progress:
            prepared = prepare_experiment(
                planned,
                name=options["name"] or "",
                owner=options["owner"],
                on_progress=progress.show_documents,
            )
        for warning in prepared.warnings:
            self.warn(warning)
        self.run(prepared.benchmark, self.launch(prepared.benchmark, options), **options)

    def run_definition(self, definition: dict[str, Any], **options: Any) -> None:
        """Run the benchmark of an experiment file, and compare its figures with the file's, if any."""
        conflicts = [option for option in ("--preset", "--dry-run") if options[name_of(option)]]
        if conflicts:
            raise self.misuse(f"{options['experiment']} defines one benchmark: leave out {conflicts[0]}.")
        if definition.get("id"):
            self.require_room(str(definition["id"]), options)
        with transaction.atomic():
            benchmark = reproduce(definition, owner=options["owner"], name=options["name"] or "")
            operation = self.launch(benchmark, options)
        self.run(benchmark, operation, **options | {"wait": options["wait"] or bool(benchmark.manifest)})

    def require_room(self, id: str, options: dict[str, Any]) -> None:
        """Refuse an existing results directory before running anything, and make the folder around it."""
        if options["output_dir"] and (target := options["output_dir"] / id).exists():
            raise BenchbenchError(f"{target} exists already: choose another --output-dir, or remove it first.")
        self.prepare_folder(options)

    def warn_of_settings(self, operation: Operation) -> None:
        """Say which settings of this process have no effect, because workers do the runs by theirs."""
        if (names := list_stated(SETTINGS)) and fit_workers(operation):
            self.warn(f"A worker does the runs by its own {' and '.join(names)}: set it where the worker starts.")

    def require_completed(self, benchmark: Benchmark) -> None:
        if benchmark.status in (Status.FAILED, Status.CANCELLED):
            reason = benchmark.operation.error if benchmark.operation else ""
            raise BenchbenchError(f"The benchmark {benchmark.status}: {reason or 'none of its runs completed.'}")

    def wait_for(self, operation: Operation) -> None:
        with contextlib.suppress(OperationFailedError), self.progress("benchmark") as progress:  # reported later
            wait(operation, on_progress=progress.show_percent)
