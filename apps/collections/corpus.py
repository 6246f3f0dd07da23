"""A BEIR corpus: corpus.jsonl, read (`.gz` too) and written."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apps.collections.models import Collection
from apps.collections.records import DocumentRecord
from benchbench.files.json_writing import text
from benchbench.reading.objects import Identifier, Stated, read_as
from benchbench.reading.strict_json import read_objects


@dataclass(frozen=True, slots=True)
class _Line(Stated):
    KEYS = {"external_id": "_id"}
    NULL_IS_A_VALUE = True

    external_id: Identifier
    text: str
    title: str = ""
    uri: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


def read_corpus(path: Path) -> Iterator[DocumentRecord]:
    """Yield the documents of a BEIR corpus in file order, one line in memory at a time.

    Each line is an object: `_id` a string that is not blank (an integer is read as its digits), `text` a string,
    optionally `title` and `uri` strings and `metadata` an object. Anything else raises a sentence that names file, line
    and key.
    """
    for where, line in read_objects(path):
        read = read_as(_Line, line, prefix=f"{where} ")
        yield DocumentRecord(
            read.external_id, read.title, read.text, read.uri, metadata=read.metadata, place=where.rstrip(",")
        )


def write_corpus(collection: Collection) -> Iterator[str]:
    """Yield the lines of a corpus.jsonl: every document that was not removed, by id.

    It has no place for file names, hashes of files and sections: documents that came from a corpus come back as they
    were.
    """
    names = ("external_id", "title", "text", "uri", "metadata")
    documents = collection.documents.filter(removed_at=None).order_by("external_id").values_list(*names)
    for external_id, *values in documents.iterator(chunk_size=1000):
        fields = dict(zip(names[1:], values, strict=True))
        own = {name: value for name, value in fields.items() if value or name == "text"}
        yield text({"_id": external_id} | own) + "\n"
