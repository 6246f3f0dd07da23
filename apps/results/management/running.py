"""The base of the commands that run a benchmark: what starts it, waits for it and reports its results."""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.execution.defining.matrix_options import add_launch
from apps.execution.launching import launch
from apps.operations.commands import UseCaseCommand
from apps.operations.ending import fit_workers
from apps.operations.models import Operation, Status
from apps.operations.working import OperationFailedError, wait
from apps.records.models import Benchmark
from apps.records.provenance import SETTINGS
from apps.results.exporters.documents import render_text
from apps.results.exporters.results_json import build_results
from benchbench.environment import list_stated
from benchbench.errors import BenchbenchError
from benchbench.local_files.placing import make_folder


class RunningCommand(UseCaseCommand):
    """A command that runs a benchmark and reports its results, or that it is running."""

    statuses = "0 done; 1 failed, with the reason on stderr: no run completed; 2 wrong usage."

    def add_running_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of a command that can write a results directory, and of starting, ownership and JSON."""
        parser.add_argument(
            "--output-dir", type=Path, metavar="DIR", help="Wait, and write the results directory DIR/ID."
        )
        add_launch(parser)
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def launch(self, benchmark: Benchmark, options: Mapping[str, Any]) -> Operation:
        return launch(benchmark, by=options["owner"], priority=options["priority"])

    def prepare_folder(self, folder: Path | None, id: str = "") -> None:
        """Make the folder of the results: a search whose results cannot be written would be in vain.

        Refuses an existing results directory `id` in it.
        """
        if folder and id and (target := folder / id).exists():
            raise BenchbenchError(f"{target} exists already: choose another --output-dir, or remove it first.")
        if folder:
            make_folder(folder)

    def warn_of_settings(self, operation: Operation) -> None:
        """Say which settings of this process have no effect, because workers do the runs by theirs."""
        if (names := list_stated(SETTINGS)) and fit_workers(operation):
            self.warn(f"A worker does the runs by its own {' and '.join(names)}: set it where the worker starts.")

    def wait_for(self, operation: Operation) -> None:
        with contextlib.suppress(OperationFailedError), self.progress("benchmark") as progress:  # reported later
            wait(operation, on_progress=progress.show_percent)

    def report_results(
        self,
        benchmark: Benchmark,
        paths: Iterable[Path],
        options: Mapping[str, Any],
        *,
        facts: dict[str, Any] | None = None,
        lines: Iterable[str] = (),
    ) -> None:
        """Report the results, the files at `paths`, and further facts as JSON or lines."""
        written = [str(path) for path in paths]
        files = {"files": written} if options["output_dir"] else {}
        text = [render_text(benchmark), *(f"Wrote {path}." for path in written), *lines]
        self.report(asdict(build_results(benchmark)) | files | (facts or {}), "\n".join(text), as_json=options["json"])

    def require_completed(self, benchmark: Benchmark) -> None:
        if benchmark.status in (Status.FAILED, Status.CANCELLED):
            reason = benchmark.operation.error if benchmark.operation else ""
            raise BenchbenchError(f"The benchmark {benchmark.status}: {reason or 'none of its runs completed.'}")
