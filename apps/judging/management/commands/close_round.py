"""Close a judging round: its grades become the next version of the dataset."""

from typing import Any

from django.core.management.base import CommandParser

from apps.judging.closing import close_round
from apps.judging.finding import find_round
from apps.operations.commands import UseCaseCommand
from benchbench.reading.strict_json import attributes


class Command(UseCaseCommand):
    help = """Close a judging round: its grades become the next version of the dataset, and its runs are measured again.

Rankings are stored: nothing is searched. Refused where items wait for adjudication, or the dataset has a draft of other
edits, unless an option says what to do with them.

  benchbench close_round nightly
  benchbench close_round nightly --leave-out-split --label 2026-12
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("round", help="Name (or id) of the round.")
        parser.add_argument("--leave-out-split", action="store_true", help="Leave out items whose judges are split.")
        parser.add_argument("--with-draft", action="store_true", help="Freeze the other edits of the draft too.")
        parser.add_argument("--label", default="", help="What the version is called, such as 2026-12.")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        round = find_round(options["round"])
        choices = {name: options[name] for name in ("leave_out_split", "with_draft", "label")}
        with self.busy("Closing"):
            closed = close_round(round, None, **choices)
        facts = {
            "version": closed.version.number if closed.version else None,
            **attributes(closed, "judgments", "split", "outdated", "judged", "sentence"),
        }
        self.report(facts, closed.sentence, as_json=options["json"])
