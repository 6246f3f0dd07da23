"""Quepid's exports: the ratings of a case as CSV, JSON or for learning to rank, a snapshot as JSON.

Sources: github.com/o19s/quepid at f80322f, `app/controllers/api/v1/export/ratings_controller.rb` (CSV "Basic"),
`app/assets/javascripts/services/caseCSVSvc.js` (CSV "Detailed"), `app/views/api/v1/export/ratings` (JSON, RRE and
learning to rank) and, for the snapshot, `app/views/api/v1/snapshots/_snapshot.json.jbuilder` and
`app/views/api/v1/queries/_query.json.jbuilder`. RRE groups queries: github.com/SeaseLtd/rated-ranking-evaluator.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchbench.errors import FileFormatError
from benchbench.files.ratings import Rating, build_text_key
from benchbench.files.tables import read_table
from benchbench.reading.objects import Filled, Identifier, Listed, StrictRecord, read_as
from benchbench.reading.strict_json import kind, read_lines, read_value

COLUMNS = {"query": "query", "querytext": "query", "docid": "docid", "rating": "rating"}
MARK = re.compile(r"\A (?=[=+@-])")
DETAILED = "Query Text"  # a column of the export "Detailed" alone, which doubles quotes also in cells without quotes


def find_columns(names: Iterable[str]) -> dict[str, str]:
    """Return Quepid's columns query, docid and rating by the names that they have in either export."""
    folded = {name.strip().lower().replace(" ", "").replace("_", ""): name for name in names}
    return {COLUMNS[name]: column for name, column in folded.items() if name in COLUMNS}


# A rating, the id of a query, values of features, and in a remark the document and the text of the query.
RANKED = re.compile(
    r"(?:([+-]?\d{1,9}(?:\.\d{1,15})?)\s+)?qid:(\S+)(?:\s+\d+:\S+)*+\s*(?:#\s*(.*))?", re.ASCII | re.DOTALL
)
TEXT_OF_QUERY = re.compile(r"#\s*qid:(\S+?):\s*(.*)", re.DOTALL)
ASSIGNED = re.compile(r"\w+\s*=")  # as LETOR has it: #docid = GX029
GROUPS = ("topics", "query_groups", "queries")


def are_ranked(lines: Iterable[str]) -> bool:
    """Return whether lines are judgments for learning to rank."""
    rated = [line.strip() for line in lines if not line.lstrip().startswith("#")]
    return bool(rated) and all(map(RANKED.fullmatch, rated))


