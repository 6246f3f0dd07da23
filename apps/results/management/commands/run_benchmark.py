"""Run a matrix of search configurations over a mapping."""

import contextlib
import time
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.benchmarks.creating import create_benchmark
from apps.benchmarks.launching import launch
from apps.benchmarks.matrix_options import add_matrix_arguments, in_options, matrix_of
from apps.benchmarks.models import Benchmark
from apps.benchmarks.previewing import preview
from apps.benchmarks.reporting import facts_of, preview_text, text_of
from apps.benchmarks.reproducing import benchmark_from, read_manifest
from apps.benchmarks.verifying import verify
from apps.mappings.finding import find_mapping
from apps.operations.commands import UseCaseCommand
from apps.operations.models import Operation, Status
from apps.operations.working import OperationFailedError, wait
from benchbench.errors import BenchbenchError


class Command(UseCaseCommand):
    help = (
        "Run a matrix of search configurations over a mapping and measure every one of them. Each option that takes a "
        "list multiplies the matrix; an option that a mode does not use does not. Example: "
        "run_benchmark scifact --modes dense,sparse,hybrid --rrf-k 20,60 --wait"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("mapping", nargs="?", help="Name (or id) of the mapping to run over.")
        parser.add_argument(
            "--manifest",
            metavar="FILE",
            help="Run what this manifest describes, wait, and hold it against what the manifest says came of it: exit "
            "status 1 where a value differs. Only --name, --owner and --json go with it.",
        )
        parser.add_argument("--name", help="Name of the benchmark; the mapping's name and the time by default.")
        add_matrix_arguments(parser)
        parser.add_argument("--seed", type=int, default=42)
        parser.add_argument("--execution", choices=["shared", "isolated"], default="shared")
        parser.add_argument("--dry-run", action="store_true", help="Say what would be done, and do nothing.")
        parser.add_argument("--wait", action="store_true", help="Wait for the end; works the queue if no worker does.")
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        if options["manifest"]:
            self.run_again(**options)
            return
        if not options["mapping"]:
            raise BenchbenchError("Name a mapping to run over, or a manifest to run again with --manifest FILE.")
        mapping = find_mapping(options["mapping"])
        matrix = matrix_of(mapping, options)
        if options["dry_run"]:
            with in_options():
                planned = preview(mapping, matrix, measures=options["measures"])
            self.report(planned.as_dict(), preview_text(planned), as_json=options["json"])
            return
        with in_options():
            benchmark = create_benchmark(
                mapping,
                name=options["name"] or f"{mapping.name} {time.strftime('%Y-%m-%d %H:%M:%S')}",
                matrix=matrix,
                owner=options["owner"],
                execution=options["execution"],
                seed=options["seed"],
                measures=options["measures"],
            )
        operation = launch(benchmark, owner=options["owner"])
        if options["wait"]:
            self.wait_for(operation)
        benchmark.refresh_from_db()
        self.report(facts_of(benchmark), text_of(benchmark), as_json=options["json"])
        self.require_completed(benchmark)

    def run_again(self, **options: Any) -> None:
        """Run a manifest, and hold what comes of it against what came of it then."""
        manifest = read_manifest(Path(options["manifest"]))
        benchmark = benchmark_from(manifest, owner=options["owner"], name=options["name"] or "")
        self.wait_for(launch(benchmark, owner=options["owner"]))
        benchmark.refresh_from_db()
        if benchmark.status == Status.CANCELLED:
            self.require_completed(benchmark)
        verification = verify(benchmark)
        told = [verification.sentence, *verification.differences, *verification.environment]
        facts = facts_of(benchmark) | {"verification": verification.as_dict()}
        self.report(facts, "\n".join([text_of(benchmark), "", *told]), as_json=options["json"])
        if not verification.reproduces:
            raise BenchbenchError(verification.sentence)

    def require_completed(self, benchmark: Benchmark) -> None:
        if benchmark.status in (Status.FAILED, Status.CANCELLED):
            reason = benchmark.operation.error if benchmark.operation else ""
            raise BenchbenchError(f"The benchmark {benchmark.status}: {reason or 'none of its runs completed.'}")

    def wait_for(self, operation: Operation) -> None:
        progress = self.progress("benchmark")
        try:
            with contextlib.suppress(OperationFailedError):  # told with the report
                wait(operation, on_progress=progress.share)
        finally:
            progress.close()
