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

from apps.collections.records import DocumentError, DocumentRecord
from benchbench.decimals import counted, list_some
from benchbench.files.columns import fold_column
from benchbench.files.encodings import in_utf8
from benchbench.files.tables import Row, read_table
from benchbench.reading.ids import CHANGED
from benchbench.reading.strict_json import read_chunks, read_lines

ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
# Of several columns with names for one field, the first name here decides. Names are compared by their letters alone.
SYNONYMS = {
    "id": "_id external_id id passage_id pid document_id doc_id doc_no corpus_id product_id sku asin item_id "
    "article_id page_id cord_uid uuid object_id key identifier dokument_id artikel_id artikelnummer identifiant "
    "documento_id",
    "text": "text body body_text contents content full_text document_text passage page_content description "
    "product_description abstract summary answer document beschreibung inhalt volltext antwort texte contenu contenido "
    "descripción texto testo descrizione conteúdo tekst текст описание 本文 正文 内容 본문",
    "title": "title name headline heading subject product_title product_name document_title question titel überschrift "
    "bezeichnung titre nom título nombre titolo título nome заголовок название タイトル 标题 標題 제목",
    "uri": "uri url link source_url page_url web_page",
}
NAMES = {field: [fold_column(name) for name in names.split()] for field, names in SYNONYMS.items()}
BEIR_KEYS = {"_id", "text", "title", "uri", "metadata"}
BULK_ACTIONS = {"index", "create"}  # of Elasticsearch: the line before a document, with its id
TAG = re.compile("</(?:p|div|span|li|td|h[1-6]|strong|b|em|a)>|<br ?/?>", re.IGNORECASE)
MOST_LIST_BYTES = 2**27  # of JSON that is not in lines, and so read at once


def is_beir(path: Path) -> bool:
    """Return whether a file has lines as BEIR writes them, or none that are objects."""
    row = _read_first(path)
    return isinstance(row, dict) and "_id" in row and row.keys() <= BEIR_KEYS if row is not None else True


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


@dataclass
class _Reading:
    """Columns of each field and of metadata that were read, with their characters, and odd ids."""

    columns: dict[str, dict[str, None]] = field(default_factory=dict)
    metadata: dict[str, bool] = field(default_factory=dict)  # whether anything of a column without a field is read
    characters: Counter[str] = field(default_factory=Counter)
    spaced: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    tagged: int = 0

    def add(self, record: DocumentRecord, fields: Mapping[str, str]) -> None:
        for name, column in fields.items():
            self.columns.setdefault(name, {})[column] = None
        self.characters["text"] += len(record.text)
        self.tagged += TAG.search(record.text) is not None
        id = record.external_id
        self.spaced += [f"{id!a}"] * (id != id.strip())
        self.changed += [id] * bool(CHANGED.fullmatch(id))

    def describe(self, name: str) -> Iterator[str]:
        """Yield what was read, by the names of columns, and what may be read wrong."""
        read = (f"the {field} is its column {_join(columns)}" for field, columns in self.columns.items())
        yield f"{name}: {', '.join(read)}."
        for words, is_metadata in (("Metadata, which are not searched", True), ("Not read", False)):
            if some := [column for column, fits in self.metadata.items() if fits == is_metadata]:
                yield f"{words}: {list_some([column or 'a column without a name' for column in some])}."
        longest = max(self.metadata, key=lambda column: self.characters[f" {column}"], default="")
        if "text" in self.columns and self.characters[f" {longest}"] > self.characters["text"]:
            yield (
                f"More is in {_join([longest])} than in the text, but is not searched: if that is the text, call its "
                "column text."
            )
        if self.tagged:
            yield f"{counted(self.tagged, 'text')} with HTML, whose tags are searched like words: write only the texts."
        if self.spaced:
            yield f"Ids that begin or end with white space, which is a part of them: {list_some(self.spaced)}."
        if self.changed:
            yield f"Ids that a spreadsheet seems to have changed: {list_some(self.changed)}."


def _join(columns: Iterable[str]) -> str:
    return " or ".join(f"“{column}”" for column in columns)


