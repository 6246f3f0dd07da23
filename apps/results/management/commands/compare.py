"""Compare two runs, or two summary.json files."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.operations.commands import UseCaseCommand
from apps.records.comparability import find_newest_version
from apps.records.finding import find_run, find_subject
from apps.records.models import Benchmark, Run
from apps.results.comparison_report import build_report, render_changes, render_pair
from apps.verdicts.comparing import compare_runs
from benchbench.errors import BenchbenchError
from benchbench.files.flowbaby_results import compare_summaries, read_summary
from benchbench.names import find_named


class Command(UseCaseCommand):
    help = """Compare two runs query by query, or two summary.json files of two versions of a program.

Runs of different datasets, dataset versions or canonicalization versions are refused. The command does not
judge the difference: use `gate` for that.

  benchbench compare nightly:1 nightly:2
  benchbench compare last/summary.json summary.json --json
"""
    statuses = "0 compared, with any outcome; 1 refused or not readable; 2 wrong usage."

    def add_arguments(self, parser: CommandParser) -> None:
        for name in ("A", "B"):
            parser.add_argument(
                name.lower(), metavar=name, help="Id of a run, BENCHMARK:N for run N of a benchmark, or a summary.json."
            )
        parser.add_argument(
            "--margin",
            type=float,
            metavar="LOSS",
            help="The loss in the primary measure that you accept when B replaces A: test whether B stays within it.",
        )
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        names = [options["a"], options["b"]]
        files = [os.path.isfile(name) for name in names]
        if any(files) != all(files):
            lonely = names[files.index(False)]
            raise self.misuse(f"Compare two files or two runs: {lonely!r} is not a file, but the other is.")
        if all(files):
            facts = compare_summaries(*(read_summary(Path(name)) for name in names))
            text = render_changes(facts)
        else:
            before, after = map(find_run_by_name, names)
            with self.busy("Comparing"):
                newest = find_newest_version([before, after])
                comparison = compare_runs([before, after], baseline=before, version=newest)
                report = build_report(comparison, margin=options["margin"])
            facts, text = asdict(report), render_pair(report)
        self.report(facts, text, as_json=options["json"])


def find_run_by_name(name: str) -> Run:
    benchmark, colon, order = name.rpartition(":")
    if colon and order.isdecimal():
        return find_run(find_named(Benchmark, benchmark), int(order))
    subject = find_subject(name)
    if not isinstance(subject, Run):
        raise BenchbenchError(f'"{subject}" is a benchmark: name one of its runs, such as {name}:1.')
    return subject
