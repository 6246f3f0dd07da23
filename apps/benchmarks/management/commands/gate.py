"""Judge a run, or the best run of a benchmark, by written rules."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from apps.operations.commands import UseCaseCommand
from apps.records.finding import find_subject
from apps.records.models import Benchmark
from apps.verdicts.gates.baselines import find_baseline
from apps.verdicts.gates.gating import gate
from apps.verdicts.gates.reports import render_headline, render_markdown, report_of
from apps.verdicts.gates.rules import read_rules
from benchbench.errors import BenchbenchError
from benchbench.ir.gate import Outcome
from benchbench.reading.strict_json import read_text


def parse_run_choice(text: str) -> int | str:
    if text == "all":
        return text
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} must be the number of a run, or all")
    return int(text)


class Command(UseCaseCommand):
    help = """Judge a run, or the best run of a benchmark, by written rules (docs/gates.md).

Prints Markdown for a pull request: the verdict, and the required and the observed value of each check.

  benchbench gate nightly --rules gate.yaml
  benchbench gate nightly --rules gate.yaml --baseline main --markdown comment.md
  benchbench gate nightly --rules gate.yaml --run 2 --json
"""
    error_status = 2
    statuses = "0 passed; 1 failed; 2 cannot be decided, or wrong usage."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("subject", metavar="RUN|BENCHMARK", help="Id of a run, or name or id of a benchmark.")
        parser.add_argument("--rules", required=True, type=Path, metavar="FILE", help="The rules, in YAML.")
        parser.add_argument("--baseline", metavar="NAME", help="Name or id of a current baseline (default: none).")
        parser.add_argument(
            "--run",
            type=parse_run_choice,
            metavar="N|all",
            help="Judge run N of the benchmark, or all (default: its best).",
        )
        parser.add_argument(
            "--dataset-version",
            type=int,
            metavar="N",
            help="Values on version N of the dataset, as measured by `rescore`; default: the benchmark's own version.",
        )
        parser.add_argument("--markdown", type=Path, metavar="FILE", help="Also write the Markdown to this file.")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        rules = read_rules(read_text(options["rules"]), location=options["rules"].name)
        subject = find_subject(options["subject"], run=options["run"])
        benchmark = subject if isinstance(subject, Benchmark) else subject.benchmark
        baseline_name = options["baseline"]
        baseline = find_baseline(baseline_name, benchmark.dataset_version.dataset) if baseline_name else None
        with self.busy("Judging"):
            every, version = options["run"] == "all", options["dataset_version"]
            result = gate(subject, rules=rules, baseline=baseline, every_run=every, version=version)
        markdown = render_markdown(result)
        if options["markdown"]:
            write(options["markdown"], markdown)
        self.report(asdict(report_of(result)), markdown.rstrip("\n"), as_json=options["json"])
        if result.outcome != Outcome.PASSED:
            missed = dict.fromkeys(check.name for verdict in result.verdicts for check in verdict.missed)
            message = f"{render_headline(result)}: {', '.join(missed)}."
            raise CommandError(message, returncode=1 if result.outcome == Outcome.FAILED else 2)


def write(path: Path, markdown: str) -> None:
    try:
        path.write_text(markdown, encoding="utf-8")
    except OSError as error:
        raise BenchbenchError(f"{path} cannot be written: {error.strerror or error}.") from None
