"""Reading a log of queries as a dataset without judgments, whose queries are weighted by demand."""

import re
from collections.abc import Mapping
from pathlib import Path

from apps.datasets.records import DatasetError, DatasetRecord, QueryRecord, name_source
from benchbench.decimals import counted, format_share
from benchbench.files.query_log import QueryLog, read_query_log
from benchbench.ir.sampling import draw_by_demand, split_by_demand

STRATA = ("head", "torso", "tail")
DEFAULT_SAMPLE = "100"
EVERY = 10**9
NUMBER = "[1-9][0-9]{0,8}"
SAMPLE = re.compile(rf"all|{NUMBER}(?:,{NUMBER},{NUMBER})?")


def read_log(
    path: Path,
    *,
    sample: str = DEFAULT_SAMPLE,
    seed: int = 0,
    columns: Mapping[str, str] = {},
    least_count: int = 1,
) -> DatasetRecord:
    """Return a sample of a log as the draft of a dataset: queries with weights and slices, and no judgments.

    The queries, by falling frequency, are cut into strata of a third of the demand: head, torso, tail. `sample` is how
    many of each are drawn, by `benchbench.ir.sampling`: "100", or "50,100,200". The weights then sum to the demand of
    the log, less what is left out. With "all" a query's weight is its count. `seed` decides the draw.

    Clicks are summed in the metadata and are not turned into grades. `metadata["query_log"]` and the warnings report
    lines, distinct queries, demand, and what is left out. For `columns` and `least_count` see
    `benchbench.files.query_log`.
    """
    if not SAMPLE.fullmatch(sample):
        raise DatasetError(
            f"The sample {sample[:40]!a} is unknown: give a number of queries of each stratum, such as 100, or one for "
            "head, torso and tail, such as 50,100,200; or all.",
            field="sample",
        )
    log = read_query_log(path, columns=columns, least_count=least_count)
    if not log.queries:
        raise DatasetError(f"{path.name} has no query to keep. {_describe_left_out(log)}")
    texts, counts = list(log.queries), [query.count for query in log.queries.values()]
    sizes = [EVERY] if sample == "all" else [int(size) for size in sample.split(",")]
    queries: list[QueryRecord] = []
    strata: dict[str, dict[str, int]] = {}
    for number, members in enumerate(split_by_demand(counts, len(STRATA), seed=f"{seed}:strata")):
        name, of_members = STRATA[number], [counts[index] for index in members]
        drawn = draw_by_demand(of_members, sizes[number % len(sizes)], seed=f"{seed}:{name}")
        queries += [_build_query(log, texts[members[at]], weight, name) for at, weight in sorted(drawn.items())]
        strata[name] = {"queries": len(members), "demand": sum(of_members), "sampled": len(drawn)}
    facts = {"lines": log.lines, "demand": log.demand, "distinct_queries": log.distinct, "left_out": log.left_out}
    return DatasetRecord(
        name=name_source(path),
        queries=queries,
        source_format="query-log",
        metadata={"query_log": facts | {"strata": strata, "sample": sample, "seed": seed}},
        slice_definitions={name: f"Queries in the {name} of the demand, a third of it." for name in STRATA},
        warnings=_describe(log, strata, queries, f"The sample ({sample}, seed {seed})"),
        is_draft=True,
    )


def _build_query(log: QueryLog, key: str, weight: float, stratum: str) -> QueryRecord:
    query = log.queries[key]
    metadata = {"count": query.count} | ({"clicks": query.clicks} if log.has_clicks else {})
    return QueryRecord(key, query.text, slices=[stratum], weight=weight, metadata=metadata)


def _describe_left_out(log: QueryLog) -> str:
    reasons = [
        f"{counted(left['queries'], 'query')} {reason} ({counted(left['demand'], 'search')}, "
        f"{format_share(left['demand'] / max(log.demand, 1))} of the demand)"
        for reason, left in log.left_out.items()
    ]
    return f"Left out: {', '.join(reasons) or 'nothing'}."


def _describe(log: QueryLog, strata: dict[str, dict[str, int]], queries: list[QueryRecord], sample: str) -> list[str]:
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
        *([clicks] if log.has_clicks else []),
    ]
