"""Reading a BEIR corpus: corpus.jsonl, or corpus.jsonl.gz."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apps.collections.records import DocumentRecord
from benchbench.errors import BenchbenchError
from benchbench.strict_json import kind, read_objects

KEYS = ("_id", "title", "text", "uri", "metadata")


class CorpusError(BenchbenchError):
    """A line of a corpus that cannot be a document."""

    code = "invalid_document"


def read_corpus(path: Path) -> Iterator[DocumentRecord]:
    """Yield the documents of a BEIR corpus in file order, one line in memory at a time.

    Each line is an object: `_id` a string that is not blank (an integer is read as its digits), `text` a string,
    optionally `title` and `uri` strings and `metadata` an object. Anything else raises a sentence that names file, line
    and key.
    """
    for where, line in read_objects(path):
        yield _document(line, where)


def _document(line: dict[str, Any], where: str) -> DocumentRecord:
    for key in line:
        if key not in KEYS:
            raise CorpusError(
                f"{where} has the unknown key {key[:40]!a}: known are {', '.join(KEYS)}; put others into metadata.",
                field=key,
            )
    metadata = line.get("metadata", {})
    if not isinstance(metadata, dict):
        raise CorpusError(f"{where} metadata must be an object, not {kind(metadata)}.", field="metadata")
    return DocumentRecord(
        external_id=_identifier(line, where),
        title=_string(line, "title", where, default=""),
        text=_string(line, "text", where),
        uri=_string(line, "uri", where, default=""),
        metadata=metadata,
        place=where.rstrip(","),
    )


def _identifier(line: dict[str, Any], where: str) -> str:
    value = line.get("_id")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    identifier = _string(line, "_id", where)
    if not identifier.strip():
        raise CorpusError(f"{where} _id is blank.", field="_id")
    return identifier


def _string(line: dict[str, Any], key: str, where: str, *, default: str | None = None) -> str:
    value = line.get(key, default)
    if isinstance(value, str):
        return value
    if key not in line:
        raise CorpusError(f"{where} lacks the key {key}.", field=key)
    raise CorpusError(f"{where} {key} must be a string, not {kind(value)}.", field=key)
