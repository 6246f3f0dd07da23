"""Quepid's exports: the ratings of a case as CSV, a snapshot as JSON.

Sources: github.com/o19s/quepid at f80322f, `app/controllers/api/v1/export/ratings_controller.rb` (CSV "Basic"),
`app/assets/javascripts/services/caseCSVSvc.js` (CSV "Detailed") and, for the snapshot,
`app/views/api/v1/snapshots/_snapshot.json.jbuilder` and `app/views/api/v1/queries/_query.json.jbuilder`.
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
from benchbench.reading.strict_json import read_value

COLUMNS = {"query": "query", "querytext": "query", "docid": "docid", "rating": "rating"}
MARK = re.compile(r"\A (?=[=+@-])")
DETAILED = "Query Text"  # a column of the export "Detailed" alone, which doubles quotes also in cells without quotes


def find_columns(names: Iterable[str]) -> dict[str, str]:
    """Return Quepid's columns query, docid and rating by the names that they have in either export."""
    folded = {name.strip().lower().replace(" ", "").replace("_", ""): name for name in names}
    return {COLUMNS[name]: column for name, column in folded.items() if name in COLUMNS}


def read_rows(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield location, query, docid and rating of each row of a CSV, as Quepid has them.

    Quepid puts a space before a cell that a spreadsheet would run; it is removed. Errors name the line.
    """
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
