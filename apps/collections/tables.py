"""Documents in a table: CSV, JSON Lines or a list in JSON, a row for each, with columns by usual names."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from django.template.defaultfilters import filesizeformat

from apps.collections.records import DocumentError, DocumentRecord
from benchbench.decimals import list_some
from benchbench.files.columns import fold_column
from benchbench.files.encodings import in_utf8
from benchbench.files.tables import Row, read_table
from benchbench.reading.strict_json import read_chunks, read_lines

ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
# Of several columns with names for one field, the first name here decides. Names are compared by their letters alone.
SYNONYMS = {
    "id": "_id external_id id document_id doc_id doc_no passage_id pid corpus_id product_id sku asin item_id "
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
        columns: dict[str, str] = {}
        unread: dict[str, bool] = {}  # of each column without a field, whether it is metadata
        for location, row in _unwrap(rows, names):
            fields = _assign(tuple(row))
            columns |= fields
            has_more = len(row) > len({*fields.values()})
            if "id" not in fields or ("text" not in fields and ("title" not in fields or has_more)):
                _refuse(location, row, "texts" if "id" in fields else "ids")
            yield _build(location, row, fields, unread)
        notes += [*conversions, *_describe(path.name, columns, unread)]


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
        yield location.rstrip(","), row
        action = {}


@lru_cache(maxsize=256)
def _assign(names: tuple[str, ...]) -> dict[str, str]:
    """Return the column of each field that a row with these columns has. An id may be that of the URL."""
    by_letters = {fold_column(name): name for name in reversed(names)}
    if "_id" in names:
        by_letters["id"] = "_id"
    words = {field: next((word for word in words if word in by_letters), "") for field, words in NAMES.items()}
    fields = {field: by_letters[word] for field, word in words.items() if word}
    return {"id": fields["uri"], **fields} if "uri" in fields else fields


def _build(location: str, row: dict[str, object], fields: Mapping[str, str], unread: dict[str, bool]) -> DocumentRecord:
    texts = {field: _read_text(location, column, row[column]) for field, column in fields.items()}
    metadata: dict[str, object] = {}
    for name, value in row.items():
        if name == "metadata" and isinstance(value, dict):
            metadata |= value
        elif name not in fields.values():
            fits = isinstance(value, str | int | float) or _is_texts(value)
            unread[name] = unread.get(name, False) or fits
            if fits and value != "":
                metadata[name] = value
    return DocumentRecord(
        texts["id"],
        texts.get("title", ""),
        texts.get("text", ""),
        texts.get("uri", ""),
        metadata=metadata,
        location=location,
    )


def _read_text(location: str, column: str, value: object) -> str:
    """Return a cell as a text; the texts of a list are its lines."""
    if isinstance(value, list) and _is_texts(value):
        return "\n".join(value)
    if value is None or (isinstance(value, str | int | float) and not isinstance(value, bool)):
        return "" if value is None else str(value)
    raise DocumentError(f"{location} has no text in {column[:60]!a}: write a string there.", field=column)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _refuse(location: str, row: Mapping[str, object], missing: str) -> None:
    raise DocumentError(
        f"{location} has no column of the documents' {missing}: it has {list_some([*row])[:200]}. Call the "
        "columns id, title and text, and add those that it lacks.",
        field="file",
    )


def _describe(name: str, columns: Mapping[str, str], unread: Mapping[str, bool]) -> Iterator[str]:
    """Yield what was read of a table, by the names of its columns."""
    read = ", ".join(f"the {field} is its column “{column}”" for field, column in columns.items())
    yield f"{name}: {read}."
    for words, is_metadata in (("Metadata, which are not searched", True), ("Not read", False)):
        if some := [column for column, fits in unread.items() if fits == is_metadata]:
            yield f"{words}: {list_some(some)}."
