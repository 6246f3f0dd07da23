"""Sources of documents: a folder of files or of sectioned documents, or a BEIR corpus."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from apps.collections.catalogue import read_catalogue
from apps.collections.corpus import read_corpus
from apps.collections.folders import FolderScan, read_files, scan
from apps.collections.records import DocumentRecord
from apps.collections.sectioned import find_sectioned, read_sectioned
from benchbench.errors import BenchbenchError
from benchbench.files.sectioned import find_documents, read_document

CORPUS_NAMES = ("corpus.jsonl", "corpus.jsonl.gz")
QUERY_NAMES = ("queries.jsonl", "queries.jsonl.gz")  # in BEIR, and their lines look like documents without titles


class SourceError(BenchbenchError):
    """A path that no reader of documents takes."""

    code = "invalid_source"


@dataclass(frozen=True)
class Source:
    """Documents ready to be read once. `total` is their number where it is known, `others` counts files left out."""

    documents: Iterator[DocumentRecord]
    total: int | None = None
    others: int = 0


@dataclass(frozen=True)
class Directory:
    """A directory of documents, as experiments have: the id and the file of each. `folder` is None of those in JSON."""

    files: Sequence[tuple[str, Path]]
    folder: Path | None = None

    @property
    def ids(self) -> list[str]:
        return [id for id, _ in self.files]

    def only(self, ids: Collection[str]) -> "Directory":
        """Return those of some ids, in file order."""
        return replace(self, files=[(id, file) for id, file in self.files if id in ids])

    def read(self) -> Iterator[DocumentRecord]:
        """Yield the documents. Raises as `read_sectioned` and `read_files` do."""
        if self.folder is None:
            return read_sectioned([file for _, file in self.files])
        return read_files(FolderScan(self.folder, tuple(self.ids), others=0))


def documents_in(directory: Path, *, besides: Path | None = None) -> Directory:
    """Return the documents of a directory: those that JSON files state, else each Markdown, HTML or text file in it.

    Such a file is called by its path in the directory, "guide/setup.md"; its title is its first heading, else its name,
    and headings begin its sections. The file `besides` is none of them. Raises FolderError where there are none, and a
    sentence for damaged JSON.
    """
    files = [file for file in find_documents(directory) if besides is None or not file.samefile(besides)]
    if files:
        return Directory([(read_document(file).id, file) for file in files])
    folder_scan = scan(directory)
    folder = folder_scan.folder
    return Directory([(name, folder / name) for name in folder_scan.files], folder)


def open_source(path: Path, *, uri_prefix: str = "") -> Source:
    """Return the documents at `path`: a corpus file, or a folder that holds one, sectioned documents, or texts.

    With a URI prefix a folder is one of texts, whatever JSON files stand beside them.
    """
    if not path.exists():
        raise SourceError(f"{path} does not exist.")
    corpus = find_corpus(path)
    sectioned = find_sectioned(path) if corpus is None else []
    if sectioned and not uri_prefix:
        return Source(read_sectioned(sectioned), len(sectioned))
    if corpus is None:
        folder_scan = scan(path)
        return Source(read_files(folder_scan, uri_prefix=uri_prefix), len(folder_scan.files), folder_scan.others)
    if uri_prefix:
        raise SourceError(f"A URI prefix is for folders of files; the lines of {corpus.name} state a uri each.")
    return Source(read_corpus(corpus))


def open_catalogue(id: str) -> Source:
    """Return the documents of a public collection by its id in ir_datasets."""
    return Source(*read_catalogue(id))


def find_corpus(path: Path) -> Path | None:
    """Return the BEIR corpus that `path` is or holds, or None where `path` is another folder."""
    if path.is_file():
        if path.name in QUERY_NAMES:
            raise SourceError(
                f"{path.name} is the name of a file of queries, not of documents: import those as a dataset. "
                "If it does hold documents, give it another name."
            )
        if path.name.endswith((".jsonl", ".jsonl.gz")):
            return path
        raise SourceError(f"{path} is neither a folder nor a corpus: a corpus ends in .jsonl or .jsonl.gz.")
    return next((path / name for name in CORPUS_NAMES if (path / name).is_file()), None)
