"""Reading a log of queries as a dataset without judgments, whose queries are weighted by demand.

Texts are grouped after Unicode NFKC, case folding, and joining white space to single spaces. Clicks are summed, and
never become grades: they depend on the ranks that users saw.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from apps.datasets.records import DatasetError, DatasetRecord, QueryRecord, name_source
from benchbench.decimals import counted, format_share
from benchbench.files.sniffing import LOG_TEXTS
from benchbench.files.tables import find_delimiter, read_table
from benchbench.ir.sampling import draw_by_demand, split_by_demand
from benchbench.reading.objects import format_value
from benchbench.reading.strict_json import read_lines
from benchbench.texts.storable import is_storable
from benchbench.texts.words import fold_spelling

STRATA = ("head", "torso", "tail")
EVERY = 10**9
NUMBER = "[1-9][0-9]{0,8}"
SAMPLE = re.compile(rf"all|{NUMBER}(?:,{NUMBER},{NUMBER})?")
FIELDS = ("text", "count", "clicks")
LONGEST = 200  # also of a key
DIGITS = re.compile(r"\s*[0-9]{1,15}\s*")


@dataclass(slots=True)
class Log:
    """Texts, each the most frequent spelling, and counts by normalised text. `left_out` has numbers by reason.

    `demand` sums the counts of all lines, `distinct` counts all texts, with those left out.
    """

    texts: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    clicks: Counter[str] = field(default_factory=Counter)
    left_out: dict[str, Counter[str]] = field(default_factory=dict)
    lines: int = 0
    demand: int = 0
    distinct: int = 0


def read_log(path: Path, *, sample: str = "100", seed: int = 0, columns: Mapping[str, str] = {}) -> DatasetRecord:
    """Return a sample of a log: queries with weights and slices, and no judgments.

    The queries, by falling frequency, are cut into strata of a third of the demand: head, torso, tail. `sample` is how
    many of each are drawn, by `benchbench.ir.sampling`: "100", or "50,100,200". The weights then sum to the demand of
    the log, less what is left out. With "all" a query's weight is its count. `seed` decides the draw.

    A table has the columns text (or query) and count, and may have clicks; `columns` gives other names. Any other file,
    unless it is called .csv or .tsv, is a log of lines, each a search. Empty texts, those of more than LONGEST
    characters, those that cannot be stored, and those never searched are left out. `metadata["query_log"]` and the
    warnings report lines, distinct queries, demand, and what is left out. Errors name line and column.
    """
    if not SAMPLE.fullmatch(sample):
        raise DatasetError(
            f"The sample {sample[:40]!a} is unknown: give a number of queries of each stratum, such as 100, or one for "
            "head, torso and tail, such as 50,100,200; or all.",
            field="sample",
        )
    log = _group(path, columns)
    if not log.texts:
        raise DatasetError(f"{path.name} has no query to keep. {_describe_left_out(log)}")
    keys, sizes = list(log.texts), [EVERY if size == "all" else int(size) for size in sample.split(",")]
    queries: list[QueryRecord] = []
    strata: dict[str, dict[str, int]] = {}
    split = split_by_demand([log.counts[key] for key in keys], len(STRATA), seed=f"{seed}:strata")
    for number, (name, members) in enumerate(zip(STRATA, split, strict=True)):
        counts = [log.counts[keys[index]] for index in members]
        drawn = draw_by_demand(counts, sizes[number % len(sizes)], seed=f"{seed}:{name}")
        queries += [_build_query(log, keys[members[member]], weight, name) for member, weight in sorted(drawn.items())]
        strata[name] = {"queries": len(members), "demand": sum(counts), "sampled": len(drawn)}
    facts = {"lines": log.lines, "demand": log.demand, "distinct_queries": log.distinct, "left_out": log.left_out}
    return DatasetRecord(
        name=name_source(path),
        queries=queries,
        source_format="query-log",
        metadata={"query_log": facts | {"strata": strata, "sample": sample, "seed": seed}},
        slice_definitions={name: f"Queries in the {name} of the demand, a third of it." for name in STRATA},
        warnings=_describe(log, strata, queries, f"The sample ({sample}, seed {seed})"),
    )


def _build_query(log: Log, key: str, weight: float, stratum: str) -> QueryRecord:
    metadata = {"count": log.counts[key]} | ({"clicks": log.clicks[key]} if log.clicks else {})
    return QueryRecord(key, log.texts[key], slices=[stratum], weight=weight, metadata=metadata)


def _describe_left_out(log: Log) -> str:
    reasons = [
        f"{counted(left['queries'], 'query')} {reason} ({counted(left['demand'], 'search')}, "
        f"{format_share(left['demand'] / max(log.demand, 1))} of the demand)"
        for reason, left in log.left_out.items()
    ]
    return f"Left out: {', '.join(reasons) or 'nothing'}."


def _describe(log: Log, strata: dict[str, dict[str, int]], queries: list[QueryRecord], sample: str) -> list[str]:
    """Return sentences on what was read, left out and drawn."""
    shares = [f"{stratum['sampled']:,} of {stratum['queries']:,} in the {name}" for name, stratum in strata.items()]
    demand = sum(query.metadata["count"] for query in queries)
    clicks = "Clicks are summed in the metadata of each query. They are not turned into grades."
    return [
        f"Read {counted(log.lines, 'line')} with {counted(log.demand, 'search')} of "
        f"{counted(log.distinct, 'distinct query')}, grouped after Unicode NFKC, case folding and joining white space.",
        _describe_left_out(log),
        f"{sample} has {', '.join(shares)}, which were {format_share(demand / log.demand)} of the demand. Their "
        f"weights sum to {sum(query.weight for query in queries):,.0f} searches.",
        *([clicks] if log.clicks else []),
    ]


def _group(path: Path, columns: Mapping[str, str]) -> Log:
    """Return the log of a file, the same for every order of its lines. Only spellings are held twice."""
    log, counts, clicks = Log(), Counter[str](), Counter[str]()
    for text, count, clicked in _read_searches(path, columns):
        spelling = " ".join(text.split())
        counts[spelling] += count
        if clicked is not None:
            clicks[spelling] += clicked
        log.lines += 1
    # The most frequent spelling of a text comes first; of equally frequent ones the first in the alphabet.
    for spelling in sorted(counts, key=lambda spelling: (-counts[spelling], spelling)):
        key = fold_spelling(spelling)
        log.texts.setdefault(key, spelling)
        log.counts[key] += counts[spelling]
        if clicks:
            log.clicks[key] += clicks[spelling]
    log.demand, log.distinct = counts.total(), len(log.texts)
    for key in [key for key in log.texts if _find_reason(log, key)]:
        left = log.left_out.setdefault(_find_reason(log, key), Counter(queries=0, demand=0))
        left.update(queries=1, demand=log.counts[key])
        del log.texts[key]
    return log


def _find_reason(log: Log, key: str) -> str:
    """Return why a query is left out, "" if it is kept."""
    if not key:
        return "empty"
    if max(len(key), len(log.texts[key])) > LONGEST:
        return f"longer than {LONGEST} characters"
    if not is_storable(key):
        return "with characters that cannot be stored"
    return "" if log.counts[key] else "with a count of 0"


def _read_searches(path: Path, columns: Mapping[str, str]) -> Iterator[tuple[str, int, int | None]]:
    """Yield text, count and clicks of each line; None for no clicks."""
    _, first = next(read_lines(path), ("", ""))
    header = {cell.strip().strip('"').lower() for cell in first.split(find_delimiter(first))}
    is_table = path.name.removesuffix(".gz").endswith((".csv", ".tsv")) or first.lstrip().startswith("{")
    if not (is_table or columns) and header.isdisjoint(LOG_TEXTS):
        yield from ((line, 1, None) for _, line in read_lines(path))
        return
    names, rows = read_table(path)
    chosen = _choose_columns(path, names, columns)
    for location, row in rows:
        text, clicked = row.get(chosen["text"]), row.get(chosen["clicks"]) not in (None, "")
        if isinstance(text, bool) or not isinstance(text, str | int | None):
            raise DatasetError(f"{location} has the {chosen['text']} {format_value(text)[:40]}: it must be a text.")
        clicks = _parse_count(location, row, chosen["clicks"]) if clicked else None
        yield "" if text is None else str(text), _parse_count(location, row, chosen["count"]), clicks


def _parse_count(location: str, row: Mapping[str, object], column: str) -> int:
    value = row.get(column)
    if isinstance(value, bool) or not isinstance(value, str | int) or not DIGITS.fullmatch(str(value)):
        raise DatasetError(f"{location} has the {column} {format_value(value)[:40]}, which is not a whole number.")
    return int(value)


def _choose_columns(path: Path, names: list[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of text, count and clicks; the last may be ""."""
    by_name = {name.lower(): name for name in reversed(names)}
    chosen = {name: by_name.get(name, "") for name in FIELDS}
    chosen = chosen | {"text": chosen["text"] or by_name.get("query", "")} | dict(columns)
    for name, column in chosen.items():
        if name not in FIELDS or (column not in names and (column or name != "clicks")):
            raise DatasetError(
                f"{path.name} has no column {(column or name)[:60]!a} for the field {name[:60]!a}: it has "
                f"{', '.join(names)[:200]}. Name the columns of text, count and clicks, such as count=COLUMN, under "
                "Columns.",
                field="columns",
                by_command="--column count=COLUMN",
            )
    return chosen
