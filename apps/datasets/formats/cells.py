"""Cells of a table of judgments: references to documents, one or several, and grades in numbers or words."""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apps.datasets.records import DOC_REF_KEYS, DatasetError
from benchbench.decimals import counted
from benchbench.files.columns import DOCUMENTS, assign_columns, find_field
from benchbench.files.ratings import check_rating, describe_scale, find_scale, is_number, is_unjudged, parse_grade
from benchbench.files.tables import read_table
from benchbench.reading.objects import drop_nulls
from benchbench.reading.strict_json import kind, parse

SEPARATORS = ("\n", "|", ";", ",")  # of several documents in a cell; the first that it has counts
DECIMALS = re.compile(",0{1,2}$")  # as spreadsheets with a decimal comma write whole numbers
IMPLIED = 1  # the grade of documents in a table without grades


@dataclass
class Grades:
    """The judgments of a table's rows. `column` has its grades; without one, each document has the grade IMPLIED.

    A rating that is a number is multiplied by `factor`. Words have the grades of their scale.
    """

    path: Path
    column: str | None
    factor: int
    scale: Mapping[str, int] = field(default_factory=dict)
    unjudged: int = 0
    implied: int = 0
    divided: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Look for words in the column of grades: they are read twice, since all of them decide on their scale."""
        if self.column:
            cells = (row.get(self.column) for _, row in read_table(self.path)[1])
            first = next((cell for cell in cells if not is_unjudged(cell)), 0)
            if not is_number(first):
                self.scale = find_scale([first, *cells])

    def yield_judged(self, location: str, cells: Mapping[str, object]) -> Iterator[tuple[object, int]]:
        """Yield each document of a row with its grade. One without a grade is left out and counted."""
        written = cells.get("grade")
        if not self.column and not is_unjudged(written):
            raise DatasetError(f"{location} has a grade, but the first row has not: give each one.", field="grade")
        for doc_ref, *of_document in self._yield_doc_refs(location, cells):
            cell = of_document[0] if of_document else written
            if doc_ref and not self.column and not of_document:
                self.implied += 1
                yield doc_ref, IMPLIED
            elif doc_ref and is_unjudged(cell):
                self.unjudged += 1
            elif doc_ref or not is_unjudged(cell):
                yield doc_ref, self._parse(location, cell)

    def _yield_doc_refs(self, location: str, cells: Mapping[str, object]) -> Iterator[tuple[object, ...]]:
        """Yield each reference of a row, with the grade that the cell gives it, if any."""
        several = {name: cell for name, cell in cells.items() if find_field(name) == DOCUMENTS}
        single = _parse_doc_ref(location, cells)
        if single or not several:
            yield (single,)
        for name, cell in several.items():
            pieces = _split(cell, is_alone=len(several) == 1)
            if isinstance(cell, str) and len(pieces) > 1:
                self.divided.append(cell)
            for document, *grade in pieces:
                if isinstance(document, dict):
                    yield _read_entry(location, name, document)
                    continue
                text = parse_id(location, name, document)
                if text.strip():
                    yield {"document_id": text.strip()}, *grade

    def _parse(self, location: str, value: object) -> int:
        word = str(value).strip().casefold()
        if word in self.scale:
            return self.scale[word]
        number = DECIMALS.sub("", value.strip().removesuffix("%")) if isinstance(value, str) else value
        grade = parse_grade(number)
        if self.factor != 1:
            with suppress(ValueError):
                rating = check_rating(number) * self.factor
                grade = int(rating) if rating == int(rating) else None
        if grade is None or self.scale:
            remedy = (
                "Write whole numbers, or multiply them, under Grade factor: 10 makes 7 of 0.7."
                if is_number(value)
                else "Write whole numbers, a higher one where more is relevant, or in all rows words of one scale, "
                "such as relevant and not relevant; and remove lines without a judgment."
            )
            raise DatasetError(
                f"{location} has the grade {json.dumps(value, ensure_ascii=False)[:40]}, which is not an integer. "
                f"{remedy}",
                field="grade",
                by_command="--grade-factor 10" if is_number(value) else "",
            )
        return grade

    @property
    def notes(self) -> list[str]:
        """Return sentences on what the grades do not say themselves."""
        name = self.path.name
        implied = f"{name} has no column of grades: each document counts as relevant, with grade {IMPLIED}."
        notes = [implied] if self.implied else []
        if self.divided:
            cells = counted(len(self.divided), "cell")
            notes.append(f"Read as several documents: {cells}, such as {self.divided[0][:60]!a}.")
        if self.scale:
            notes.append(describe_scale(name, self.scale))
        if self.unjudged:
            notes.append(f"Left out: {counted(self.unjudged, 'document')} without a grade.")
        return notes


def _split(cell: object, *, is_alone: bool) -> list[tuple[object, ...]]:
    """Return the documents of a cell, each with its grade there, if any. One of several columns has one document."""
    if isinstance(cell, dict):
        return list(cell.items())
    if isinstance(cell, str) and cell.strip()[:1] == "[" and cell.strip()[-1:] == "]":
        cell = _parse_list(cell.strip())
    elif isinstance(cell, str) and is_alone:
        separator = next((each for each in SEPARATORS if each in cell), None)
        cell = cell.split(separator) if separator else cell
    return [(each,) for each in (cell if isinstance(cell, list) else [cell])]


def _read_entry(location: str, name: str, entry: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the reference of an object in a list of documents, and its grade there, if any."""
    fields = {"document_id": "id"} | assign_columns(entry, {}, ())
    keys = [key for key in DOC_REF_KEYS if fields.get(key) in entry]
    reference = {key: text for key in keys if (text := parse_id(location, name, entry[fields[key]]))}
    return reference, *([entry[fields["grade"]]] if "grade" in fields else [])


def _parse_list(cell: str) -> list[object]:
    """Return the entries of a list in JSON, in Python's spelling, or without quotation marks."""
    with suppress(ValueError, RecursionError):
        return list(json.loads(cell))
    inner = " ".join(cell[1:-1].splitlines()).strip()
    quote = inner[:1] if inner[:1] in ("'", '"') else '"'
    return [each.strip() for each in next(csv.reader([inner], quotechar=quote, skipinitialspace=True), [])]


def _parse_doc_ref(location: str, cells: Mapping[str, object]) -> Any:
    doc_ref = cells.get("doc_ref")
    if isinstance(doc_ref, str) and doc_ref.lstrip().startswith("{"):
        doc_ref = parse(doc_ref, location=f"{location} doc_ref")
    if isinstance(doc_ref, str):
        doc_ref = {"uri": doc_ref} if doc_ref.strip() else None
    doc_ref = drop_nulls(doc_ref)
    key_texts = {name: text for name in DOC_REF_KEYS if (text := parse_id(location, name, cells.get(name)))}
    if doc_ref is None or not key_texts:
        return key_texts if doc_ref is None else doc_ref
    if not isinstance(doc_ref, dict):
        return doc_ref
    return key_texts | doc_ref


def parse_text(location: str, name: str, value: object) -> str:
    """Return a cell as text without surrounding spaces; an integer as its digits, null as ""."""
    return parse_id(location, name, value).strip()


def parse_id(location: str, name: str, value: object) -> str:
    """Return a cell as it is, an integer as its digits; "" for null and for white space alone."""
    if value is None:
        return ""
    if type(value) is int:
        return str(value)
    if not isinstance(value, str):
        raise DatasetError(f"{location} {name} must be a string, not {kind(value)}.", field=name)
    return value if value.strip() else ""
