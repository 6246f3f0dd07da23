"""Reading the documents of a public test collection, by its id in ir_datasets."""

from collections.abc import Iterator
from typing import Any

from apps.collections.records import DocumentRecord
from benchbench.catalogue import load, read, require

OWN = ("doc_id", "title", "text", "url")


def read_catalogue(id: str) -> tuple[Iterator[DocumentRecord], int | None]:
    """Return the documents of a collection, one in memory at a time, and how many they are where that is known.

    Title, text and url are a document's own where it has a text; else its text is what the library takes for it. Other
    texts and numbers are metadata. Raises CatalogueError, which while they are read says what could not be downloaded.
    """
    dataset = load(id)
    require(dataset, id, "docs")
    about: dict[str, Any] = dataset.docs_metadata() if hasattr(dataset, "docs_metadata") else {}
    return map(_document, read(id, dataset.docs_iter)), about.get("count")


def _document(row: Any) -> DocumentRecord:
    fields = row._asdict()
    has_text = isinstance(fields.get("text"), str)
    others = {name: value for name, value in fields.items() if name not in OWN} if has_text else {}
    return DocumentRecord(
        external_id=row.doc_id,
        title=str(fields.get("title") or "") if has_text else "",
        text=fields["text"] if has_text else row.default_text(),
        uri=str(fields.get("url") or ""),
        metadata={name: value for name, value in others.items() if isinstance(value, str | int) and value != ""},
        place=f"document {row.doc_id[:60]!a}",
    )
