"""Sources of documents: a folder of files or of sectioned documents, a BEIR corpus, a table, a public collection."""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from apps.collections.folders import KINDS, FolderScan, read_files, scan
from apps.collections.models import Collection
from apps.collections.records import DocumentRecord, Reading, SectionRecord
from apps.collections.tables import BEIR_KEYS, ENDINGS, is_beir, is_metadata, read_table_of_documents
from benchbench.catalogue import load, read, require
from benchbench.decimals import list_some
from benchbench.errors import BenchbenchError
from benchbench.files.documents import READABLE, find_root
from benchbench.files.encodings import in_utf8
from benchbench.files.sectioned import find_documents, find_text_and_spans, read_document
from benchbench.files.sniffing import SwappedError, describe_judged, sniff
from benchbench.reading.objects import Identifier, StrictRecord, read_as
from benchbench.reading.strict_json import dump_json, read_objects


def find_sectioned(directory: Path) -> list[Path]:
    """Return the sectioned documents that a directory holds, or its directory `documents`; none where it has others."""
    for folder in (directory, directory / "documents"):
        files = [path for path in find_documents(folder) if sniff(path) == "sectioned-document"]
        if files:
            return files
    return []


def read_sectioned(files: Sequence[Path]) -> Iterator[DocumentRecord]:
    """Yield a document for each file, with sections depth first, and source and summary as metadata.

    Raises an error with file and key for content that breaks docs/formats.md.
    """
    for path in files:
        document = read_document(path)
        text, spans = find_text_and_spans(document, path)
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
            location=path.name,
        )


PAGES = (".md", ".markdown", ".html", ".htm", ".rst")  # which hold no judgments
MARKED = (".xml", ".sgml", ".sgm", ".rss", ".atom", ".trec")
FEW_FILES = 20  # of a folder that may be a dataset
CORPUS_NAMES = ("corpus.jsonl", "corpus.jsonl.gz")
ABOUT = re.compile("read[ _-]?me|licen[cs]e|notice|copying|change(?:s|log)", re.IGNORECASE)  # files about a table
QUERY_NAMES = ("queries.jsonl", "queries.jsonl.gz")  # in BEIR, and their lines look like documents without titles


class SourceError(BenchbenchError):
    """A path that no reader of documents takes."""

    code = "invalid_source"


@dataclass(frozen=True)
class Source:
    """Documents ready to be read once. `total` is their number where it is known, `skipped` has the files left out.

    `reading` says what was read of a table, as far as it was read.
    """

    documents: Iterator[DocumentRecord]
    total: int | None = None
    skipped: Sequence[str] = ()
    reading: Reading = field(default_factory=Reading)


@dataclass(frozen=True)
class Directory:
    """The ids and files of an experiment's documents. Documents in JSON have no `folder`."""

    files: Sequence[tuple[str, Path]]
    folder: Path | None = None

    @property
    def ids(self) -> list[str]:
        return [id for id, _ in self.files]

    def only(self, ids: Container[str]) -> "Directory":
        """Return those of some ids, in file order."""
        return replace(self, files=[(id, file) for id, file in self.files if id in ids])

    def read(self) -> Iterator[DocumentRecord]:
        """Yield the documents. Raises as `read_sectioned` and `read_files` do."""
        if self.folder is None:
            return read_sectioned([file for _, file in self.files])
        return read_files(FolderScan(self.folder, tuple(self.ids)))


def open_directory(directory: Path, *, ignored_file: Path | None = None) -> Directory:
    """Return the documents of a directory: those in JSON files, else each Markdown, HTML or text file in it.

    The id of such a file is its path in the directory, "guide/setup.md". Its title is its first heading, else its name;
    each heading begins a section. The optional second file is left out. Raises FolderError for a directory without
    documents, and an error for damaged JSON.
    """
    files = [file for file in find_documents(directory) if ignored_file is None or not file.samefile(ignored_file)]
    if files:
        return Directory([(read_document(file).id, file) for file in files])
    folder_scan = scan(directory)
    folder = folder_scan.folder
    return Directory([(name, folder / name) for name in folder_scan.files], folder)


