"""Run a matrix of search configurations over a mapping."""

import contextlib
import time
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from apps.collections.models import Collection
from apps.datasets.formats.reading import read_dataset
from apps.datasets.importing import ensure_dataset
from apps.datasets.models import DatasetVersion
from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
from apps.execution.defining.matrix_options import (
    add_allow_missing,
    add_execution,
    add_launch,
    add_matrix_arguments,
    add_report_of_spec002,
    add_what_is_run,
    build_matrix,
    in_options,
)
from apps.mappings.creating import ensure_external, ensure_mapping
from apps.mappings.models import Mapping
from apps.mappings.rereading import find_reading
from apps.operations.models import Operation
from apps.operations.working import OperationFailedError, wait
from apps.records.models import Benchmark
from apps.results.exporters.spec002 import Console, write_baselines
from apps.results.management.running import RunningCommand
from benchbench.files.spec002 import LIMIT
from benchbench.ir.planning.configuration import DEFAULTS
from benchbench.names import MAX_LENGTH, find_named
from benchbench.reading.calls import split_calls

DEFAULT_TOP_K = DEFAULTS["top_k"]


class Command(RunningCommand):
    help = """Run a matrix of search configurations over a mapping, and measure every one of them.

Each option that takes a list multiplies the matrix, except in modes that do not use it. Without --wait a worker does
the runs. With --wait they are done here if no worker is running, and the leaderboard is printed. preview_benchmark
shows what would be done.

  benchbench run_benchmark scifact --modes dense,sparse,hybrid --rrf-k 20,60 --wait
  benchbench run_benchmark --queries benchmark_queries.json --collection odoo --verbose --output-dir results
"""

    def add_arguments(self, parser: CommandParser) -> None:
        add_what_is_run(parser)
        parser.add_argument("--name", help="Name of the benchmark; by default the mapping's name and the time.")
        parser.add_argument("--tags", type=split_calls, default=[], help="Comma-separated words to filter lists by.")
        add_allow_missing(parser)
        add_matrix_arguments(parser)
        execution = parser.add_argument_group("execution")
        add_execution(execution)
        execution.add_argument("--seed", type=int, metavar="N", help="Seed of everything random (default: 42).")
        add_launch(execution)
        add_report_of_spec002(parser)
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        self.require_fitting(options)
        if not options["execution"] and (options["verbose"] or options["output_dir"]):
            options["execution"] = Benchmark.Execution.ISOLATED  # the report of SPEC-002 has each query's own time
        with transaction.atomic(), in_options():  # nothing is stored unless the benchmark starts
            mapping, version = self.load_mapping(options)
            now = f" {time.strftime('%Y-%m-%d %H:%M:%S')}"
            name = options["name"] or mapping.name[: MAX_LENGTH - len(now)] + now
            settings = BenchmarkOptions.from_values(options, name=name, matrix=build_matrix(mapping, options))
            benchmark = create_benchmark(mapping, settings, owner=options["owner"], version=version)
            operation = self.launch(benchmark, options)
            self.prepare_folder(options["output_dir"])
        self.run(benchmark, operation, **options)

    def require_fitting(self, options: dict[str, Any]) -> None:
        """Refuse options that conflict."""
        if bool(options["mapping"]) == bool(options["queries"]):
            raise self.misuse("Name one thing to run: a mapping, or --queries FILE with --collection NAME.")
        if bool(options["queries"]) != bool(options["collection"] or (options["queries"] and options["engines"])):
            raise self.misuse("Give --queries and --collection together; search engines alone need no --collection.")
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
        doc_refs = (judgment.doc_ref for query in record.queries for judgment in query.judgments)
        if collection and (reading := find_reading(doc_refs, collection)):
            record = reading.apply(record)
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
        baselines = write_baselines(benchmark, folder, limit=limit) if folder else {}
        if options["verbose"]:
            console.close(baselines)
        if not options["verbose"] or benchmark.total_runs > 1:
            self.report_results(benchmark, baselines.values(), options)
        else:  # the report of SPEC-002 does not show warnings
            for warning in benchmark.runs.get().warnings:
                self.warn(warning)
        self.require_completed(benchmark)
