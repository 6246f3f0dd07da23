"""TREC's files of judgments and of results: one line each, columns between white space, as trec_eval reads them."""

import re
from pathlib import Path

from benchbench.files.errors import FileFormatError
from benchbench.ir.scored import ScoredDocuments
from benchbench.strict_json import decode, raw_lines

GRADE = re.compile(rb"[+-]?[0-9]{1,9}")


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Return the grades of each query by document, in file order: lines `qid iter docno rel`, iter ignored.

    A grade is any integer. As to trec_eval, a document that is judged twice for a query is an error.
    """
    truth: dict[str, dict[str, int]] = {}
    for number, line in raw_lines(path):
        columns = line.split()
        if not columns:
            continue
        where = f"{path.name}, line {number},"
        if len(columns) != 4:
            raise FileFormatError(f"{where} has {len(columns)} columns: qid, iter, docno and rel are expected.")
        query, document = (decode(columns[column], where=where) for column in (0, 2))
        if not GRADE.fullmatch(columns[3]):
            raise FileFormatError(f"{where} has the grade {columns[3][:40]!r}, which is not an integer.")
        judged = truth.setdefault(query, {})
        if document in judged:
            raise FileFormatError(f"{where} judges the document {document[:60]!a} of the query {query[:60]!a} again.")
        judged[document] = int(columns[3])
    if not truth:
        raise FileFormatError(f"{path.name} holds no judgment.")
    return truth


def read_run(path: Path) -> dict[str, ScoredDocuments]:
    """Return the results of each query: lines `qid Q0 docno rank score tag`; the lines of a query may be anywhere.

    Rank and what follows the score are not read: the score alone orders, see `ScoredDocuments.ranking`. About .9 s and
    130 MB for a million lines, so the loop does for a line only what must be done for each.
    """
    found: dict[bytes, tuple[list[bytes], list[float]]] = {}
    current = None
    documents: list[bytes] = []
    scores: list[float] = []
    for number, line in raw_lines(path):
        try:
            query, _, document, _, score, _ = line.split(None, 5)
            scored = float(score)
            if scored != scored or b"_" in score:  # NaN; Python reads 1_0 as 10
                raise ValueError
        except ValueError:
            if not line.strip():
                continue
            raise _fault(path, number, line) from None
        if query != current:
            documents, scores = found.setdefault(query, ([], []))
            current = query
        documents.append(document)
        scores.append(scored)
    if not found:
        raise FileFormatError(f"{path.name} holds no result.")
    return dict(_decoded(path, query, *found.pop(query)) for query in list(found))  # frees what it has decoded


def _decoded(path: Path, query: bytes, documents: list[bytes], scores: list[float]) -> tuple[str, ScoredDocuments]:
    key = decode(query, where=f"{path.name} has the query {query[:60]!r}, which")
    place = f"{path.name}, query {key[:60]!a},"
    # An id holds no white space, so that one call decodes all ids of a query.
    names = decode(b"\n".join(documents), where=f"{place} has a document whose id").split("\n")
    return key, ScoredDocuments(place, names, scores)


def _fault(path: Path, number: int, line: bytes) -> FileFormatError:
    columns = line.split(None, 5)
    where = f"{path.name}, line {number},"
    if len(columns) < 6:
        return FileFormatError(
            f"{where} has {len(columns)} columns: qid, Q0, docno, rank, score and a tag are expected."
        )
    return FileFormatError(f"{where} has the score {columns[4][:40]!r}, which is not a number.")
