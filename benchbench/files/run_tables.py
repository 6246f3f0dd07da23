"""Rankings as a table with a row for each result, or as JSON with scores by query and document (ranx, pytrec_eval)."""

import math
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchbench.errors import FileFormatError
from benchbench.files.columns import REFERENCES, assign_columns, fold_column
from benchbench.files.encodings import in_utf8
from benchbench.files.ratings import build_text_key
from benchbench.files.sniffing import sniff
from benchbench.files.tables import read_table
from benchbench.ir.canonical import Run, RunEntry
from benchbench.reading.kinds import convert_number
from benchbench.reading.strict_json import kind, read_value

SCORES = ("score", "similarity", "relevancescore", "retrievalscore")
RANKS = ("rank", "position", "pos")
KEYS = ("query_key", "query_text")
Result = tuple[str, str, str, float | None, float | None]  # location, query, document, score, rank


def read_run(path: Path, queries: Container[str]) -> Run:
    """Return a table, or an object of scores, as a run.

    A query is named by its key or text. Without scores, a query's last document gets 1, and each before it one more;
    without ranks, scores decide. Errors name file and line.
    """
    with in_utf8(path) as (copy, _):
        results = [*(_yield_scored(copy) if sniff(copy) == "keyed" else _yield_rows(copy))]
    by_query: dict[str, list[Result]] = {}
    for result in results:
        key = result[1] if result[1] in queries else build_text_key(result[1])
        by_query.setdefault(key if key in queries else result[1], []).append(result)
    return Run(path.name, tuple(entry for query, listed in by_query.items() for entry in _yield_entries(query, listed)))


def _yield_entries(query: str, listed: list[Result]) -> Iterator[RunEntry]:
    last = max(rank or 0 for *_, rank in listed)
    by_score = sorted(listed, key=lambda result: -(result[3] or 0))
    for number, (location, _, document, score, rank) in enumerate(by_score, start=1):
        if rank is not None and (rank < 1 or rank != int(rank)):
            raise FileFormatError(f"{location} has the rank {rank:g}: ranks are whole numbers from 1.")
        counted = number if rank is None else int(rank)
        yield RunEntry(query, document, counted, float(last + 1 - counted) if score is None else score)


def _yield_scored(path: Path) -> Iterator[Result]:
    value = read_value(path)
    values = [score for scores in value.values() if isinstance(scores, dict) for score in scores.values()]
    if all(isinstance(score, int) for score in values):
        raise FileFormatError(
            f"{path.name} has whole numbers for all documents, as judgments have, not rankings: write scores as 2.0."
        )
    for query, scores in value.items():
        if not isinstance(scores, dict):
            raise FileFormatError(f"{path.name}, {query[:60]!a} must be an object with scores, not {kind(scores)}.")
        for document, score in scores.items():
            location = f"{path.name}, {query[:60]!a}, {document[:60]!a}"
            yield location, query, document, _read_number(location, "score", score), None


def _yield_rows(path: Path) -> Iterator[Result]:
    names, rows = read_table(path)
    folded = {fold_column(name): name for name in reversed(names)}
    score, rank = (next((folded[word] for word in words if word in folded), None) for words in (SCORES, RANKS))
    fields = assign_columns([name for name in names if name not in (score, rank)], {}, ())
    query = next((fields[key] for key in KEYS if key in fields), None)
    document = next((fields[key] for key in REFERENCES if key in fields), None)
    needed = {"queries": query, "documents": document, "scores or ranks": score or rank}
    if missing := [words for words, column in needed.items() if not column]:
        judged = " It seems to hold judgments." if "grade" in fields and not score else ""
        raise FileFormatError(
            f"{path.name} has no column of {', no '.join(missing)}: it has {', '.join(names)[:200]}.{judged} Call the "
            "columns query, document, and rank or score."
        )
    for location, row in rows:
        location = location.rstrip(",")
        key, name = (_read_text(location, row, column) for column in (query, document))
        numbers = [_read_number(location, column, row.get(column)) if column else None for column in (score, rank)]
        yield location, key, name, numbers[0], numbers[1]


def _read_text(location: str, row: Mapping[str, Any], column: str | None) -> str:
    value = row.get(column or "")
    if type(value) is int or (isinstance(value, str) and value.strip()):
        return str(value)
    raise FileFormatError(f"{location} has no text in its column {column!a}.")


def _read_number(location: str, column: str, value: object) -> float:
    number = math.nan
    with suppress(TypeError, ValueError, OverflowError):
        number = convert_number(float, value) if isinstance(value, str) else float(value)  # type: ignore[arg-type]
    if math.isnan(number) or isinstance(value, bool):
        raise FileFormatError(f"{location} has no number in {column[:60]!a}.")
    return number