def open_source(
    path: Path,
    *,
    uri_prefix: str | None = None,
    references: Container[str] = (),
    columns: Mapping[str, str] | None = None,
) -> Source:
    """Return the documents at `path`: a corpus or table, or a folder that holds one, sectioned documents, or texts.

    `columns` has the fields of a table's columns, where their names say something else.

    With a URI prefix a folder is read as a folder of texts, even if it also has JSON files. Paths in a folder of texts
    begin with its name where more of them are then among the `references` of judgments. Raises SwappedError for a file,
    or a folder of few files, of judged queries.
    """
    if not path.exists():
        raise SourceError(f"{path} does not exist.")
    corpus = find_corpus(path)
    if corpus is None and columns:
        raise SourceError(f"{path.name} is not a table: leave the columns out.", field="columns")
    sectioned = find_sectioned(path) if corpus is None else []
    if sectioned and not uri_prefix:
        return Source(read_sectioned(sectioned), len(sectioned))
    if corpus is None:
        folder_scan = _scan_documents(path, references)
        return Source(read_files(folder_scan, uri_prefix=uri_prefix), len(folder_scan.files), folder_scan.skipped)
    reading = Reading()
    if uri_prefix:
        raise SourceError(f"A URI prefix is for folders of files; the lines of {corpus.name} state a uri each.")
    if corpus.name.lower().removesuffix(".gz").endswith(".jsonl") and is_beir(corpus) and not columns:
        return Source(read_corpus(corpus, reading), reading=reading)
    return Source(read_table_of_documents(corpus, reading, columns), reading=reading)


def _scan_documents(path: Path, references: Container[str]) -> FolderScan:
    files = [file for file in sorted(path.rglob("*"))[: FEW_FILES + 1] if file.is_file()] if path.is_dir() else []
    for file in files if len(files) <= FEW_FILES else ():
        if file.suffix.lower() not in PAGES and not find_root(file):
            refuse_judged(file)
    tables = [file.name for file in files if not ABOUT.fullmatch(file.stem)]
    if tables and all(_is_table(path / name) for name in tables):
        raise SourceError(f"{path.name} holds several tables: {list_some(tables)}. Write their rows into one.")
    folder_scan = scan(path)
    longer = [f"{path.name}/{file}" for file in folder_scan.files]
    if sum(file in references for file in longer) > sum(file in references for file in folder_scan.files):
        return replace(folder_scan, folder=folder_scan.folder.parent, files=tuple(longer))
    return folder_scan


def refuse_judged(path: Path) -> None:
    """Raise SwappedError for a file of queries or judgments."""
    with in_utf8(path) as (copy, _):
        content = describe_judged(copy)
    if content:
        problem = f"{path.name} holds {content}, not documents: import those as a dataset."
        remedy = " If they are documents, name the columns in the first line: id and text."
        raise SwappedError(problem + remedy * (content == "queries"))


DOCUMENT_FIELDS = ("doc_id", "title", "text", "url")


def open_catalogue(id: str) -> Source:
    """Return the documents of a public collection by its id in ir_datasets, one in memory at a time.

    Title, text and url are a document's own where it has a text; else its text is what the library takes for it. Other
    texts and numbers are metadata. Raises CatalogueError, which while they are read says what could not be downloaded.
    """
    dataset = load(id)
    require(dataset, id, "docs")
    about = dataset.docs_metadata() if hasattr(dataset, "docs_metadata") else {}
    return Source(map(_build_document, read(id, dataset.docs_iter)), about.get("count"))


def _build_document(row: Any) -> DocumentRecord:
    fields = row._asdict()
    has_text = isinstance(fields.get("text"), str)
    extra_fields = {name: value for name, value in fields.items() if name not in DOCUMENT_FIELDS} if has_text else {}
    return DocumentRecord(
        external_id=row.doc_id,
        title=str(fields.get("title") or "") if has_text else "",
        text=fields["text"] if has_text else row.default_text(),
        uri=str(fields.get("url") or ""),
        metadata={name: value for name, value in extra_fields.items() if isinstance(value, str | int) and value != ""},
        location=f"document {row.doc_id[:60]!a}",
    )