def read_rows(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield location, query, docid and rating of each rated document of an export, as Quepid has them.

    A query without ratings has neither docid nor rating. Errors name the line or the key.
    """
    first = next((line.lstrip() for _, line in read_lines(path)), "")
    if first.startswith("{"):
        yield from _yield_rated(read_value(path), path.name, {})
    elif first.startswith("#") or RANKED.fullmatch(first.strip()):
        yield from _read_ranked(path)
    else:
        yield from _read_csv(path)


def _yield_rated(value: object, location: str, inherited: object) -> Iterator[tuple[str, str, str, str]]:
    """Yield the ratings of an object of RRE or Quepid: those of its groups of queries, or it is a query."""
    if not isinstance(value, dict):
        raise FileFormatError(f"{location} must be an object, not {kind(value)}.")
    documents = value.get("relevant_documents", value.get("ratings", inherited))
    groups = [(name, value[name]) for name in GROUPS if isinstance(value.get(name), list)]
    for name, inner in groups:
        for number, each in enumerate(inner):
            yield from _yield_rated(each, f"{location}, {name}[{number}]", documents)
    if groups:
        return
    text = _find_text(value, location)
    if not isinstance(documents, dict):
        raise FileFormatError(f"{location} must have an object of ratings, not {kind(documents)}.")
    for key, rated in documents.items() or [("", [""])]:
        pairs = (
            [(key, rated)]
            if is_rating(rated)
            else [(id, key) for id in (rated if isinstance(rated, list) else [rated])]
        )
        for id, rating in pairs:
            if isinstance(id, bool) or not isinstance(id, str | int):
                raise FileFormatError(f"{location}, {key[:60]!a}, must hold ids of documents, not {kind(id)}.")
            yield f"{location},", text, str(id), "" if rating is None else str(rating)


def is_rating(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _find_text(query: dict[str, object], location: str) -> str:
    """Return the text of a query: its `query`, or the placeholder $query, or its only placeholder."""
    placeholders = query.get("placeholders")
    texts = placeholders if isinstance(placeholders, dict) else {}
    text = query.get("query", texts.get("$query", next(iter(texts.values())) if len(texts) == 1 else ""))
    if not isinstance(text, str) or not text.strip():
        raise FileFormatError(f"{location} has no text of a query: write it as the placeholder $query.")
    return text


def _read_ranked(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield the ratings of lines for learning to rank, whose remark has the document and the text of the query.

    Lines `# qid:1: pear` name texts too: then what follows a document, such as its title, is not read.
    """
    texts: dict[str, str] = {}
    before: dict[str, str] = {}
    for location, line in read_lines(path):
        if described := TEXT_OF_QUERY.fullmatch(line.strip()):
            texts[described[1]] = described[2]
        if line.lstrip().startswith("#"):
            continue
        ranked = RANKED.fullmatch(line.strip())
        if ranked is None:
            raise FileFormatError(f"{location} is not RATING qid:ID # DOCUMENT QUERY, as Quepid writes it.")
        rating, query, remark = ranked[1] or "", ranked[2], ranked[3] or ""
        document, text = (*remark.split(maxsplit=1), "", "")[:2]
        if document.endswith(";") and len(text) > 1 and text[0] == text[-1] == '"':
            document, text = document[:-1], text[1:-1]
        text = texts.get(query, "" if ASSIGNED.match(remark) else text)
        if not text:
            raise FileFormatError(
                f"{location} has no text of its query: write the lines as RATING qid:ID # DOCUMENT QUERY, or export "
                "Quepid's CSV."
            )
        if before.setdefault(query, text) != text:
            raise FileFormatError(
                f"{location} has another text than before for the query {query[:60]!a}, perhaps a title: write a line "
                "# qid:ID: QUERY above for each query."
            )
        yield location, text, document, rating


def _read_csv(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield the ratings of a CSV. Quepid puts a space before a cell that a spreadsheet would run; it is removed."""
    names, rows = read_table(path, may_be_short=True)
    columns = find_columns(names)
    if missing := [name for name in ("query", "docid", "rating") if name not in columns]:
        raise FileFormatError(f"{path.name} has no column {', no '.join(missing)}: it has {', '.join(names)[:200]}.")
    for location, row in rows:
        cells = [row.get(columns[name]) for name in ("query", "docid", "rating")]
        text, document, rating = ("" if cell is None else MARK.sub("", str(cell)) for cell in cells)
        rating = rating.strip()
        if not text.strip() or (rating and not document.strip()):
            raise FileFormatError(f"{location} has no {'docid for its rating' if text.strip() else 'query'}.")
        yield location, text.replace('""', '"') if DETAILED in names else text, document, rating


@dataclass(frozen=True, slots=True)
class _Document(StrictRecord):
    IGNORES_OTHERS = True

    id: Identifier
    rated_only: bool = False


@dataclass(frozen=True, slots=True)
class _Query(StrictRecord):
    IGNORES_OTHERS = True
    KEYS = {"text": "query_text"}

    query_id: int
    text: Filled
    ratings: dict[str, Rating | None] = field(default_factory=dict)
    notes: str = ""
    information_need: str = ""

    @property
    def key(self) -> str:
        """Its text, as in the CSV."""
        return build_text_key(self.text)


@dataclass(frozen=True, slots=True)
class Snapshot(StrictRecord):
    """A snapshot: queries, and in `docs` the documents found for each by its id."""

    IGNORES_OTHERS = True

    queries: Listed[_Query]
    docs: dict[str, Listed[_Document]]
    name: str = ""

    def yield_rankings(self, location: str) -> Iterator[tuple[str, list[str]]]:
        """Yield the key of each query with its documents, best first.

        Documents that Quepid added because they are rated (`rated_only`) were not found and are left out, as are those
        of queries that the case no longer has. Raises FileFormatError for a repeated document.
        """
        keys = {str(query.query_id): query.key for query in self.queries}
        for id, documents in self.docs.items():
            ranked = [document.id for document in documents if not document.rated_only]
            if len({*ranked}) < len(ranked):
                repeated = next(document for document, count in Counter(ranked).items() if count > 1)
                raise FileFormatError(f"{location}, docs.{id}, has the document {repeated[:60]!a} more than once.")
            if ranked and id in keys:
                yield keys[id], ranked


def read_snapshot(path: Path) -> Snapshot:
    """Return a snapshot. Errors name file and key. Two queries must not have the same text."""
    snapshot = read_as(Snapshot, read_value(path), prefix=f"{path.name}, ")
    seen: dict[str, int] = {}
    for index, query in enumerate(snapshot.queries):
        if (first := seen.setdefault(query.key, index)) != index:
            raise FileFormatError(
                f"{path.name}, queries[{index}].query_text, is that of queries[{first}]: a text names one query."
            )
    return snapshot
