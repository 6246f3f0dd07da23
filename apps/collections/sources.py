"""Sources of documents: a folder of files or of sectioned documents, or a BEIR corpus."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from apps.collections.catalogue import read_catalogue
from apps.collections.corpus import read_corpus
from apps.collections.folders import read_files, scan
from apps.collections.records import DocumentRecord
from apps.collections.sectioned import find_sectioned, read_sectioned
from benchbench.errors import BenchbenchError

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
