"""Documents as search engines and feeds write them: TREC's SGML, XML of Solr, RSS and Atom, answers in JSON.

Each becomes a row, as of a table. XML is parsed by expat, which opens nothing; declarations of entities are refused.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from xml.parsers import expat

from benchbench.errors import FileFormatError
from benchbench.files.tables import Row, is_document
from benchbench.markup import decode_entities
from benchbench.reading.strict_json import MalformedFileError, decode_chunk, read_chunks, read_raw_lines, read_value

HEAD_BYTES = 2**12
ROOT = re.compile(rb"(?>\s+|<\?[^>]*>|<!--.*?-->|<!(?!--)[^>\[]*(?:\[[^\]]*\][^>]*)?>)*+<([\w:]+)", re.DOTALL)
XML = {b"add", b"rss", b"feed", b"rdf:rdf"}
RECORDS = {"doc", "item", "entry"}  # elements that are documents
MOST_COLUMNS = 20  # that a document has though it lacks them, because those before have them
ANSWER = re.compile(rb'"(?:hits|response)"\s*:\s*\{')
MOST_BYTES = 2**27  # of an answer, which is read at once
READABLE = "<DOC> of TREC, <doc> in Solr's <add>, <item> of RSS, <entry> of Atom"


def find_root(path: Path) -> bytes:
    """Return the name of the first element of a file of documents in SGML or XML, in small letters; b"" for others."""
    head = b""
    with suppress(MalformedFileError):
        head = next(read_chunks(path), b"")[:HEAD_BYTES]
    if not head and path.is_file():
        with path.open("rb") as file:  # perhaps UTF-16
            head = file.read(HEAD_BYTES).replace(b"\0", b"").lstrip(b"\xff\xfe")
    root = ROOT.match(head)
    return name if root and (name := root[1].lower()) in {b"doc", *XML} else b""


def read_documents(path: Path, warnings: list[str]) -> Iterator[Row] | None:
    """Return the rows of a file of documents; None for a table. `warnings` says if an answer has only the first.

    Raises FileFormatError for damaged XML, with its line.
    """
    if root := find_root(path):
        return _read_sgml(path) if root == b"doc" else _read_xml(path)
    head = next(read_chunks(path), b"")
    if not head.lstrip().startswith(b"{") or not ANSWER.search(head) or path.stat().st_size > MOST_BYTES:
        return None
    with suppress(MalformedFileError):  # of JSON Lines, or as the reader of tables says
        return _find_hits(path, read_value(path), warnings)
    return None


def _find_hits(path: Path, value: dict[str, object], warnings: list[str]) -> Iterator[Row] | None:
    """Return the documents in an answer of Elasticsearch or Solr; None for other objects."""
    if is_document(value):
        return None
    for name, key, count in (("hits", "hits", "total"), ("response", "docs", "numFound")):
        answer = value.get(name)
        answer = answer if isinstance(answer, dict) else {}
        hits = answer.get(key)
        if isinstance(hits, list) and all(isinstance(hit, dict) for hit in hits):
            total = answer.get(count)
            total = total.get("value") if isinstance(total, dict) else total
            if isinstance(total, int) and total > len(hits):
                warnings.append(f"{path.name} has {len(hits):,} of {total:,} documents: ask the engine for the others.")
            return ((f"{path.name}, {name}.{key}[{number}]", hit) for number, hit in enumerate(hits))
    return None


END = re.compile(r"</doc\s*>", re.IGNORECASE)
START = re.compile(r"<doc\b([^<>]*)>", re.IGNORECASE)
ATTRIBUTE = re.compile(r'(?<!\w)(\w++)="([^"]*)"')
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
TITLES = ("title", "headline", "hl", "head", "ttl")
FIELDS = {
    name: (re.compile(rf"<{name}\b[^<>]*>", re.IGNORECASE), re.compile(rf"</{name}\s*>", re.IGNORECASE))
    for name in ("docno", "docid", "dochdr", "text", *TITLES)
}


def _read_sgml(path: Path) -> Iterator[Row]:
    """Yield each <DOC>: its number, its title and its texts, without tags. Without <TEXT>, all that remains is text."""
    pieces: list[str] = []
    begins = 0
    for number, line in read_raw_lines(path):
        location = f"{path.name}, line {begins or number},"
        *ended, open_piece = END.split(decode_chunk(line, location=location))
        for piece in ended:
            yield location, _build_row("".join([*pieces, piece]), location)
            pieces, begins = [], number
        if open_piece.strip() or pieces:
            begins = begins if pieces else number
            pieces.append(open_piece)
    if pieces:
        raise FileFormatError(f"{path.name}, line {begins}, begins a document without an end: add </DOC>.")


def _build_row(block: str, location: str) -> dict[str, object]:
    start = START.match(block.lstrip())
    if start is None:
        raise FileFormatError(f"{location} has words outside of a document: begin each with <DOC>.")
    row: dict[str, object] = dict(ATTRIBUTE.findall(start[1]))
    texts: dict[str, list[str]] = {}
    remainder = block.lstrip()[start.end() :]
    for name in FIELDS:
        texts[name], remainder = _cut(remainder, name)
    title = next((texts[name][:1] for name in TITLES if texts[name]), [])
    for name, pieces in (("docno", texts["docno"][:1]), ("title", title)):
        row |= {name: _strip(pieces)} if pieces else {}
    return row | {"text": _strip(texts["text"] or [remainder])}


def _cut(block: str, name: str) -> tuple[list[str], str]:
    """Return what is inside the elements of a name, and the block without them; an open one goes to the end."""
    opening, closing = FIELDS[name]
    inside, outside, at = [], [], 0
    while start := opening.search(block, at):
        end = closing.search(block, start.end())
        inside.append(block[start.end() : end.start() if end else len(block)])
        outside.append(block[at : start.start()])
        at = end.end() if end else len(block)
    return inside, "".join([*outside, block[at:]])


def _strip(texts: list[str]) -> str:
    return decode_entities(TAG.sub(" ", "\n".join(text.strip() for text in texts))).strip()


def _read_xml(path: Path) -> Iterator[Row]:
    records = _Records(path.name)
    for chunk in read_chunks(path):
        yield from records.parse(chunk)
    yield from records.parse(b"", is_last=True)


class _Records:
    """The documents in XML: an element of RECORDS each, whose inner elements are columns; repeated ones are lists."""

    def __init__(self, name: str) -> None:
        self.name, self.depth, self.level, self.line = name, 0, 0, 0  # `level` is the depth of the open record
        self.rows: list[Row] = []
        self.columns: dict[str, str] = {}
        self.record: dict[str, object] = {}
        self.column, self.link = "", ""
        self.texts: list[str] = []
        self.parser = expat.ParserCreate("utf-8")  # in which files are read, also those that declare another
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._take
        self.parser.EntityDeclHandler = self._refuse
        self.parser.SkippedEntityHandler = lambda name, is_parameter: self._take(decode_entities(f"&{name};"))

    def parse(self, chunk: bytes, *, is_last: bool = False) -> list[Row]:
        """Return the documents that end in a chunk."""
        try:
            self.parser.Parse(chunk, is_last)
        except expat.ExpatError as error:
            problem = expat.ErrorString(error.code)
            raise FileFormatError(f"{self.name}, line {error.lineno}, is not XML: {problem}.") from None
        rows, self.rows = self.rows, []
        return rows

    def _refuse(self, *_: object) -> None:
        raise FileFormatError(f"{self.name} declares entities, which are not read: remove its <!DOCTYPE …>.")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if not self.level and name in RECORDS:
            self.level, self.record, self.line = self.depth, {}, self.parser.CurrentLineNumber
        elif self.level and name in RECORDS:
            location = f"{self.name}, line {self.parser.CurrentLineNumber},"
            raise FileFormatError(f"{location} begins a document within another: write it after that.")
        elif self.depth == self.level + 1:
            self.column = attributes.get("name", name) if name == "field" else name
            self.link = attributes.get("href", "") if attributes.get("rel", "alternate") == "alternate" else ""
            self.texts = []
        self._take(" ")

    def _take(self, text: str) -> None:
        if self.level:
            self.texts.append(text)

    def _end(self, name: str) -> None:
        self._take(" ")
        if self.level and self.depth == self.level + 1:
            self._add("".join(self.texts).strip() or self.link)
        elif self.depth == self.level:
            self.rows.append((f"{self.name}, line {self.line},", self.columns | self.record))
            self.columns |= dict.fromkeys(list(self.record)[: MOST_COLUMNS - len(self.columns)], "")
            self.level = 0
        self.depth -= 1

    def _add(self, value: str) -> None:
        before = self.record.get(self.column)
        if not before or not value:
            self.record[self.column] = before or value
        elif isinstance(before, list):
            before.append(value)
        else:
            self.record[self.column] = [before, value]
