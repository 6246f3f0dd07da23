"""Reading a BEIR corpus: corpus.jsonl, or corpus.jsonl.gz."""

from collections.abc import Iterator
from pathlib import Path

from apps.collections.records import DocumentRecord
from benchbench.fields import Fields
from benchbench.strict_json import read_objects

KEYS = ("_id", "title", "text", "uri", "metadata")


def read_corpus(path: Path) -> Iterator[DocumentRecord]:
    """Yield the documents of a BEIR corpus in file order, one line in memory at a time.

    Each line is an object: `_id` a string that is not blank (an integer is read as its digits), `text` a string,
    optionally `title` and `uri` strings and `metadata` an object. Anything else raises a sentence that names file, line
    and key.
    """
    for where, line in read_objects(path):
        fields = Fields(line, KEYS, prefix=f"{where} ")
        yield DocumentRecord(
            external_id=fields.identifier("_id"),
            title=fields.string("title", default=""),
            text=fields.string("text"),
            uri=fields.string("uri", default=""),
            metadata=fields.mapping("metadata"),
            place=where.rstrip(","),
        )
