"""Faults of judgments and runs: what makes their figures wrong, or may."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchbench.decimals import counted, format_share, list_some
from benchbench.files import flowbaby, trec
from benchbench.ir.records import RepeatedDocumentError, ScoredDocuments
from benchbench.reading.strict_json import read_blocks
from benchbench.scoring.measuring import is_json

Truth = Mapping[str, Mapping[bytes, int]]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that `count` of `total` things in a file have. `kind` is stable and meant for programs."""

    kind: str
    file: str
    count: int
    total: int
    sentence: str


@dataclass(frozen=True, slots=True)
class RunRows:
    """The results of a run file by query, in the file's order, with its column of ranks."""

    file: str
    scored: Mapping[str, ScoredDocuments[bytes]]
    ranks: Mapping[str, NDArray[np.float64]]

    def rank(self, truth: Truth) -> dict[str, list[bytes]]:
        """Return the rankings of the judged queries as trec_eval ranks them; of a repeated document the best result."""
        return {query: _rank_once(scored) for query, scored in self.scored.items() if query in truth}


def read_rows(path: Path) -> RunRows:
    """Return the results of a TREC run or a Flowbaby run (.json). Raises FileFormatError."""
    ranks: dict[str, list[Any]] = {}
    if not is_json(path):
        rows = trec.read_run(path)  # which refuses invalid lines
        for _, lines in read_blocks(path):
            for columns in (line.split(None, 4) for line in lines):
                if columns:
                    ranks.setdefault(columns[0].decode(errors="replace"), []).append(columns[3])
        return RunRows(path.name, rows, {query: _parse_ranks(column) for query, column in ranks.items()})
    scored: dict[str, ScoredDocuments[bytes]] = {}
    for entry in flowbaby.read_run(path).entries:
        results = scored.setdefault(entry.query_id, ScoredDocuments(f"{path.name}, query {entry.query_id[:60]!a},"))
        results.documents.append(entry.canonical_item_id.encode())
        results.scores.append(entry.score)
        ranks.setdefault(entry.query_id, []).append(entry.rank)
    return RunRows(path.name, scored, {query: np.array(column, np.float64) for query, column in ranks.items()})


def find_truth_faults(file: str, truth: Truth, top_grade: int | None) -> Iterator[Fault]:
    """Yield the faults of judgments; `top_grade` is the highest grade of their scale, which begins at 0."""
    empty = [query for query, grades in truth.items() if max(grades.values()) <= 0]
    if empty:
        sentence = f"have no relevant document ({list_some(empty, 3)}), so every run gets 0 there"
        yield _count("no_relevant", file, len(empty), len(truth), "judged query", sentence)
    grades = [grade for judged in truth.values() for grade in judged.values()]
    outside = [grade for grade in grades if grade < 0 or grade > (grade if top_grade is None else top_grade)]
    if outside:
        scale = "are below 0 and count as not relevant" if top_grade is None else f"are outside 0 to {top_grade}"
        texts = list_some([str(grade) for grade in sorted(set(outside))])
        yield _count("grades", file, len(outside), len(grades), "grade", f"{scale} ({texts})")


def find_run_faults(rows: RunRows, truth: Truth) -> Iterator[Fault]:
    """Yield the faults of a run; ties, ranks and ids are those of its judged queries."""
    file, judged = rows.file, {query: scored for query, scored in rows.scored.items() if query in truth}
    if missing := [query for query in truth if query not in judged]:
        sentence = f"have no results and count as 0 ({list_some(missing, 3)})"
        yield _count("no_results", file, len(missing), len(truth), "judged query", sentence)
    if unjudged := [query for query in rows.scored if query not in truth]:
        sentence = f"have no judgments and are left out ({list_some(unjudged, 3)})"
        yield _count("no_judgments", file, len(unjudged), len(rows.scored), "query", sentence)
    yield from _find_id_faults(file, judged, truth)
    results = sum(len(scored.documents) for scored in judged.values())
    ties = {query: tied for query, scored in judged.items() if (tied := _count_tied(scored))}
    if ties:
        tied = sum(ties.values())
        sentence = f"({format_share(tied / results)}, in {counted(len(ties), 'query')}) have the score of another one, "
        yield _count("ties", file, tied, results, "result", f"{sentence}so ids decide their order")
    if contradicting := [query for query, scored in judged.items() if _contradicts(scored, rows.ranks[query])]:
        sentence = f"have scores that rise down the ranks ({list_some(contradicting, 3)}); scores decide"
        yield _count("ranks", file, len(contradicting), len(judged), "query", sentence)


def _find_id_faults(file: str, judged: Mapping[str, ScoredDocuments[bytes]], truth: Truth) -> Iterator[Fault]:
    judged_ids = {document for grades in truth.values() for document in grades}
    documents = {document for scored in judged.values() for document in scored.documents}
    if never := documents - judged_ids:
        first = min(never).decode(errors="replace")[:60]
        remedy = ": do both files use the same ids?" if len(never) == len(documents) else ""
        sentence = f"are judged for no query (such as {first!a}) and count as not relevant{remedy}"
        yield _count("never_judged", file, len(never), len(documents), "document", sentence)
    if matches := [query for query, scored in judged.items() if query.encode() in scored.documents]:
        sentence = f"retrieve the document that has their id ({list_some(matches, 3)})"
        yield _count("self_matches", file, len(matches), len(judged), "query", sentence)
    if repeated := [query for query, scored in judged.items() if len(set(scored.documents)) < len(scored.documents)]:
        sentence = f"rank a document twice ({list_some(repeated, 3)}), whose best result counts; score refuses the file"
        yield _count("duplicates", file, len(repeated), len(judged), "query", sentence)


def _count(kind: str, file: str, count: int, total: int, noun: str, sentence: str) -> Fault:
    return Fault(kind, file, count, total, f"{file}: {count:,} of {counted(total, noun)} {sentence}.")


def _rank_once(scored: ScoredDocuments[bytes]) -> list[bytes]:
    try:
        return scored.rank()
    except RepeatedDocumentError:
        pairs = sorted(zip(scored.scores, scored.documents, strict=True))
        best = {document: score for score, document in pairs}
        return ScoredDocuments(scored.location, list(best), list(best.values())).rank()


def _count_tied(scored: ScoredDocuments[bytes]) -> int:
    """Return the number of results with the score of another one, as float32."""
    with np.errstate(over="ignore"):
        _, counts = np.unique(np.array(scored.scores).astype(np.float32), return_counts=True)
    return int(counts[counts > 1].sum())


def _contradicts(scored: ScoredDocuments[bytes], ranks: NDArray[np.float64]) -> bool:
    """Return whether a score rises from one rank to the next; ranks that are not numbers contradict nothing."""
    return (
        bool((np.diff(np.array(scored.scores)[np.argsort(ranks, kind="stable")]) > 0).any())
        and not np.isnan(ranks).any()
    )


def _parse_ranks(column: list[bytes]) -> NDArray[np.float64]:
    try:
        return np.array(column).astype(np.float64)
    except ValueError:
        return np.full(len(column), np.nan)
