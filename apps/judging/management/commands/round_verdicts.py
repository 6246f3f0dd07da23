"""Compare a judging round's runs by people's grades, and by a model's with them."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from apps.judging.finding import find_round
from apps.judging.llm.describing import find_llm_judge, verdicts_report
from apps.judging.llm.verdicts import verdicts_of
from apps.operations.commands import UseCaseCommand


class Command(UseCaseCommand):
    help = """Compare the runs of a judging round under three policies: human, human + llm, corrected.

  benchbench round_verdicts nightly
  benchbench round_verdicts nightly --llm ollama:llama3 --json
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("round", help="Name (or id) of the round.")
        parser.add_argument("--llm", default="", metavar="SERVER:MODEL", help="Default: what was started last.")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        round = find_round(options["round"])
        with self.busy("Comparing the runs"):
            told = verdicts_of(round, find_llm_judge(round, options["llm"]))
        report = verdicts_report(told)
        lines = [f"{verdict.policy}: {told.sentence(verdict)} {verdict.meaning}" for verdict in told.of]
        self.report(asdict(report), "\n".join([*report.warnings, *lines]), as_json=options["json"])
