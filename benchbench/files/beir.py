"""A BEIR directory's queries and judgments: queries.jsonl and qrels/SPLIT.tsv, read (`.gz` too) and written."""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from benchbench.errors import FileFormatError
from benchbench.files.ratings import parse_grade
from benchbench.reading.objects import Filled, Identifier, StrictRecord, read_as, refuse
from benchbench.reading.strict_json import dump_lines, read_lines, read_objects

HEADER = ["query-id", "corpus-id", "score"]
FEWEST_RANKS = 3  # documents of a query in a run: fewer may be grades
ENDINGS = (".tsv", ".csv", ".tsv.gz", ".csv.gz")


@dataclass(frozen=True, slots=True)
class Qrels:
    """The grades of each query by document, in file order.

    `places` has the line of each query's first judgment; `duplicates` counts judgments that it repeats.
    """

    grades: dict[str, dict[str, int]]
    places: dict[str, str]
    duplicates: int


@dataclass(frozen=True, slots=True)
class Query(StrictRecord):
    """A line of queries.jsonl."""

    KEYS = {"key": "_id"}
    NULL_IS_A_VALUE = True

    key: Identifier
    text: Filled
    metadata: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Columns:
    """The way in which the cells of judgments are written."""

    delimiter: str
    is_quoted: bool

    def split(self, line: str, location: str) -> list[str]:
        """Return the cells of a line. Raises FileFormatError for quotes that do not end."""
        if not self.is_quoted:
            return line.split(self.delimiter)
        try:
            return next(csv.reader([line], delimiter=self.delimiter, strict=True), [])
        except csv.Error as error:
            raise FileFormatError(f"{location} is not CSV: {error}.") from None


def find_columns_of_qrels(header: str) -> Columns | None:
    """Return how the cells below a header of judgments are written; None for another header.

    Its names may be in quotes, have white space around them, capitals, and _ or a blank for the hyphen.
    """
    delimiter = "\t" if "\t" in header else max(",;", key=header.count)
    cells = [cell.strip() for cell in header.strip().split(delimiter)]
    while len(cells) > len(HEADER) and not cells[-1]:
        cells.pop()
    names = [re.sub("[ _]", "-", cell.strip('"').strip().lower()) for cell in cells]
    return Columns(delimiter, delimiter != "\t" or '"' in header) if names == HEADER else None


def read_qrels(path: Path) -> Qrels:
    """Return the judgments of a file of three columns, with the header HEADER; grades are any integers.

    Columns are separated by tabs, and cells are read as they are. In a file with commas or semicolons, or with quotes
    around the names of its header, cells may have quotes, as in CSV. Equal repeated judgments are counted. Different
    grades of one document are an error.
    """
    grades: dict[str, dict[str, int]] = {}
    places: dict[str, str] = {}
    duplicates = 0
    for location, query, document, grade in _read_rows(path):
        places.setdefault(query, location)
        query_grades = grades.setdefault(query, {})
        if document not in query_grades:
            query_grades[document] = grade
        elif query_grades[document] == grade:
            duplicates += 1
        else:
            raise FileFormatError(
                f"{location} gives document {document!a} the grade {grade} for query {query!a}, but an "
                f"earlier line gives it {query_grades[document]}."
            )
    if not grades:
        raise FileFormatError(f"{path.name} contains no judgments.")
    lists = [[*judged.values()] for judged in grades.values()]
    if max(map(len, lists)) >= FEWEST_RANKS and all(ranks == [*range(1, len(ranks) + 1)] for ranks in lists):
        _require_header(path)
    return Qrels(grades, places, duplicates)


def _require_header(path: Path) -> None:
    """Raise FileFormatError for a file without a header. Its numbers are ranks, as MS MARCO's runs have them."""
    _, header = next(read_lines(path))
    if find_columns_of_qrels(header) is None:
        raise FileFormatError(
            f"{path.name} seems to be a run: the numbers of each query are 1, 2, 3 and so on. Give a file of "
            f"judgments, or write the header {'<TAB>'.join(HEADER)} if these are grades."
        )


