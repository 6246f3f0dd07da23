"""TREC's files of judgments and of results: lines with columns separated by white space, as trec_eval reads them.

Ids of documents stay bytes, as trec_eval compares them: decoding a million of them takes longer than ranking them, and
an id need not be UTF-8 to be measured. `decode_ids` decodes the ids to be stored.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchbench.errors import FileFormatError
from benchbench.files.ratings import parse_grade
from benchbench.ir.records import ScoredDocuments
from benchbench.markup import decode_entities
from benchbench.reading.strict_json import decode_chunk, read_blocks, read_lines, read_raw_lines, read_text
from benchbench.texts.storable import clean_text

GRADE = re.compile(rb"[+-]?[0-9]{1,9}")
TAG_BYTES, LONGEST_TAG = 1000, 200  # bytes of a tag that are read, and characters of it that are shown
INTEGER = re.compile(rb"[+-]?[0-9]+")


def read_qrels(path: Path) -> dict[str, dict[bytes, int]]:
    """Return the grades of each query by document, in file order: lines `qid iter docno rel`, iter ignored.

    A grade is any integer. As in trec_eval, a document that is judged twice for a query is an error.
    """
    truth: dict[bytes, dict[bytes, int]] = {}
    for number, line in read_raw_lines(path):
        columns = line.split()
        if not columns:
            continue
        if len(columns) != 4:
            hint = "; six are those of a run, so the files may be swapped" if len(columns) == 6 else ""
            raise _fault(path, number, f"has {len(columns)} columns: qid, iter, docno and rel are expected{hint}")
        query, _, document, grade = columns
        parsed = int(grade) if GRADE.fullmatch(grade) else parse_grade(grade.decode(errors="replace"))
        if parsed is None:
            raise _fault(path, number, f"has the grade {_quote(grade)}, which is not an integer")
        judged = truth.setdefault(query, {})
        if document in judged:
            judged_again = f"judges the document {_quote(document)} of the query {_quote(query)} again"
            raise _fault(path, number, f"{judged_again}: keep one of the lines")
        judged[document] = parsed
    if not truth:
        raise FileFormatError(f"{path.name} contains no judgments.")
    return {_key(path, query): judged for query, judged in truth.items()}


def read_run(path: Path) -> dict[str, ScoredDocuments[bytes]]:
    """Return the results of each query: lines `qid Q0 docno rank score tag`; the lines of a query may be anywhere.

    The rank and the tag, of any number of words, are ignored: the score alone orders, see `ScoredDocuments.ranking`. A
    line is refused if it can also be read with white space in an id. A million lines take about half a second and 130
    MB, so the loop does as little as possible per line.
    """
    by_query: dict[bytes, tuple[list[bytes], list[float]]] = {}
    current = None
    documents: list[bytes] = []
    scores: list[float] = []
    for first, lines in read_blocks(path):
        for at, line in enumerate(lines):
            try:
                query, _, document, rank, score, _ = line.split()
                scored = float(score)
            except ValueError:
                if not line.strip():
                    continue
                query, _, document, _, score = _read_result(path, first + at, line)
                scored = float(score)
            else:
                if b"_" in score or not rank.isdigit():
                    _read_result(path, first + at, line)
            if query != current:
                documents, scores = by_query.setdefault(query, ([], []))
                current = query
            documents.append(document)
            scores.append(scored)
    if not by_query:
        raise FileFormatError(f"{path.name} contains no results.")
    return {
        key: _build_scored(path, key, *results)
        for key, results in ((_key(path, query), results) for query, results in by_query.items())
    }


def read_tags(path: Path) -> tuple[str, ...]:
    """Return the distinct tags of a run (what follows the score) in order of occurrence.

    A tag is only displayed, so what cannot be stored becomes U+FFFD.
    """
    tags: dict[bytes, None] = {}
    for _, lines in read_blocks(path):
        tags.update(dict.fromkeys(fields[5].rstrip() for line in lines if (fields := line.split(None, 5))))
    return tuple(clean_text(tag[:TAG_BYTES].decode(errors="replace"), LONGEST_TAG) for tag in tags)


def build_repeat_error(path: Path, query: str) -> FileFormatError:
    """Return the error with the line on which a document of `query` occurs for the second time in a run."""
    lines: dict[bytes, int] = {}
    for number, line in read_raw_lines(path):
        columns = line.split(None, 3)
        if columns and columns[0] == query.encode():
            document = columns[2]
            first = lines.setdefault(document, number)
            if first != number:
                problem = f"ranks the document {_quote(document)} of the query {query[:60]!a} again"
                return _fault(path, number, f"{problem}, after line {first}: rank each document once")
    raise AssertionError(f"No document of {query!r} is ranked twice.")


def decode_ids(documents: Sequence[bytes], *, location: str) -> list[str]:
    """Return ids as text, decoded by one call, since ids hold no white space; `location` begins an error's message."""
    return (
        decode_chunk(b"\n".join(documents), location=f"{location} has a document whose id").split("\n")
        if documents
        else []
    )


