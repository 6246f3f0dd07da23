"""Files of external rankings: a TREC run, a Flowbaby run, a table, or a Quepid snapshot.

A snapshot is ranked as it is, the others as `benchbench score` does.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchbench.errors import FileFormatError
from benchbench.files import flowbaby, quepid, run_tables, trec
from benchbench.files.flowbaby import OrderBy
from benchbench.files.sniffing import Kind, sniff
from benchbench.ir.canonical import Run
from benchbench.ir.records import RepeatedDocumentError
from benchbench.reading.strict_json import read_raw_lines
from benchbench.texts.storable import clean_text

FORMATS = {"trec": "TREC run", "flowbaby": "Flowbaby run", "quepid": "Quepid snapshot", "table": "table"}
LONGEST_NAME = 255  # characters of a file's name
COLUMNS = ("qid", "Q0", "docno", "rank", "score", "tag")
DETECTED: dict[Kind, str] = {
    **{"trec-run": "trec", "flowbaby-run": "flowbaby", "quepid-snapshot": "quepid"},
    **{"table": "table", "keyed": "table", "quepid-ratings": "table"},
}


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """One query's documents, best first, and their scores (n,), infinite ones as the largest double.

    `tied`: some scores are equal as float32, so their ids decided.
    """

    documents: Sequence[str]
    scores: NDArray[np.float64]
    tied: bool = False


Read = tuple[tuple[str, ...], dict[str, Ranked], list[str]]  # tags, rankings, other queries


@dataclass(frozen=True, slots=True)
class RunFile:
    """A run file: rankings of the queries, the number of unknown queries that it answers, and the first of those.

    `tags` are the run's own names in order of occurrence. `sha256` is the hash of the file's bytes.
    """

    name: str
    format: str
    tags: tuple[str, ...]
    sha256: str
    rankings: Mapping[str, Ranked]
    unknown_count: int
    first_unknown: tuple[str, ...] = ()

    @property
    def results(self) -> int:
        return sum(len(ranked.documents) for ranked in self.rankings.values())

    @property
    def tied(self) -> int:
        """Return the number of queries in which ids decided between equal scores."""
        return sum(ranked.tied for ranked in self.rankings.values())


def read_run_file(path: Path, queries: Container[str], *, format: str = "", order_by: OrderBy | None = None) -> RunFile:
    """Return the rankings of `queries` in a file, `.gz` or not; without `format` it is detected.

    A TREC run is ranked by score, as in trec_eval. So is a Flowbaby run or table; if its ranks and scores disagree it
    is refused, unless `order_by` chooses one. A Quepid snapshot has the order of its documents, and the texts of its
    queries are their keys. Raises FileFormatError for a damaged file or another format. It names the
    line or entry if a document is ranked twice for a query. A TREC run's lines of other queries are not checked.
    """
    format = format or _detect(path)
    if format not in FORMATS:
        raise FileFormatError(
            f"The format {format!r} does not exist; choose one of {', '.join(FORMATS)}.", field="format"
        )
    if format not in ("flowbaby", "table") and order_by:
        order = "always ordered by score" if format == "trec" else "always in its own order"
        raise FileFormatError(
            f"{path.name} is a {FORMATS[format]}, which is {order}: leave out the order.", field="order_by"
        )
    if format in ("flowbaby", "table"):
        run = flowbaby.read_run(path) if format == "flowbaby" else run_tables.read_run(path, queries)
        tags, rankings, unknown_queries = _rank_run(path, run, queries, order_by)
    else:
        tags, rankings, unknown_queries = (_read_trec if format == "trec" else _read_quepid)(path, queries)
    with path.open("rb") as file:
        sha256 = file_digest(file, "sha256").hexdigest()
    name = clean_text(path.name, LONGEST_NAME)
    return RunFile(name, format, tags, sha256, rankings, len(unknown_queries), tuple(unknown_queries[:5]))


def _detect(path: Path) -> str:
    kind = sniff(path)
    if kind in DETECTED:
        return DETECTED[kind]
    number, first = next(((number, line) for number, line in read_raw_lines(path) if line.strip()), (0, b""))
    if not number:
        raise FileFormatError(f"{path.name} is empty: it must contain a run.")
    if (width := len(first.split())) < len(COLUMNS):  # with the right number, the reader names the invalid line
        raise FileFormatError(
            f"{path.name} does not look like a run. A TREC run has lines `{' '.join(COLUMNS)}`, but "
            f"line {number} has {width} column{'' if width == 1 else 's'}. A Flowbaby run is a JSON "
            f"object with run_id and entries, a Quepid snapshot one with docs and queries; a table has columns query, "
            f"document, and rank or score. Name the format ({' or '.join(FORMATS)}) if it is one of "
            "these.",
            field="format",
        )
    return "trec"


def _read_trec(path: Path, queries: Container[str]) -> Read:
    rankings, unknown_queries = {}, []
    for query, scored in trec.read_run(path).items():
        if query not in queries:
            unknown_queries.append(query)
            continue
        try:
            ranking = scored.rank()
        except RepeatedDocumentError:
            raise trec.build_repeat_error(path, query) from None
        documents = trec.decode_ids(ranking, location=f"{path.name}, query {query[:60]!a},")
        rankings[query] = _rank(documents, map(dict(zip(scored.documents, scored.scores, strict=True)).get, ranking))
    return trec.read_tags(path), rankings, unknown_queries


def _rank_run(path: Path, run: Run, queries: Container[str], order_by: OrderBy | None) -> Read:
    places: dict[tuple[str, str], int] = {}
    for index, entry in enumerate(run.entries):
        first = places.setdefault((entry.query_id, entry.canonical_item_id), index)
        if first != index:
            raise FileFormatError(
                f"{path.name}, entries[{index}], ranks the item {entry.canonical_item_id[:60]!a} of "
                f"the query {entry.query_id[:60]!a} again, after entries[{first}]: rank each item once."
            )
    rankings = flowbaby.list_rankings(run, order_by=order_by or "agree")
    ranked = {
        query: _rank(items, (run.entries[places[query, item]].score for item in items))
        for query, items in rankings.items()
        if query in queries
    }
    return (run.run_id,), ranked, [query for query in rankings if query not in queries]


def _read_quepid(path: Path, queries: Container[str]) -> Read:
    """Read a snapshot. It has no scores: a query's last document gets 1, and each before it one more."""
    snapshot = quepid.read_snapshot(path)
    rankings = dict(snapshot.yield_rankings(path.name))
    ranked = {
        query: _rank(documents, map(float, range(len(documents), 0, -1)))
        for query, documents in rankings.items()
        if query in queries
    }
    return (snapshot.name,) if snapshot.name else (), ranked, [query for query in rankings if query not in queries]


def _rank(documents: Sequence[str], scores: Iterable[float | None]) -> Ranked:
    numbers = np.nan_to_num(np.array(list(scores), np.float64))
    with np.errstate(over="ignore"):
        singles = numbers.astype(np.float32)
    return Ranked(documents, numbers, tied=bool((singles[1:] == singles[:-1]).any()))
