"""Quepid's exports: the ratings of a case as CSV, a snapshot as JSON.

Sources: github.com/o19s/quepid at f80322f, `app/controllers/api/v1/export/ratings_controller.rb` (CSV "Basic"),
`app/assets/javascripts/services/caseCSVSvc.js` (CSV "Detailed") and, for the snapshot,
`app/views/api/v1/snapshots/_snapshot.json.jbuilder` and `app/views/api/v1/queries/_query.json.jbuilder`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchbench.decimals import counted, list_some
from benchbench.errors import FileFormatError
from benchbench.files.ratings import RatedFile, Rating, build_text_key, parse_rating
from benchbench.files.tables import read_table
from benchbench.reading.objects import Filled, Identifier, Listed, StrictRecord, read_as
from benchbench.reading.strict_json import read_value

COLUMNS = {"query": "query", "querytext": "query", "docid": "docid", "rating": "rating"}
DETAILED = "Query Text"  # a column of the export "Detailed" alone


def fold_column(name: str) -> str:
    """Return which of Quepid's columns a name is: query, docid or rating; "" for another one."""
    return COLUMNS.get(name.strip().lower().replace(" ", "").replace("_", ""), "")


def read_ratings(path: Path) -> RatedFile:
    """Return the ratings of a CSV with the columns query, docid and rating, or Query Text, Doc ID and Rating.

    OpenSearch Dashboards imports the first kind too. A query is identified by its text. White space around cells is
    dropped, because Quepid puts a space before a cell that a spreadsheet would run. A row without a rating has a query
    alone; a document in it is counted. Other columns are named in a warning. Errors name the line.
    """
    names, rows = read_table(path, pad=True)
    columns = {fold_column(name): name for name in names if fold_column(name)}
    if missing := [name for name in ("query", "docid", "rating") if name not in columns]:
        raise FileFormatError(f"{path.name} has no column {', no '.join(missing)}: it has {', '.join(names)[:200]}.")
    file, unrated = RatedFile(), 0
    for location, row in rows:
        text, document, rating = (_read_cell(row[columns[name]], names) for name in ("query", "docid", "rating"))
        if not text or (rating and not document):
            raise FileFormatError(f"{location} has no {'docid for its rating' if text else 'query'}.")
        query = file.add_query(text)
        if not rating:
            unrated += bool(document)
        elif (number := parse_rating(rating)) is not None:
            file.add_rating(query, document, number, location)
        else:
            raise FileFormatError(f"{location} has the rating {rating[:40]!a}, which is not a number.")
    unread = [name for name in names if not fold_column(name)]
    file.warnings += [f"Columns without ratings, not read: {list_some(unread)}."] if unread else []
    file.warnings += [f"Left out: {counted(unrated, 'document')} without a rating."] if unrated else []
    return file


def _read_cell(value: Any, names: list[str]) -> str:
    """Return a cell without white space. The detailed export doubles quotes also where it does not quote the cell."""
    text = str("" if value is None else value).strip()
    is_bare = DETAILED in names and not any(sign in text for sign in ",\r\n")
    return text.replace('""', '"') if is_bare else text


@dataclass(frozen=True, slots=True)
class _Document(StrictRecord):
    IGNORES_OTHERS = True

    id: Identifier
    rated_only: bool = False


@dataclass(frozen=True, slots=True)
class _Query(StrictRecord):
    IGNORES_OTHERS = True

    query_id: int
    query_text: Filled
    ratings: dict[str, Rating | None] = field(default_factory=dict)
    notes: str = ""
    information_need: str = ""


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
        keys = {str(query.query_id): build_text_key(query.query_text.strip()) for query in self.queries}
        for id, documents in self.docs.items():
            ranked = [document.id for document in documents if not document.rated_only]
            if len(set(ranked)) < len(ranked):
                repeated = next(document for document in ranked if ranked.count(document) > 1)
                raise FileFormatError(f"{location}, docs.{id}, has the document {repeated[:60]!a} more than once.")
            if ranked and id in keys:
                yield keys[id], ranked


def read_snapshot(path: Path) -> Snapshot:
    """Return a snapshot. Errors name file and key. Two queries must not have the same text."""
    snapshot = read_as(Snapshot, read_value(path), prefix=f"{path.name}, ")
    places: dict[str, int] = {}
    for index, query in enumerate(snapshot.queries):
        first = places.setdefault(query.query_text.strip(), index)
        if first != index:
            raise FileFormatError(
                f"{path.name}, queries[{index}].query_text, is that of queries[{first}]: a text names one query."
            )
    return snapshot


def read_snapshot_ratings(path: Path) -> RatedFile:
    """Return the ratings of a snapshot. A query's key is its text, as in the CSV."""
    snapshot = read_snapshot(path)
    file = RatedFile(snapshot.name)
    for item in snapshot.queries:
        query = file.add_query(item.query_text.strip())
        query.ratings = {document: rating for document, rating in item.ratings.items() if rating is not None}
        query.notes, query.metadata = item.notes, {"quepid_query_id": item.query_id}
        query.metadata |= {"information_need": item.information_need} if item.information_need else {}
    return file
