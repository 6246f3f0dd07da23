"""Values of measures for the rankings of a file."""

import math
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchbench.files import beir, flowbaby, trec
from benchbench.files.flowbaby import OrderBy
from benchbench.files.flowbaby_results import QueryFigures
from benchbench.ir.measures import GradedRankings, Measure, Truths, Values, evaluate
from benchbench.ir.profiles import PLAIN, Profile
from benchbench.reading.strict_json import read_raw_lines


@dataclass(frozen=True, slots=True)
class Results:
    """The rankings of a file for the wanted queries, its own name, and the other queries that it answers."""

    run_id: str
    rankings: dict[str, list[bytes]]
    other_queries: list[str]


def read_truth(path: Path) -> dict[str, dict[bytes, int]]:
    """Return the grades of each query by document, from a Flowbaby qrels.json, BEIR's TSV or TREC qrels."""
    if is_json(path):
        return encode_grades(flowbaby.read_qrels(path))
    _, first = next(read_raw_lines(path), (1, b""))
    if beir.find_columns_of_qrels(first.decode(errors="replace")):
        return encode_grades(beir.read_qrels(path).grades)
    return trec.read_qrels(path)


def read_results(path: Path, queries: Container[str], *, order_by: OrderBy = "agree") -> Results:
    """Return the rankings of `queries` in a Flowbaby run (.json) or a TREC run.

    Only the names of other queries are kept. As in trec_eval, their documents are not checked in a TREC run.
    """
    if is_json(path):
        run = flowbaby.read_run(path)
        of_all = flowbaby.list_rankings(run, order_by=order_by)
        rankings = {query: [item.encode() for item in items] for query, items in of_all.items() if query in queries}
        return Results(run.run_id, rankings, [query for query in of_all if query not in rankings])
    scored = trec.read_run(path)
    rankings = {query: documents.rank() for query, documents in scored.items() if query in queries}
    return Results(path.name, rankings, [query for query in scored if query not in rankings])


def encode_grades(truth: Mapping[str, Mapping[str, int]]) -> dict[str, dict[bytes, int]]:
    """Return the grades with ids as bytes, as in TREC files."""
    return {query: {document.encode(): grade for document, grade in grades.items()} for query, grades in truth.items()}


def is_json(path: Path) -> bool:
    """Return whether a file is read as Flowbaby's, by its name."""
    return path.name.removesuffix(".gz").endswith(".json")


BLOCK_CELLS = 4_000_000  # of a padded matrix, 32 MB: one long ranking then does not widen the rows of all queries

Truth = Mapping[str, Mapping[Any, int]]  # by ids of documents as the rankings have them: text, or bytes
Rankings = Mapping[str, Sequence[Hashable]]


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Measures of every judged query: `values` is (m, q), in the order of `queries`, and `means` is (m,)."""

    measures: tuple[Measure, ...]
    queries: tuple[str, ...]
    values: Values
    means: Values


def score(truth: Truth, rankings: Rankings, measures: Sequence[Measure], *, profile: Profile = PLAIN) -> Scores:
    """Measure the rankings (query → documents, best first) by the truth (query → document → grade).

    Works like trec_eval -c: each query of the truth counts, as 0 without a ranking, and rankings of other queries are
    left out. The profile determines how values become means.
    """
    blocks = [evaluate(measures, graded) for graded in grade_blocks(truth, rankings)]
    values = np.concatenate(blocks, axis=1) if blocks else np.empty((len(measures), 0))
    n_judgments = [len(judged) for judged in truth.values()]
    return Scores(
        tuple(measures), tuple(truth), values, np.array([profile.mean.compute(row, n_judgments) for row in values])
    )


def list_figures(names: Sequence[str], values: Values) -> dict[str, float | None]:
    """Return the figures in full precision; None for a missing value."""
    return {name: None if math.isnan(value) else value for name, value in zip(names, values.tolist(), strict=True)}


def grade_blocks(truth: Truth, rankings: Rankings) -> Iterator[GradedRankings]:
    """Yield the graded rankings of consecutive queries of the truth, a missing ranking as an empty one."""
    ranked, truths = [rankings.get(query, ()) for query in truth], list(truth.values())
    for block in _split(ranked, truths):
        yield Truths.from_grades(truths[block]).grade(ranked[block])


def build_figures(
    scores: Scores, slices: Mapping[str, Sequence[str]], n_judgments: Mapping[str, int]
) -> list[QueryFigures]:
    """Return the figures of each query for Flowbaby's files, with its slices and its number of judgments."""
    names = [measure.wire for measure in scores.measures]
    return [
        QueryFigures(key, slices[key], n_judgments[key], dict(zip(names, column, strict=True)))
        for key, column in zip(scores.queries, scores.values.T.tolist(), strict=True)
    ]


def _split(rankings: Sequence[Sequence[Hashable]], truths: Sequence[Mapping[Hashable, int]]) -> Iterator[slice]:
    """Yield consecutive queries whose matrix, as wide as their longest ranking or truth, is of bounded size."""
    start = width = 0
    for at, (ranking, judged) in enumerate(zip(rankings, truths, strict=True)):
        width = max(width, len(ranking), len(judged))
        if at > start and (at + 1 - start) * width > BLOCK_CELLS:
            yield slice(start, at)
            start, width = at, max(len(ranking), len(judged))
    if start < len(rankings):
        yield slice(start, len(rankings))