def write_qrels(rows: Iterable[tuple[str, str, int]]) -> Iterator[str]:
    """Yield lines `qid 0 docno rel` from (query, document, grade); see `check_column` for what it raises."""
    for query, document, grade in rows:
        yield f"{check_column(query)} 0 {check_column(document)} {grade}\n"


def check_column(text: str) -> str:
    """Return an id that fits in a column. Raises FileFormatError for a blank id or one with white space."""
    if not fits_column(text):
        raise FileFormatError(f"The id {text[:80]!r} has white space, which a column of a TREC file cannot hold.")
    return text


def fits_column(text: str) -> bool:
    """Return whether an id survives writing and reading: it is not blank and contains no ASCII white space (C's)."""
    return text.encode().split() == [text.encode()]


def _build_scored(path: Path, key: str, documents: list[bytes], scores: list[float]) -> ScoredDocuments[bytes]:
    location = f"{path.name}, query {key[:60]!a},"
    if any(map(math.isnan, scores)):
        raise FileFormatError(f"{location} has a score that is not a number (NaN).")
    return ScoredDocuments(location, documents, scores)


def _key(path: Path, query: bytes) -> str:
    return decode_chunk(query, location=f"{path.name} has the query {_quote(query)}, which")


def _read_result(path: Path, number: int, line: bytes) -> list[bytes]:
    """Return the first five columns of a result. Raises FileFormatError for an invalid or ambiguous line.

    White space in an id moves rank and score to the right, where words of the tag may look like them. So a line whose
    later columns can be rank and score is refused.
    """
    columns = line.split()
    if len(columns) < 6:
        hint = "; four are those of judgments, so the files may be swapped" if len(columns) == 4 else ""
        names = "qid, Q0, docno, rank, score and a tag"
        raise _fault(path, number, f"has {len(columns)} columns: {names} are expected{hint}")
    end = len(columns) - 1 if INTEGER.fullmatch(columns[3]) else len(columns)  # by which a reading must have its score
    for column in range(5, end):
        if INTEGER.fullmatch(columns[column - 1]) and _is_number(columns[column]):
            id = _quote(b" ".join(columns[2 : column - 1]))
            raise _fault(
                path,
                number,
                f"can be read as a result for the document {id}: columns end at white space, so write ids without it, "
                "and the tag as one word",
            )
    if not _is_number(columns[4]):
        raise _fault(path, number, f"has the score {_quote(columns[4])}, which is not a number")
    return columns[:5]


def _is_number(column: bytes) -> bool:
    try:
        float(column)
    except ValueError:
        return False
    return b"_" not in column  # Python reads 1_0 as 10


def _quote(column: bytes) -> str:
    """Return a column as text for an error message, even if its bytes are not valid UTF-8."""
    return ascii(column.decode(errors="replace")[:60])


def _fault(path: Path, number: int, problem: str) -> FileFormatError:
    return FileFormatError(f"{path.name}, line {number}, {problem}.")


