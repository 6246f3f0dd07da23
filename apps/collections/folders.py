"""Reading a folder of text, Markdown and HTML files as documents."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from apps.collections.html import Heading, markdown_headings, read_html, sections_of
from apps.collections.records import DocumentRecord
from benchbench.errors import BenchbenchError
from benchbench.reading.strict_json import decode, storable

MARKDOWN = (".md", ".markdown")
HTML = (".html", ".htm")
KINDS = (*MARKDOWN, *HTML, ".txt", ".rst")


class FolderError(BenchbenchError):
    """A folder, or a file in it, that cannot be read as documents."""

    code = "invalid_document"


@dataclass(frozen=True)
class FolderScan:
    """The files of a folder that are documents, as relative paths in code point order, and how many others are not."""

    folder: Path
    files: tuple[str, ...]
    others: int


def scan(path: Path) -> FolderScan:
    """Find the documents of a folder. Hidden files and folders and links that lead out of it are not looked at."""
    if not path.is_dir():
        raise FolderError(f"{path} is not a folder.")
    folder = Path(os.path.abspath(path))
    files, others = [], 0
    for parent, names, file_names in os.walk(folder, onerror=_refuse):
        names[:] = [name for name in names if not name.startswith(".")]
        for name in file_names:
            file = Path(parent, name)
            if name.startswith(".") or not file.resolve().is_relative_to(folder.resolve()):
                continue
            if file.suffix.lower() in KINDS and file.is_file():
                files.append(file.relative_to(folder).as_posix())
            else:
                others += 1
    if not files:
        raise FolderError(
            f"{path.name or path} holds no document: looked for files that end in {', '.join(sorted(KINDS))}."
        )
    return FolderScan(folder, tuple(sorted(files)), others)


def read_files(folder_scan: FolderScan, *, uri_prefix: str = "") -> Iterator[DocumentRecord]:
    """Yield the documents of a scanned folder.

    `external_id` is the relative path with slashes; `uri` is `uri_prefix` followed by it, or `file://` followed by the
    absolute path. `content_hash` is the SHA-256 of the file's bytes. The title is the first Markdown heading, the
    `<title>` or `<h1>` of HTML, else the file name without its ending. Headings begin sections. Files must be UTF-8.
    """
    for relative in folder_scan.files:
        yield _document(folder_scan.folder, relative, uri_prefix)


def _document(folder: Path, relative: str, uri_prefix: str) -> DocumentRecord:
    if not storable(relative):
        raise FolderError(f"The name of the file {relative!a} is not UTF-8: rename it.")
    file = folder / relative
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FolderError(f"{relative} cannot be read: {error.strerror}.") from None
    title, text, headings = _read(decode(content, where=relative), file.suffix.lower())
    return DocumentRecord(
        external_id=relative,
        title=title or file.stem,
        text=text,
        uri=uri_prefix + relative if uri_prefix else f"file://{file.as_posix()}",
        file_name=file.name,
        content_hash=sha256(content).hexdigest(),
        sections=sections_of(headings, len(text)),
        place=relative,
    )


def _read(source: str, ending: str) -> tuple[str, str, list[Heading]]:
    """Return title, text and headings of a file."""
    if ending in HTML:
        return read_html(source)
    headings = list(markdown_headings(source)) if ending in MARKDOWN else []
    return (headings[0].title if headings else ""), source, headings


def _refuse(error: OSError) -> None:
    raise FolderError(f"The folder {error.filename} cannot be read: {error.strerror}.")
