"""Tell how far a judging round is and what is settled."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from apps.judging.finding import find_round
from apps.judging.settling.agreeing import Agreement, agreement_of
from apps.judging.settling.describing import agreement_report, round_report
from apps.judging.settling.summing import Summary, summary_of
from apps.operations.commands import UseCaseCommand


class Command(UseCaseCommand):
    help = """Tell how far a judging round is, each judge's pace, how far they agree, and whether it is settled.

  benchbench round_state nightly
  benchbench round_state nightly --json
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("round", help="Name (or id) of the round.")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        round = find_round(options["round"])
        with self.busy("Reading the grades"):
            summary, agreement = summary_of(round, here=True), agreement_of(round)
        facts = asdict(round_report(summary)) | {"agreement": asdict(agreement_report(agreement))}
        self.report(facts, _text(summary, agreement), as_json=options["json"])


def _text(summary: Summary, agreement: Agreement) -> str:
    lines = [summary.sentence]
    for judge in summary.progress.judges:
        pace = "" if judge.pace is None else f", {judge.pace:.1f} s each"
        left = "" if judge.left is None else f", {judge.left / 60:.0f} min left"
        lines.append(f"  {judge.user.get_username()}: {judge.graded:,} graded, {judge.skipped:,} skipped{pace}{left}")
    if agreement.alpha is not None and agreement.alpha.value is not None:
        interval = agreement.alpha.interval
        ends = f" ({interval.low:.2f} to {interval.high:.2f})" if interval else ""
        lines.append(f"  alpha {agreement.alpha.value:.2f}{ends} over {agreement.alpha.shared:,} shared items")
    return "\n".join(lines)
