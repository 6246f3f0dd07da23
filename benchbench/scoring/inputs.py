"""Input files of `benchbench score`, each known by its name or its first line. Ids of documents become bytes."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchbench.files import beir, trec
from benchbench.files.flowbaby import reading as flowbaby
from benchbench.files.flowbaby.reading import OrderBy
from benchbench.reading.strict_json import raw_lines


@dataclass(frozen=True, slots=True)
class Results:
    """The rankings of a file for the queries asked for, its own name, and the other queries that it answers."""

    run_id: str
    rankings: dict[str, list[bytes]]
    others: list[str]

    @property
    def is_empty(self) -> bool:
        return not self.rankings and not self.others


def read_truth(path: Path) -> dict[str, dict[bytes, int]]:
    """Return the grades of each query by document: of a Flowbaby qrels.json, BEIR's TSV with header, or TREC qrels."""
    if is_json(path):
        return in_bytes(flowbaby.read_qrels(path))
    _, first = next(raw_lines(path), (1, b""))
    if first.split() == [name.encode() for name in beir.HEADER]:
        return in_bytes(beir.read_qrels(path).grades)
    return trec.read_qrels(path)


def read_results(path: Path, queries: Container[str], *, order_by: OrderBy = "agree") -> Results:
    """Return the rankings of `queries` in a Flowbaby run (.json) or a TREC run.

    Of other queries only the names are kept, so that what trec_eval does not look at cannot stop a TREC run either.
    """
    if is_json(path):
        run = flowbaby.read_run(path)
        of_all = flowbaby.rankings(run, order_by=order_by)
        rankings = {query: [item.encode() for item in items] for query, items in of_all.items() if query in queries}
        return Results(run.run_id, rankings, [query for query in of_all if query not in rankings])
    scored = trec.read_run(path)
    rankings = {query: documents.ranking() for query, documents in scored.items() if query in queries}
    return Results(path.name, rankings, [query for query in scored if query not in rankings])


def in_bytes(truth: Mapping[str, Mapping[str, int]]) -> dict[str, dict[bytes, int]]:
    """Return grades by the bytes of the ids, as TREC files have them."""
    return {query: {document.encode(): grade for document, grade in of.items()} for query, of in truth.items()}


def is_json(path: Path) -> bool:
    """Whether a file is read as Flowbaby's, by its name."""
    return path.name.removesuffix(".gz").endswith(".json")
