"""Reading a log of queries as a dataset without judgments, whose queries are weighted by demand."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from apps.datasets.records import DatasetError, DatasetRecord, QueryRecord
from benchbench.decimals import counted, format_share, list_some
from benchbench.files.query_log import QueryLog, read_query_log
from benchbench.files.ratings import build_text_key
from benchbench.ir.sampling import draw_by_demand, split_by_demand

STRATA = ("head", "torso", "tail")
DEFAULT_SAMPLE = "100"
NUMBER = "[1-9][0-9]{0,8}"
SAMPLE = re.compile(rf"all|top {NUMBER}|{NUMBER}(?:,{NUMBER},{NUMBER})?")


def read_log(
    path: Path,
    *,
    sample: str = DEFAULT_SAMPLE,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    least_count: int = 1,
) -> DatasetRecord:
    """Return a sample of a log as the draft of a dataset: queries with weights and slices, and no judgments.

    The queries, by falling frequency, are cut into strata of a third of the demand: head, torso, tail. `sample` is how
    many of each are drawn, by `benchbench.ir.sampling`: "100", or "50,100,200". The weights then sum to the demand of
    the log, less what is left out. With "all", or "top 500", a query's weight is its count. `seed` decides the draw.

    Clicks are summed in the metadata and are not turned into grades. `metadata["query_log"]` and the warnings report
    lines, distinct queries, demand, and what is left out. For `columns` and `least_count` see
    `benchbench.files.query_log`.
    """
    if not SAMPLE.fullmatch(sample):
        raise DatasetError(
            f"The sample {sample[:40]!a} is unknown: give a number of queries of each stratum, such as 100, or one for "
            "head, torso and tail, such as 50,100,200; or all; or top 500.",
            field="sample",
        )
    log = read_query_log(path, columns=columns or {}, least_count=least_count)
    counts = {key: query.count for key, query in log.queries.items()}
    if not counts:
        raise DatasetError(f"{path.name} has no query to keep: {_list_left_out(log) or 'it is empty'}.")
    keys = list(counts)
    split = split_by_demand(list(counts.values()), len(STRATA), seed=f"{seed}:strata")
    strata = {name: [keys[index] for index in members] for name, members in zip(STRATA, split, strict=True)}
    weights = _choose(strata, counts, sample, seed)
    facts = _build_facts(log, strata, counts, weights) | {"sample": sample, "seed": seed}
    stem = path.name.removesuffix(".gz")
    return DatasetRecord(
        name=stem.rpartition(".")[0] or stem,
        queries=[
            _build_query(log, key, weights[key], name)
            for name, keys in strata.items()
            for key in keys
            if key in weights
        ],
        source_format="query-log",
        metadata={"query_log": facts},
        slice_definitions={name: f"Queries in the {name} of the demand, a third of it." for name in STRATA},
        warnings=list(_describe(log, facts)),
        is_draft=True,
    )


def _choose(strata: dict[str, list[str]], counts: dict[str, int], sample: str, seed: int) -> dict[str, float]:
    """Return the weights of the queries of a sample."""
    if not sample[0].isdigit():
        limit = int(sample.removeprefix("top ")) if sample != "all" else None
        return {key: float(counts[key]) for key in [key for keys in strata.values() for key in keys][:limit]}
    weights, sizes = {}, sample.split(",")
    for number, (name, keys) in enumerate(strata.items()):
        size = int(sizes[number % len(sizes)])
        drawn = draw_by_demand([counts[key] for key in keys], size, seed=f"{seed}:{name}")
        weights.update({keys[index]: weight for index, weight in drawn.items()})
    return weights


def _build_query(log: QueryLog, key: str, weight: float, stratum: str) -> QueryRecord:
    query = log.queries[key]
    metadata = {"count": query.count} | ({"clicks": query.clicks} if log.has_clicks else {})
    return QueryRecord(build_text_key(key), query.text, slices=[stratum], weight=weight, metadata=metadata)


def _build_facts(
    log: QueryLog, strata: dict[str, list[str]], counts: dict[str, int], weights: dict[str, float]
) -> dict[str, Any]:
    return {
        "lines": log.lines,
        "demand": log.demand,
        "distinct_queries": log.distinct,
        "kept_queries": len(counts),
        "kept_demand": sum(counts.values()),
        "sampled_demand": sum(counts[key] for key in weights),
        "weight": sum(weights.values()),
        "left_out": {reason: {"queries": texts, "demand": demand} for reason, (texts, demand) in log.left_out.items()},
        "strata": {
            name: {
                "queries": len(keys),
                "demand": sum(counts[key] for key in keys),
                "sampled": sum(key in weights for key in keys),
            }
            for name, keys in strata.items()
        },
        "normalisation": "NFKC, case folding, white space joined",
    }


def _list_left_out(log: QueryLog) -> str:
    return ", ".join(
        f"{counted(queries, 'query')} {reason} ({counted(demand, 'search')}, "
        f"{format_share(demand / max(log.demand, 1))} of the demand)"
        for reason, (queries, demand) in log.left_out.items()
    )


def _describe(log: QueryLog, facts: dict[str, Any]) -> Iterator[str]:
    yield (
        f"Read {counted(log.lines, 'line')} with {counted(log.demand, 'search')} of "
        f"{counted(log.distinct, 'distinct query')}, compared after Unicode NFKC, case folding and joining white "
        f"space. Kept {counted(len(log.queries), 'query')} with {format_share(facts['kept_demand'] / log.demand)} of "
        "the demand."
    )
    if log.left_out:
        yield f"Left out: {_list_left_out(log)}."
    if log.unread_columns:
        yield f"Columns not read: {list_some(log.unread_columns)}."
    shares = [
        f"{stratum['sampled']:,} of {stratum['queries']:,} in the {name}" for name, stratum in facts["strata"].items()
    ]
    yield (
        f"The sample ({facts['sample']}, seed {facts['seed']}) has {', '.join(shares)}, which were "
        f"{format_share(facts['sampled_demand'] / log.demand)} of the demand. Their weights sum to "
        f"{facts['weight']:,.0f} searches."
    )
    if log.has_clicks:
        yield "Clicks are summed in the metadata of each query. They are not turned into grades."
