"""Grade items of a judging round from a table of grades."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from apps.judging.errors import RoundError
from apps.judging.finding import find_judge, find_round, items_named
from apps.judging.grading import grade_item, lock_items
from apps.judging.models import Grade, Round
from apps.operations.commands import UseCaseCommand
from benchbench.decimals import counted
from benchbench.files.tables import read_table

COLUMNS = ("query_key", "document_id", "grade")
WORDS = (Grade.Kind.SKIP.value, Grade.Kind.CANT_TELL.value)


class Command(UseCaseCommand):
    help = """Grade items of a judging round as one of its judges, from a table, CSV or JSON Lines: all rows or none.

Columns: query_key, document_id, grade (of the scale, or skip, or cant_tell) and, where there are any, note.

  benchbench grade_items nightly grades.csv --judge ada
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("round", help="Name (or id) of the round.")
        parser.add_argument("file", type=Path, metavar="FILE", help="The grades.")
        parser.add_argument("--judge", metavar="USER", help="Whose grades they are (default: the only judge).")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        round = find_round(options["round"])
        judge = find_judge(round, options["judge"])
        graded = grade_rows(round, judge, options["file"])
        text = f'{judge} graded {counted(graded, "item")} of the round "{round}".'
        self.report({"graded": graded}, text, as_json=options["json"])


@transaction.atomic
def grade_rows(round: Round, judge: Any, path: Path) -> int:
    """Keep the grades of a table, and return how many; an error names the line."""
    columns, rows = read_table(path)
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise RoundError(f"{path.name} has no column {missing[0]}: it needs {', '.join(COLUMNS)}.")
    items, given = items_named(round), []
    for place, row in rows:
        where = place.rstrip(",")
        key, document, said = (str(row.get(name, "")) for name in COLUMNS)
        if (key, document) not in items:
            raise RoundError(f"{where}: the round has no item of {key!r} and {document!r}.")
        said = said.strip()
        grade: dict[str, Any] = {"kind": said} if said in WORDS else {"grade": _whole(said, where)}
        given.append((where, items[key, document], grade | {"note": str(row.get("note") or "")}))
    lock_items(round, {item_id for _, item_id, _ in given})
    for where, item_id, grade in given:
        try:
            grade_item(round, item_id, judge, **grade)
        except RoundError as error:
            raise RoundError(f"{where}: {error.message}") from error
    return len(given)


def _whole(text: str, where: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise RoundError(f"{where}: {text!r} is no grade of a scale, and neither skip nor cant_tell.")
    return int(text)