TAGS = "num|identifier|title|query|question|desc|description|narr|narrative"
# A tag ends before the next one begins: sought further, the end of each open tag would cost the rest of the file.
BLOCK = re.compile(r"<(top|topic)\b([^<>]*)>(.*?)(?=</\1\s*>|<\1\b|\Z)", re.DOTALL | re.IGNORECASE)
UNREAD = "head|dom|smry|con|fac|nat|def|time|subtopic"  # of the first years of TREC, and of its web track
FIELD = re.compile(rf"<({TAGS})\b[^<>]*>(.*?)(?=</?(?:{TAGS}|{UNREAD})\b|\Z)", re.DOTALL | re.IGNORECASE)
NUMBER = re.compile(r"\b(?:number|id)\s*=\s*[\"']([^\"']*)[\"']", re.IGNORECASE)
LABEL = re.compile(r"\s*(?:number|topic|description|narrative)\s*:", re.IGNORECASE)  # `<num> Number: 301`
FULL_NAMES = {"identifier": "num", "desc": "description", "narr": "narrative"}
SPACE = " \t\n\v\f\r"  # ASCII's, as between columns; a key or a text may end in other white space
TEXT = ("title", "query", "question", "description")


@dataclass(frozen=True, slots=True)
class Topic:
    """A query with its author's description of the information need."""

    key: str
    text: str
    description: str = ""
    narrative: str = ""


def read_topics(path: Path) -> list[Topic]:
    """Return the topics in file order.

    The text of a topic is its title, else its query, question or description. Tags may be left open, as in TREC's own
    files, so this is not an XML parser. Entities of a document type are not expanded.
    """
    places: dict[str, str] = {}
    topics = []
    read = _read_blocks if next(read_lines(path), ("", ""))[1].lstrip().startswith("<") else _read_lines
    for location, topic in read(path):
        if not topic.key.strip() or not topic.text.strip():
            raise FileFormatError(f"{location} has a topic without {'a text' if topic.key.strip() else 'a number'}.")
        if topic.key in places:
            raise FileFormatError(
                f"{location} repeats the number {topic.key[:60]!a} of {places[topic.key].rstrip(',')}: "
                "give each topic its own."
            )
        places[topic.key] = location
        topics.append(topic)
    if not topics:
        raise FileFormatError(f"{path.name} contains no topics.")
    return topics


def write_topics(topics: Iterable[Topic]) -> Iterator[str]:
    """Yield lines `qid text`, without descriptions and narratives.

    Raises FileFormatError for topics that would be read differently: a number with a tab or that begins like a tag, a
    text with a line break or surrounding ASCII white space, and blank numbers or texts.
    """
    for topic in topics:
        key, text = topic.key, topic.text
        damaged = "\t" in key or key.startswith("<") or "\n" in key + text
        if damaged or not key.strip() or not text.strip() or (key, text) != (key.strip(SPACE), text.strip(SPACE)):
            raise FileFormatError(f"The topic {key[:80]!a} does not fit on a line with a tab after its number.")
        yield f"{key}\t{text}\n"


def _read_lines(path: Path) -> Iterator[tuple[str, Topic]]:
    for location, line in read_lines(path):
        key, separator, text = line.partition("\t")
        if not separator:
            raise FileFormatError(f"{location} has no tab between the number of a query and its text.")
        yield location, Topic(key.strip(SPACE), text.strip(SPACE))


def _read_blocks(path: Path) -> Iterator[tuple[str, Topic]]:
    text = read_text(path)
    line, counted = 1, 0
    for block in BLOCK.finditer(text):
        line, counted = line + text.count("\n", counted, block.start()), block.start()
        yield f"{path.name}, line {line},", _build_topic(attributes=block[2], inside=block[3])


def _build_topic(*, attributes: str, inside: str) -> Topic:
    fields: dict[str, str] = {}
    if number := NUMBER.search(attributes):
        fields["num"] = _clean_number(number[1])
    for name, written in FIELD.findall(inside):
        name = FULL_NAMES.get(name.lower(), name.lower())
        fields.setdefault(name, _clean_number(written) if name == "num" else _clean(written))
    return Topic(
        key=fields.get("num", ""),
        text=next((fields[name] for name in TEXT if fields.get(name)), ""),
        description=fields.get("description", ""),
        narrative=fields.get("narrative", ""),
    )


def _clean(written: str) -> str:
    """Return a field on one line, without the label that TREC writes before some fields, and with entities decoded."""
    return " ".join(_decode(written).split())


def _clean_number(written: str) -> str:
    """Return the number of a topic without the white space that separates columns; other white space is its own."""
    return _decode(written).strip(SPACE)


def _decode(written: str) -> str:
    label = LABEL.match(written)
    return decode_entities(written[label.end() :] if label else written)
