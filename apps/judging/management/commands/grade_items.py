"""Grade items of a judging round from a table of grades."""

import csv
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from apps.judging.errors import RoundError
from apps.judging.finding import find_judge, find_round, items_named
from apps.judging.grading import grade_item
from apps.judging.models import Grade, Round
from apps.operations.commands import UseCaseCommand
from benchbench.decimals import counted

COLUMNS = ("query_key", "document_id", "grade", "note")
WORDS = (Grade.Kind.SKIP.value, Grade.Kind.CANT_TELL.value)


class Command(UseCaseCommand):
    help = """Grade items of a judging round as one of its judges, from a CSV file: all rows or none.

Columns: query_key, document_id, grade (of the scale, or skip, or cant_tell) and, where there are any, note.

  benchbench grade_items nightly grades.csv --judge ada
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("round", help="Name (or id) of the round.")
        parser.add_argument("file", type=Path, metavar="FILE", help="The grades, as CSV.")
        parser.add_argument("--judge", metavar="USER", help="Whose grades they are (default: the only judge).")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        round = find_round(options["round"])
        judge = find_judge(round, options["judge"])
        rows = read_rows(options["file"])
        grade_rows(round, judge, rows, options["file"].name)
        text = f'{judge} graded {counted(len(rows), "item")} of the round "{round}".'
        self.report({"graded": len(rows)}, text, as_json=options["json"])


@transaction.atomic
def grade_rows(round: Round, judge: Any, rows: list[dict[str, str]], where: str) -> None:
    """Keep the grades of a table; an error names the line."""
    items = items_named(round)
    for line, row in enumerate(rows, start=2):
        pair = (row["query_key"], row["document_id"])
        if pair not in items:
            raise RoundError(f"{where}, line {line}: the round has no item of {pair[0]!r} and {pair[1]!r}.")
        said = row["grade"].strip()
        grade: dict[str, Any] = {"kind": said} if said in WORDS else {"grade": _whole(said, where, line)}
        try:
            grade_item(round, items[pair], judge, note=row.get("note") or "", **grade)
        except RoundError as error:
            raise RoundError(f"{where}, line {line}: {error.message}") from error


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file of COLUMNS. Raises RoundError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RoundError(f"{path} cannot be read: {getattr(error, 'strerror', '') or error}.") from None
    missing = [name for name in COLUMNS[:3] if name not in (reader.fieldnames or ())]
    if missing:
        raise RoundError(f"{path.name} has no column {missing[0]}: it needs {', '.join(COLUMNS[:3])}.")
    for line, row in enumerate(rows, start=2):
        if any(row[name] is None for name in COLUMNS[:3]):
            raise RoundError(f"{path.name}, line {line}: the row is too short.")
    return rows


def _whole(text: str, where: str, line: int) -> int:
    if not text.isascii() or not text.isdecimal():
        raise RoundError(f"{where}, line {line}: {text!r} is no grade of a scale, and neither skip nor cant_tell.")
    return int(text)
