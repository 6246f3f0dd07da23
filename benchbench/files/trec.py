"""TREC's files of judgments and of results: a line each, columns between white space, as trec_eval reads them.

Ids of documents stay bytes, as trec_eval compares them: decoding a million of them takes longer than ranking them, and
an id need not be UTF-8 to be measured. `as_text` decodes those that are to be kept.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchbench.files.errors import FileFormatError
from benchbench.ir.scored import ScoredDocuments
from benchbench.reading.strict_json import decode_part, raw_blocks, raw_lines

GRADE = re.compile(rb"[+-]?[0-9]{1,9}")


def read_qrels(path: Path) -> dict[str, dict[bytes, int]]:
    """Return the grades of each query by document, in file order: lines `qid iter docno rel`, iter ignored.

    A grade is any integer. As to trec_eval, a document that is judged twice for a query is an error.
    """
    truth: dict[bytes, dict[bytes, int]] = {}
    for number, line in raw_lines(path):
        columns = line.split()
        if not columns:
            continue
        if len(columns) != 4:
            raise _fault(path, number, f"has {len(columns)} columns: qid, iter, docno and rel are expected")
        query, _, document, grade = columns
        if not GRADE.fullmatch(grade):
            raise _fault(path, number, f"has the grade {_shown(grade)}, which is not an integer")
        judged = truth.setdefault(query, {})
        if document in judged:
            raise _fault(path, number, f"judges the document {_shown(document)} of the query {_shown(query)} again")
        judged[document] = int(grade)
    if not truth:
        raise FileFormatError(f"{path.name} holds no judgment.")
    return {_key(path, query): judged for query, judged in truth.items()}


def read_run(path: Path) -> dict[str, ScoredDocuments[bytes]]:
    """Return the results of each query: lines `qid Q0 docno rank score tag`; the lines of a query may be anywhere.

    Rank and what follows the score are not read: the score alone orders, see `ScoredDocuments.ranking`. About half a
    second and 130 MB for a million lines, so the loop does for a line only what must be done for each.
    """
    by_query: dict[bytes, tuple[list[bytes], list[float]]] = {}
    current = None
    documents: list[bytes] = []
    scores: list[float] = []
    for first, lines in raw_blocks(path):
        for at, line in enumerate(lines):
            try:
                query, _, document, _, score, _ = line.split(None, 5)
                scored = float(score)
            except ValueError:
                if not line.strip():
                    continue
                raise _fault_of_run(path, first + at, line) from None
            if b"_" in score:  # Python reads 1_0 as 10
                raise _fault_of_run(path, first + at, line)
            if query != current:
                documents, scores = by_query.setdefault(query, ([], []))
                current = query
            documents.append(document)
            scores.append(scored)
    if not by_query:
        raise FileFormatError(f"{path.name} holds no result.")
    return {key: _scored(path, key, *of) for key, of in ((_key(path, query), of) for query, of in by_query.items())}


def read_tags(path: Path) -> tuple[tuple[str, ...], int]:
    """Return the distinct tags of a run, the sixth column, in the order in which they occur first; and of how many
    lines more follows, which trec_eval skips: where an id has white space, its score is what stands as its rank.

    A tag is a name and compared with nothing: what of it is no text, or NUL, is shown as U+FFFD.
    """
    tags: dict[bytes, None] = {}
    longer = 0
    for _, lines in raw_blocks(path):
        columns = [parts for line in lines if (parts := line.split(None, 6))]
        tags.update(dict.fromkeys(parts[5] for parts in columns))
        longer += sum(len(parts) > 6 for parts in columns)
    return tuple(tag.decode(errors="replace").replace("\0", "\ufffd") for tag in tags), longer


def repeated_document(path: Path, query: str) -> FileFormatError:
    """Return the error that says on which line of a run a document of `query` stands for the second time."""
    lines: dict[bytes, int] = {}
    for number, line in raw_lines(path):
        columns = line.split(None, 3)
        if columns and columns[0] == query.encode():
            document = columns[2]
            first = lines.setdefault(document, number)
            if first != number:
                what = f"ranks the document {_shown(document)} of the query {query[:60]!a} again"
                return _fault(path, number, f"{what}, after line {first}: a ranking holds it once")
    raise AssertionError(f"No document of {query!r} stands twice.")


def as_text(documents: Sequence[bytes], *, where: str) -> list[str]:
    """Return ids as text, by one call, since an id holds no white space; `where` begins the sentence of an error."""
    return decode_part(b"\n".join(documents), where=f"{where} has a document whose id").split("\n") if documents else []


def write_qrels(rows: Iterable[tuple[str, str, int]]) -> Iterator[str]:
    """Yield lines `qid 0 docno rel` from (query, document, grade); see `column` for what it raises."""
    for query, document, grade in rows:
        yield f"{column(query)} 0 {column(document)} {grade}\n"


def column(text: str) -> str:
    """Return an id that fits in a column; raise FileFormatError for one that is blank or has white space."""
    if not fits_column(text):
        raise FileFormatError(f"The id {text[:80]!r} has white space, which a column of a TREC file cannot hold.")
    return text


def fits_column(text: str) -> bool:
    """Whether an id is read as it was written: it is not blank, and has none of ASCII's white space, as C knows it."""
    return text.encode().split() == [text.encode()]


def _scored(path: Path, key: str, documents: list[bytes], scores: list[float]) -> ScoredDocuments[bytes]:
    place = f"{path.name}, query {key[:60]!a},"
    if any(map(math.isnan, scores)):
        raise FileFormatError(f"{place} has a score that is not a number (NaN).")
    return ScoredDocuments(place, documents, scores)


def _key(path: Path, query: bytes) -> str:
    return decode_part(query, where=f"{path.name} has the query {_shown(query)}, which")


def _fault_of_run(path: Path, number: int, line: bytes) -> FileFormatError:
    columns = line.split(None, 5)
    if len(columns) < 6:
        what = f"has {len(columns)} columns: qid, Q0, docno, rank, score and a tag are expected"
        return _fault(path, number, what)
    return _fault(path, number, f"has the score {_shown(columns[4])}, which is not a number")


def _shown(column: bytes) -> str:
    """Return what a column holds as an error has it: text, whatever bytes it is."""
    return ascii(column.decode(errors="replace")[:60])


def _fault(path: Path, number: int, what: str) -> FileFormatError:
    return FileFormatError(f"{path.name}, line {number}, {what}.")
