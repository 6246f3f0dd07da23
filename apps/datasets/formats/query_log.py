"""Reading a log of queries as a dataset without judgments, whose queries are weighted by demand."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from apps.datasets.records import DatasetError, DatasetRecord, QueryRecord
from benchbench.decimals import counted, format_share, list_some
from benchbench.files.query_log import LONGEST, QueryLog, read_query_log
from benchbench.files.ratings import build_text_key
from benchbench.ir.sampling import draw_by_demand, split_by_demand

STRATA = ("head", "torso", "tail")
DEFAULT_SAMPLE = "100"
TOP = re.compile(r"top ([1-9][0-9]{0,8})")
SIZES = re.compile(r"[1-9][0-9]{0,8}(?:, ?[1-9][0-9]{0,8}){2}|[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Stratum:
    """A third of the demand, by frequency: its queries and searches, and how many queries are in the dataset."""

    name: str
    queries: int
    demand: int
    sampled: int
    sampled_demand: int


def read_log(
    path: Path,
    *,
    sample: str = DEFAULT_SAMPLE,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    least_count: int = 1,
    longest: int = LONGEST,
) -> DatasetRecord:
    """Return a sample of a log as the draft of a dataset: queries with weights and slices, and no judgments.

    The queries, by falling frequency, are cut into strata of a third of the demand: head, torso, tail. `sample` is how
    many of each are drawn, by `benchbench.ir.sampling`: "100", or "50,100,200". The weights then sum to the demand of
    the log, less what is left out. With "all", or "top 500", a query's weight is its count. `seed` decides the draw.

    Clicks are summed in the metadata and are not turned into grades. `metadata["query_log"]` and the warnings report
    lines, distinct queries, demand, and what is left out. For `columns`, `least_count` and `longest` see
    `benchbench.files.query_log`.
    """
    top = TOP.fullmatch(sample.strip())
    if not (top or sample.strip() == "all" or SIZES.fullmatch(sample.strip())):
        raise DatasetError(
            f"The sample {sample[:40]!a} is unknown: give a number of queries of each stratum, such as 100, or one for "
            "head, torso and tail, such as 50,100,200; or all; or top 500.",
            field="sample",
        )
    log = read_query_log(path, columns=columns, least_count=least_count, longest=longest)
    if not log.queries:
        raise DatasetError(f"{path.name} has no query to keep: {', '.join(_list_left_out(log)) or 'it is empty'}.")
    keys, counts = list(log.queries), [query.count for query in log.queries.values()]
    strata = split_by_demand(counts, len(STRATA), seed=f"{seed}:strata")
    weights = _choose(strata, counts, sample.strip(), int(top[1]) if top else 0, seed)
    sampled = [
        Stratum(
            name,
            len(members),
            sum(counts[index] for index in members),
            len(weights.keys() & set(members)),
            sum(counts[index] for index in members if index in weights),
        )
        for name, members in zip(STRATA, strata, strict=True)
    ]
    stratum_by_index = {index: name for name, members in zip(STRATA, strata, strict=True) for index in members}
    stem = path.name.removesuffix(".gz")
    return DatasetRecord(
        name=stem.rpartition(".")[0] or stem,
        queries=[
            _build_query(log, keys[index], weights[index], stratum_by_index[index])
            for members in strata
            for index in members
            if index in weights
        ],
        source_format="query-log",
        metadata={"query_log": _build_facts(log, sampled, sample.strip(), seed)},
        slice_definitions={name: f"Queries in the {name} of the demand, a third of it." for name in STRATA},
        warnings=list(_describe(log, sampled, sum(weights.values()), sample.strip(), seed)),
        is_draft=True,
    )


def _choose(strata: list[list[int]], counts: list[int], sample: str, top: int, seed: int) -> dict[int, float]:
    """Return the weights of the queries of a sample, by index."""
    if sample == "all" or top:
        order = [index for members in strata for index in members]
        return {index: float(counts[index]) for index in order[: top or None]}
    sizes = [int(size) for size in sample.split(",")]
    weights = {}
    for number, members in enumerate(strata):
        size = sizes[number % len(sizes)]
        drawn = draw_by_demand([counts[index] for index in members], size, seed=f"{seed}:{STRATA[number]}")
        weights.update({members[position]: weight for position, weight in drawn.items()})
    return weights


def _build_query(log: QueryLog, key: str, weight: float, stratum: str) -> QueryRecord:
    query = log.queries[key]
    clicks = {"clicks": query.clicks} if log.has_clicks else {}
    return QueryRecord(
        key=build_text_key(key),
        text=query.text,
        slices=[stratum],
        weight=weight,
        metadata={"count": query.count, **clicks},
    )


def _build_facts(log: QueryLog, strata: list[Stratum], sample: str, seed: int) -> dict[str, object]:
    return {
        "lines": log.lines,
        "demand": log.demand,
        "distinct_queries": log.distinct,
        "kept_queries": len(log.queries),
        "kept_demand": sum(stratum.demand for stratum in strata),
        "left_out": {
            reason: {"queries": queries, "demand": demand, "share": demand / max(log.demand, 1)}
            for reason, (queries, demand) in log.left_out.items()
        },
        "sample": sample,
        "seed": seed,
        "strata": [asdict(stratum) for stratum in strata],
        "normalisation": "NFKC, case folding, white space joined",
    }


def _list_left_out(log: QueryLog) -> list[str]:
    return [
        f"{counted(queries, 'query')} {reason} ({counted(demand, 'search')}, "
        f"{format_share(demand / max(log.demand, 1))} of the demand)"
        for reason, (queries, demand) in log.left_out.items()
    ]


def _describe(log: QueryLog, strata: list[Stratum], weight: float, sample: str, seed: int) -> Iterator[str]:
    kept_demand = sum(stratum.demand for stratum in strata)
    yield (
        f"Read {counted(log.lines, 'line')} with {counted(log.demand, 'search')} of "
        f"{counted(log.distinct, 'distinct query')}, compared after Unicode NFKC, case folding and joining white "
        f"space. Kept {counted(len(log.queries), 'query')} with {format_share(kept_demand / log.demand)} of the demand."
    )
    if log.left_out:
        yield f"Left out: {', '.join(_list_left_out(log))}."
    if log.unread_columns:
        yield f"Columns not read: {list_some(log.unread_columns)}."
    shares = ", ".join(
        f"{stratum.sampled:,} of {counted(stratum.queries, 'query')} in the {stratum.name}" for stratum in strata
    )
    covered = sum(stratum.sampled_demand for stratum in strata) / log.demand
    yield (
        f"The sample ({sample}, seed {seed}) has {shares}, which were {format_share(covered)} of the demand. Their "
        f"weights sum to {weight:,.0f} searches."
    )
    if log.has_clicks:
        yield "Clicks are summed in the metadata of each query. They are not turned into grades."
