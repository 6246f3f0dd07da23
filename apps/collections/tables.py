"""Documents in a table: CSV, JSON Lines or a list in JSON, a row for each, with columns by usual names."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import UnionType

from django.template.defaultfilters import filesizeformat

from apps.collections.records import DocumentError, DocumentRecord, Reading
from benchbench.decimals import counted, list_some
from benchbench.files.columns import METADATA, NAMES_OF_DOCUMENTS, OF_DOCUMENTS, fold_column
from benchbench.files.documents import read_documents
from benchbench.files.encodings import in_utf8
from benchbench.files.tables import Row, read_table
from benchbench.files.workbooks import ENDINGS as WORKBOOKS
from benchbench.reading.ids import CHANGED
from benchbench.reading.strict_json import read_chunks, read_lines

ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", *WORKBOOKS)
NEEDED = [field.name for field in OF_DOCUMENTS if field.is_needed]
SYNONYMS = {field.name: field.synonyms.split() for field in OF_DOCUMENTS}
BEIR_KEYS = {"_id", "text", "title", "uri", "metadata"}
BULK_ACTIONS = {"index", "create"}  # of Elasticsearch: the line before a document, with its id
ROW = "number of the row"
NUMBERED = "No column has ids, so that each document has the number of its row: add a column id if judgments name ids."
TAG = re.compile("</(?:p|div|span|li|td|h[1-6]|strong|b|em|a)>|<br ?/?>", re.IGNORECASE)
TYPE = re.compile("(?<=[a-z])_(?:s|ss|t|txt|txt_[a-z]{2}|i|l)$")  # in the names of Solr's fields: title_s
SAMPLE_LENGTH = 80
MOST_LIST_BYTES = 2**27  # of JSON that is not in lines, and so read at once


def is_beir(path: Path) -> bool:
    """Return whether a file has lines as BEIR writes them, or none that are objects."""
    row = _read_first(path)
    if isinstance(row, dict):
        return "_id" in row and row.keys() <= BEIR_KEYS and not isinstance(row["_id"], dict)
    return row is None


def _is_whole_json(path: Path) -> bool:
    """Return whether a file is JSON, but not in lines."""
    return next(read_chunks(path), b"").lstrip()[:1] in (b"[", b"{") and not isinstance(_read_first(path), dict)


def _read_first(path: Path) -> object:
    """Return the value in the first line of a file; None if it is not JSON, and [] if it only begins like a list."""
    first = next((line for _, line in read_lines(path)), "")
    try:
        return json.loads(first)
    except (ValueError, RecursionError):
        return [] if first.lstrip().startswith("[") else None


def read_columns(choices: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the field of each column of pairs of field and column; "" is of a column that is not read."""
    for name, _ in choices:
        if name not in ("", *SYNONYMS):
            raise DocumentError(
                f"{name[:60]!a} is not a field of documents: choose one of {', '.join(SYNONYMS)}.", field="columns"
            )
    return {column: name for name, column in choices}


@dataclass
class _Counts:
    """Columns of each field that were read, characters of columns, whether others are metadata, and odd ids."""

    columns: dict[str, dict[str, None]] = field(default_factory=dict)
    fitting: dict[str, bool] = field(default_factory=dict)
    characters: Counter[str] = field(default_factory=Counter)
    spaced: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    tagged: int = 0

    def add(self, record: DocumentRecord, fields: Mapping[str, str]) -> None:
        for name, column in fields.items():
            if column != ROW:
                self.columns.setdefault(name, {})[column] = None
        self.characters["text"] += len(record.text)
        self.tagged += TAG.search(record.text) is not None
        id = record.external_id
        self.spaced += [f"{id!a}"] * (id != id.strip())
        self.changed += [id] * bool(CHANGED.fullmatch(id))

    def describe(self, name: str, reading: Reading) -> None:
        """Put into `reading` what was read, by the names of columns, and what may be read wrong."""
        read = (f"the {field} is its column {_join(columns)}" for field, columns in self.columns.items())
        reading.notes += [f"{name}: {', '.join(read)}."] if self.columns else []
        ignored = {column: False for column, field in reading.columns.items() if not field}
        unsearched = ignored | self.fitting
        for words, is_metadata in (("Metadata, which are not searched", True), ("Not read", False)):
            if some := [column for column, fits in unsearched.items() if fits == is_metadata]:
                reading.notes += [f"{words}: {list_some([column or 'a column without a name' for column in some])}."]
        longest = max(self.fitting, key=lambda column: self.characters[f" {column}"], default="")
        if "text" in self.columns and self.characters[f" {longest}"] > self.characters["text"]:
            more = f"More is in {_join([longest])} than in the text, but is not searched"
            reading.warnings += [f"{more}: if that is the text, choose it under Columns, or call its column text."]
        findings = {
            "Ids that begin or end with white space, which is a part of them": self.spaced,
            "Ids that a spreadsheet seems to have changed": self.changed,
        }
        if self.tagged:
            with_tags = f"{counted(self.tagged, 'text')} with HTML"
            reading.warnings += [f"{with_tags}, whose tags are searched like words: write only the texts."]
        reading.warnings += [f"{finding}: {list_some(ids)}." for finding, ids in findings.items() if ids]