def find_corpus(path: Path) -> Path | None:
    """Return the BEIR corpus or table that `path` is or holds, or None where `path` is another folder."""
    if not path.is_file():
        corpus = next((path / name for name in CORPUS_NAMES if (path / name).is_file()), None)
        table = _find_only_table(path)
        return corpus or (table and find_corpus(table))
    if not find_root(path):
        refuse_judged(path)
    if path.name in QUERY_NAMES:
        raise SwappedError(
            f"{path.name} is the name of a file of queries, not of documents: import those as a dataset. "
            "If it does hold documents, give it another name."
        )
    if _is_table(path):
        return path
    raise SourceError(f"{path.name} is neither a folder nor a corpus{describe_needs(path)}", field="file")


def describe_needs(path: Path) -> str:
    """Return the end of the sentence about a file that is not read: what it must be."""
    hints = dict.fromkeys(KINDS, " Put texts and pages into a folder, as a .zip to upload them: each is a document.")
    hints |= dict.fromkeys(MARKED, f" In SGML and XML, {READABLE} are read.")
    return f": its name must end in {', '.join(ENDINGS)}, .zip, or .gz.{hints.get(path.suffix.lower(), '')}"


def _find_only_table(folder: Path) -> Path | None:
    """Return the only file of a folder if that is a table; hidden files and those about it do not count."""
    visible = (file for file in folder.rglob("[!.]*") if file.is_file() and not ABOUT.fullmatch(file.stem))
    first, *further = [*islice(visible, 2)] or [folder]
    is_sectioned = first.suffix == ".json" and sniff(first) == "sectioned-document"
    return first if not further and _is_table(first) and not is_sectioned else None


def _is_table(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(ENDINGS) or bool(find_root(path))


@dataclass(frozen=True, slots=True)
class _Line(StrictRecord):
    KEYS = {"external_id": "_id"}
    NULL_IS_A_VALUE = True

    external_id: Identifier
    text: str
    title: str = ""
    uri: str = ""
    metadata: dict[str, object] = field(default_factory=dict)


def read_corpus(path: Path, reading: Reading | None = None) -> Iterator[DocumentRecord]:
    """Yield the documents of a BEIR corpus in file order, one line in memory at a time.

    Each line is an object: `_id` a string that is not blank (an integer is read as its digits), `text` a string,
    optionally `title` and `uri` strings and `metadata` an object. Anything else raises a sentence that names file, line
    and key; further keys with texts and numbers are metadata, which `reading` names.
    """
    further: dict[str, None] = {}
    for location, line in read_objects(path):
        extra = {name: line.pop(name) for name in [*line] if name not in BEIR_KEYS}
        entry = read_as(_Line, line, prefix=f"{location} ")
        further |= dict.fromkeys(extra)
        yield DocumentRecord(
            entry.external_id,
            entry.title,
            entry.text,
            entry.uri,
            metadata={name: value for name, value in extra.items() if is_metadata(value)} | entry.metadata,
            location=location.rstrip(","),
        )
    if further and reading:
        reading.notes.append(f"Further keys, which are not searched: {list_some([*further])}.")


def write_corpus(collection: Collection) -> Iterator[str]:
    """Yield the lines of a corpus.jsonl: every document that was not removed, by id.

    It has no place for file names, hashes of files and sections: documents that came from a corpus come back as they
    were.
    """
    names = ("external_id", "title", "text", "uri", "metadata")
    documents = collection.documents.filter(removed_at=None).order_by("external_id").values_list(*names)
    for external_id, *values in documents.iterator(chunk_size=1000):
        fields = dict(zip(names[1:], values, strict=True))
        present_fields = {name: value for name, value in fields.items() if value or name == "text"}
        yield dump_json({"_id": external_id} | present_fields) + "\n"