def read_table_of_documents(path: Path, notes: list[str]) -> Iterator[DocumentRecord]:
    """Yield the documents of a table in its order, and then put into `notes` what each column was read as.

    A row needs an id, which may be its URL, and a text; a title alone is enough without a further column. Columns
    for no field are metadata, as far as they hold texts and numbers. Lines of an Elasticsearch dump or bulk file are
    documents with the fields of their source. Errors name file and line.
    """
    if path.stat().st_size > MOST_LIST_BYTES and _is_whole_json(path):
        raise DocumentError(
            f"{path.name} is JSON of more than {filesizeformat(MOST_LIST_BYTES)}: write a document a line (JSON "
            "Lines).",
            field="file",
        )
    with in_utf8(path) as (copy, conversions):
        names, rows = read_table(copy)
        reading = _Reading()
        for location, row in _unwrap(rows, names):
            fields = _assign(tuple(row))
            has_more = len(row) > len({*fields.values()})
            if "id" not in fields or ("text" not in fields and ("title" not in fields or has_more)):
                _refuse(location, row, "texts" if "id" in fields else "ids")
            record = _build(location, row, fields, reading)
            reading.add(record, fields)
            yield record
        notes += [*conversions, *reading.describe(path.name)]


def _unwrap(rows: Iterable[Row], names: Sequence[str]) -> Iterator[Row]:
    """Yield rows with the fields of their documents, out of dumps of Elasticsearch; those of bare pairs get names."""
    action: Mapping[str, object] = {}
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
        elif [*names] == ["column 1", "column 2"]:
            row = dict(zip(("id", "text"), row.values(), strict=True))
            if " " in row["id"].strip():
                raise DocumentError(
                    f"{location} begins with a text, not with an id: write the names id and text above the columns.",
                    field="file",
                )
        yield location.rstrip(","), row
        action = {}


@lru_cache(maxsize=256)
def _assign(names: tuple[str, ...]) -> dict[str, str]:
    """Return the column of each field that a row with these columns has. An id may be that of the URL."""
    columns: dict[str, list[str]] = {}
    for name in names:
        columns.setdefault(fold_column(name), []).append(name)
    words = {field: next((word for word in words if word in columns), "") for field, words in NAMES.items()}
    fields = {field: _choose(field, columns[word], SYNONYMS[field]) for field, word in words.items() if word}
    return {"id": fields["uri"], **fields} if "uri" in fields else fields


def _choose(field: str, columns: Sequence[str], words: str) -> str:
    """Return the column of a field among those whose names have equal letters: one that is spelt as we spell it."""
    exact = [word for word in words.split() if word in columns]
    if len(columns) > 1 and not exact:
        raise DocumentError(f"The {field} may be in {_join(columns)}: call one of them {field}.", field="file")
    return exact[0] if exact else columns[0]


def _build(location: str, row: dict[str, object], fields: Mapping[str, str], reading: _Reading) -> DocumentRecord:
    texts = {field: _read_text(location, column, row[column]) for field, column in fields.items()}
    if "\n" in texts["id"] and isinstance(row[fields["id"]], list):
        raise DocumentError(f"{location} has several ids in {fields['id'][:60]!a}: give it one.", field=fields["id"])
    metadata: dict[str, object] = {}
    for name, value in row.items():
        if name == "metadata" and isinstance(value, dict):
            metadata |= value
        elif name not in fields.values():
            fits = isinstance(value, str | int | float) or _is_list(value, str | int)
            fits = fits and name != ""
            reading.metadata[name] = reading.metadata.get(name, False) or fits
            if fits and value != "":
                metadata[name] = value
                reading.characters[f" {name}"] += len(value) if isinstance(value, str) else 0
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


def _is_list(value: object, kinds: type | UnionType) -> bool:
    return isinstance(value, list) and all(isinstance(item, kinds) for item in value)


def _refuse(location: str, row: Mapping[str, object], missing: str) -> None:
    raise DocumentError(
        f"{location} has no column of the documents' {missing}: it has {list_some([*row])[:200]}. Call the "
        "columns id, title and text, and add those that it lacks.",
        field="file",
    )
