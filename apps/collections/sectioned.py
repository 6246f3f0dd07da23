"""Reading sectioned documents: a directory of JSON files, each with the Markdown of its document beside it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from apps.collections.records import DocumentRecord, SectionRecord
from benchbench.files.sectioned import find_documents, read_document, text_and_spans
from benchbench.files.sniffing import sniff


def find_sectioned(directory: Path) -> list[Path]:
    """Return the sectioned documents that a directory holds, or its directory `documents`; none where it has others."""
    for place in (directory, directory / "documents"):
        files = [path for path in find_documents(place) if sniff(path) == "sectioned-document"]
        if files:
            return files
    return []


def read_sectioned(files: Sequence[Path]) -> Iterator[DocumentRecord]:
    """Yield a document for each file, its sections depth first; source and summary become its metadata.

    Raises a sentence that names file and key for whatever is not as docs/formats.md says.
    """
    for path in files:
        document = read_document(path)
        text, spans = text_and_spans(document, path)
        about = {"source": document.source, "summary": document.summary}
        yield DocumentRecord(
            external_id=document.id,
            title=document.title,
            text=text,
            file_name=path.name,
            metadata={name: value for name, value in about.items() if value},
            sections=[
                SectionRecord(section.id, section.heading, section.level, start, end)
                for section, (start, end) in zip(document.sections, spans, strict=True)
            ],
            place=path.name,
        )
