"""Hand out the next items of a judging round to a judge."""

from typing import Any

from django.core.management.base import CommandParser

from apps.judging.finding import find_judge, find_round
from apps.judging.handing import next_items
from apps.judging.showing import Shown, show_ungraded
from apps.operations.commands import UseCaseCommand


class Command(UseCaseCommand):
    help = """Hand out the next items of a judging round: query, document and its best passage.

They are the judge's for ten minutes. What is printed as JSON has the keys by which `grade_items` reads grades.

  benchbench next_items nightly --judge ada
  benchbench next_items nightly --judge ada --count 20 --json
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("round", help="Name (or id) of the round.")
        parser.add_argument("--judge", metavar="USER", help="Who will grade them (default: the only judge).")
        parser.add_argument("--count", type=int, default=1, help="How many (default: 1; at most 20).")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        round = find_round(options["round"])
        judge = find_judge(round, options["judge"])
        items = show_ungraded(next_items(round, judge, count=options["count"]))
        text = "\n\n".join(map(_text, items)) or "No item is left for this judge."
        self.report({"items": [_facts(item) for item in items]}, text, as_json=options["json"])


def _facts(shown: Shown) -> dict[str, Any]:
    query, document = shown.item.query, shown.item.document
    return {
        "query_key": query.key,
        "query_text": query.text,
        "document_id": document.external_id,
        "title": document.title,
        "passage": shown.passage,
        "text": shown.text,
    }


def _text(shown: Shown) -> str:
    query, document = shown.item.query, shown.item.document
    passage = shown.passage or shown.text
    return f"{query.key}: {query.text}\n  {document.external_id}: {document.title}\n  {passage[:500]}"