def _join(columns: Iterable[str]) -> str:
    return " or ".join(f"“{column}”" for column in columns)


def read_table_of_documents(
    path: Path, reading: Reading, columns: Mapping[str, str] | None = None
) -> Iterator[DocumentRecord]:
    """Yield the documents of a table in its order, and put into `reading` what each column was read as.

    `columns` has the fields of columns (`read_columns`); others are read by their names. A row needs an id, which may
    be its URL, and a text; a title alone is enough without a further column. Columns for no field are metadata, as far
    as they hold texts and numbers. Lines of an Elasticsearch dump or bulk file are documents with the fields of their
    source. Rows of nothing but texts and titles have their number as id. Errors name file and line, and have the
    `reading`.
    """
    if path.stat().st_size > MOST_LIST_BYTES and _is_whole_json(path):
        raise DocumentError(
            f"{path.name} is JSON of more than {filesizeformat(MOST_LIST_BYTES)}: write a document a line (JSON "
            "Lines).",
            field="file",
        )
    counts, chosen = _Counts(), columns or {}
    with in_utf8(path) as (copy, conversions):
        try:
            documents = read_documents(copy, reading.warnings)
            names, rows = read_table(copy) if documents is None else ([], documents)
            for number, (location, row) in enumerate(_unwrap(names, rows, chosen, reading), start=1):
                for name in [name for name in row if name not in reading.columns]:
                    reading.columns[name] = chosen.get(name, METADATA)
                    reading.samples[name] = str(row[name])[:SAMPLE_LENGTH]
                fields = _assign(tuple(row), tuple(chosen.items()))
                reading.columns |= {column: name for name, column in fields.items()}
                has_more = len(row) > len({*fields.values()})
                if NUMBERED in reading.warnings and "id" in fields:
                    raise DocumentError(f"{location} has an id, which rows before it lack: add one to each row.")
                if documents is None and "text" in fields and "id" not in reading.columns.values() and not has_more:
                    reading.warnings += [] if NUMBERED in reading.warnings else [NUMBERED]
                    row, fields = {ROW: str(number), **row}, {"id": ROW, **fields}
                if "id" not in fields or ("text" not in fields and ("title" not in fields or has_more)):
                    _refuse(location, row, [name for name in NEEDED if name not in fields], chosen)
                record = _build(location, row, fields, chosen, counts)
                counts.add(record, fields)
                yield record
            if absent := [column for column in chosen if column not in reading.columns]:
                raise DocumentError(
                    f"{path.name} has no column {absent[0][:60]!a}: it has {list_some([*reading.columns])[:200]}.",
                    field="columns",
                )
        except DocumentError as error:
            error.reading = reading
            raise
        finally:
            reading.warnings += conversions
            counts.describe(path.name, reading)


def _unwrap(names: Sequence[str], rows: Iterable[Row], chosen: Mapping[str, str], reading: Reading) -> Iterator[Row]:
    """Yield rows with the fields of their documents, out of dumps of Elasticsearch; those of bare pairs get names."""
    action: Mapping[str, object] = {}
    is_pair = [*names] == ["column 1", "column 2"] and chosen.keys().isdisjoint(names)
    for location, row in rows:
        (name, value), *further = row.items() or [("", None)]
        if name in BULK_ACTIONS and not further and isinstance(value, dict):
            action = value
            continue
        source = row.get("_source")
        if isinstance(source, dict):
            row = {"_id": row.get("_id"), **source}
        elif "_id" in action:
            row = {"_id": action["_id"], **row}
        elif is_pair and " " in str(row["column 1"]).strip():
            reading.columns |= dict.fromkeys(names, "")
            reading.samples |= {name: str(row[name])[:SAMPLE_LENGTH] for name in names}
            raise DocumentError(
                f"{location} begins with a text, not with an id: choose both under Columns, or write the names id and "
                "text above them.",
                field="columns",
            )
        elif is_pair:
            row = dict(zip(("id", "text"), row.values(), strict=True))
        yield location.rstrip(","), row
        action = {}