def read_queries(path: Path) -> Iterator[Query]:
    """Yield the queries of a queries.jsonl in file order: `_id`, `text` and, optionally, `metadata`."""
    seen = set()
    for location, line in read_objects(path):
        query = read_as(Query, line, prefix=f"{location} ")
        if query.key in seen:
            refuse(f"{location} _id", f"{query.key!a} repeats an earlier line")
        seen.add(query.key)
        yield query


def find_queries(directory: Path) -> Path:
    """Return the file of queries in a BEIR directory."""
    for path in (directory / "queries.jsonl", directory / "queries.jsonl.gz"):
        if path.is_file():
            return path
    raise FileFormatError(f"{directory} must contain queries.jsonl or queries.jsonl.gz to be a BEIR directory.")


def find_qrels(directory: Path, split: str) -> Path:
    """Return the file of a split's judgments in a BEIR directory."""
    files = [path for ending in ENDINGS for path in sorted((directory / "qrels").glob(f"*{ending}"))]
    splits = {path.name.removesuffix(".gz")[: -len(".tsv")]: path for path in reversed(files)}
    if split in splits:
        return splits[split]
    available = f"choose one of {', '.join(sorted(splits))}" if splits else "qrels/SPLIT.tsv was not found"
    raise FileFormatError(f"{directory} has no split {split!a}: {available}.", field="split")


def _read_rows(path: Path) -> Iterator[tuple[str, str, str, int]]:
    lines = read_lines(path)
    location, header = next(lines, (f"{path.name}, line 1,", ""))
    columns = find_columns_of_qrels(header)
    if columns is None:
        cells = header.split()
        if len(cells) not in (3, 4) or parse_grade(cells[-1]) is None:
            raise FileFormatError(f"{location} must be the header {'<TAB>'.join(HEADER)}, not {header[:80]!a}.")
        for bare in chain([(location, header)], lines):
            yield _read_bare(*bare, len(cells))
        return
    for location, line in lines:
        cells = columns.split(line, location)
        while len(cells) > len(HEADER) and not cells[-1].strip():
            cells.pop()
        if len(cells) != len(HEADER) or not all(cell.strip() for cell in cells):
            raise FileFormatError(f"{location} must have three cells, {', '.join(HEADER)}, not {line[:80]!a}.")
        query, document, written = cells
        grade = parse_grade(written)
        if grade is None:
            raise FileFormatError(
                f"{location} has the score {written[:40]!a}, which is not an integer: write whole numbers."
            )
        yield location, query, document, grade


def _read_bare(location: str, line: str, columns: int) -> tuple[str, str, str, int]:
    """Return the row of a file without a header: query, document and grade, perhaps with TREC's second column."""
    cells = line.split()
    grade = parse_grade(cells[-1])
    if len(cells) != columns or grade is None:
        names = "query, document and grade" if columns == 3 else "query, iteration, document and grade"
        raise FileFormatError(f"{location} must have {columns} columns, {names}, as line 1 has, not {line[:80]!a}.")
    return location, cells[0], cells[-2], grade


def write_queries(queries: Iterable[Query]) -> Iterator[str]:
    """Yield the lines of a queries.jsonl."""
    return dump_lines(
        {"_id": query.key, "text": query.text} | ({"metadata": query.metadata} if query.metadata else {})
        for query in queries
    )


def write_qrels(rows: Iterable[tuple[str, str, int]]) -> Iterator[str]:
    """Yield the lines of a file of judgments from (query, document, grade), after its header.

    Raises FileFormatError for an id with a tab or a line break, which a cell cannot hold.
    """
    yield "\t".join(HEADER) + "\n"
    for query, document, grade in rows:
        yield f"{_cell(query)}\t{_cell(document)}\t{grade}\n"


def _cell(text: str) -> str:
    if "\t" in text or "\n" in text:
        raise FileFormatError(f"The id {text[:80]!a} has a tab or a line break, which a BEIR file cannot hold.")
    return text
