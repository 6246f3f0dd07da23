"""Let a language model judge a round, after telling the cost; draw the sample that calibrates it."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from apps.judging.finding import find_round
from apps.judging.llm.describing import judge_report
from apps.judging.llm.launching import preview, start_judging
from apps.judging.llm.sampling import draw_sample
from apps.operations.commands import UseCaseCommand
from apps.operations.working import wait


class Command(UseCaseCommand):
    help = """Let a language model judge a round. Its grades are kept apart and never count as people's.

Without --start it tells what that would cost and asks nothing. --sample draws the calibration sample first, which
people judge too (docs/judging.md); without it no figure is told under the model's name.

  benchbench llm_judge nightly --llm ollama:llama3 --sample 100
  benchbench llm_judge nightly --llm ollama:llama3 --most 500 --start
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("round", help="Name (or id) of the round.")
        parser.add_argument("--llm", required=True, metavar="SERVER:MODEL", help="As ollama:llama3.")
        parser.add_argument("--most", type=int, metavar="N", help="At most N answers (default: every item).")
        parser.add_argument("--sample", type=int, metavar="N", help="Draw a calibration sample of 30 to 500 pairs.")
        parser.add_argument("--start", action="store_true", help="Start, and wait for the end.")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        round, llm, most = find_round(options["round"]), options["llm"], options["most"]
        cost = preview(round, llm, most=most)
        if options["sample"] is not None:
            draw_sample(round, options["sample"], None)
        if not options["start"]:
            self.report(asdict(cost), cost.sentence, as_json=options["json"])
            return
        judge, operation = start_judging(round, llm, None, most=most)
        with self.progress("answers") as progress:
            wait(operation, on_progress=lambda event: progress.count(event, "answers", "total_answers"))
        report = judge_report(judge)
        told = [f"{judge}: {report.sentence}", report.calibration.why_not, *report.calibration.warnings]
        self.report(asdict(report), "\n".join(sentence for sentence in told if sentence), as_json=options["json"])