@lru_cache(maxsize=256)
def _assign(names: tuple[str, ...], chosen: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the column of each field that a row with these columns has. An id may be that of the URL."""
    fields: dict[str, str] = {}
    fixed = dict(chosen)
    columns: dict[str, list[str]] = {}
    for name in names:
        field = fixed.get(name)
        if field is None:
            columns.setdefault(fold_column(TYPE.sub("", name)), []).append(name)
        elif field and field != METADATA and fields.setdefault(field, name) != name:
            both = f"{fields[field][:60]!a} and {name[:60]!a}"
            raise DocumentError(f"The {field} is chosen for two columns, {both}: choose one.", field="columns")
    words = {
        field: next((word for word in words if word in columns), "") for field, words in NAMES_OF_DOCUMENTS.items()
    }
    guesses = {
        field: _choose(field, columns[w], SYNONYMS[field]) for field, w in words.items() if w and field not in fields
    }
    fields = {field: column for field in words if (column := (fields | guesses).get(field)) is not None}
    return {"id": fields["uri"], **fields} if "uri" in fields else fields


def _choose(field: str, columns: Sequence[str], words: Sequence[str]) -> str:
    """Return the column of a field among those whose names have equal letters: one that is spelt as we spell it."""
    exact = [word for word in words if word in columns]
    if len(columns) > 1 and not exact:
        raise DocumentError(
            f"The {field} may be in {_join(columns)}: choose one under Columns, or call one of them {field}.",
            field="columns",
            by_command=f"--column {field}=COLUMN",
        )
    return exact[0] if exact else columns[0]


def _build(
    location: str, row: dict[str, object], fields: Mapping[str, str], chosen: Mapping[str, str], counts: _Counts
) -> DocumentRecord:
    texts = {field: _read_text(location, column, row[column]) for field, column in fields.items()}
    if "\n" in texts["id"] and isinstance(row[fields["id"]], list):
        raise DocumentError(f"{location} has several ids in {fields['id'][:60]!a}: give it one.", field=fields["id"])
    metadata: dict[str, object] = {}
    for name, value in row.items():
        if name in fields.values() or chosen.get(name) == "":
            continue
        if name == METADATA and isinstance(value, dict):
            metadata |= value
            continue
        fits = name != "" and is_metadata(value)
        counts.fitting[name] = counts.fitting.get(name, False) or fits
        if fits and value != "":
            metadata[name] = value
            counts.characters[f" {name}"] += len(value) if isinstance(value, str) else 0
    return DocumentRecord(
        texts["id"],
        texts.get("title", ""),
        texts.get("text", ""),
        texts.get("uri", ""),
        metadata=metadata,
        location=f"{location}, id in {fields['id']!a}",
    )


def _read_text(location: str, column: str, value: object) -> str:
    """Return a cell as a text; the texts of a list are its lines."""
    if isinstance(value, list) and _is_list(value, str):
        return "\n".join(value)
    if value is None or (isinstance(value, str | int | float) and not isinstance(value, bool)):
        return "" if value is None else str(value)
    raise DocumentError(f"{location} has no text in {column[:60]!a}: write a string there.", field=column)


def is_metadata(value: object) -> bool:
    """Return whether a value is kept as metadata: a text, a number, or a list of texts or of whole numbers."""
    return isinstance(value, str | int | float) or _is_list(value, str | int)


def _is_list(value: object, kinds: type | UnionType) -> bool:
    return isinstance(value, list) and all(isinstance(item, kinds) for item in value)


def _refuse(location: str, row: Mapping[str, object], missing: Sequence[str], chosen: Iterable[str]) -> None:
    absent = [f"{column[:60]!a}" for column in chosen if column not in row]
    sought = absent[0] if absent else f"of the documents' {missing[0]}s"
    raise DocumentError(
        f"{location} has no column {sought}: it has {list_some([*row])[:200]}. "
        "Choose it under Columns, or call the columns id, title and text, and add those that it lacks.",
        field="columns",
        by_command=" ".join(f"--column {name}=COLUMN" for name in missing),
    )
