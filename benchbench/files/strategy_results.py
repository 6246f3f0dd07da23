"""The CSV files of the retrieval-strategy benchmark: what was indexed, every search, and the summary of both."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from statistics import fmean
from typing import Any

from benchbench.files.tables import render_line
from benchbench.ir.sections import NOT_FOUND, consistency, order_statistic, reciprocal

CUTOFFS = (1, 3, 5, 10)  # of the summary, whichever were run
SUMMARY_COLUMNS = (
    *("index_time_sec", "num_vectors"),
    *(f"doc_recall_at_{k}" for k in CUTOFFS),
    *(f"section_recall_at_{k}" for k in CUTOFFS),
    *("doc_mrr", "section_mrr", "avg_search_time_ms", "p50_search_time_ms", "p95_search_time_ms"),
    *("consistency_score", "total_llm_calls", "total_embed_calls", "queries_evaluated", "runs_per_query", "execution"),
)
FAILED: Sequence[Hashable] = (None,)  # stands for the documents of a search that failed: those of no other


@dataclass(frozen=True, slots=True)
class Configuration:
    """Key of a row in index_stats.csv and summary.csv; None for a part that the strategy does not use."""

    strategy: str
    backend: str | None = None
    embedding_model: str | None = None
    llm_model: str | None = None


@dataclass(frozen=True, slots=True)
class IndexStats:
    """Cost and size of an index; None if it was never built, for the reason in `error`."""

    duration_sec: float | None = None
    num_documents: int | None = None
    num_chunks: int | None = None
    num_vectors: int | None = None
    llm_calls: int | None = None
    embed_calls: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Content:
    """Share of evidence and answer in the texts of the first k chunks; None if the query has no such text."""

    evidence_recall: float | None = None
    answer_token_overlap: float | None = None
    rouge_l: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRow:
    """A row of search_results.csv without its configuration: a search cut at `top_k`, fields in the file's order.

    It is one repetition of a query with the ranks of one expected document. Ranks are those of
    `benchbench.ir.sections`; None if nothing is expected, or the results are unknown. `execution` is the mode in which
    the time was measured. A search with an `error` has no results.
    """

    query_id: str
    run: int
    question: str
    expected_doc: str
    expected_sections: str = ""
    top_k: int = 0
    doc_found: bool | None = None
    doc_rank: int | None = None
    section_found: bool | None = None
    section_rank: int | None = None
    search_time_ms: float | None = None
    embed_calls: int | None = None
    llm_calls: int | None = None
    evidence_recall: float | None = None
    answer_token_overlap: float | None = None
    rouge_l: float | None = None
    error: str = ""
    execution: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Search(SearchRow):
    """A search cut at the greatest cutoff: its results, its `documents`, and its content by cutoff."""

    content: Mapping[int, Content] = field(default_factory=dict)
    documents: Sequence[Hashable] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A row of summary.csv: the values of SUMMARY_COLUMNS, or the error of a failed configuration."""

    configuration: Configuration
    values: Mapping[str, float | str | None]
    error: str = ""


def index_stats(built: Iterable[tuple[Configuration, IndexStats]]) -> Iterator[str]:
    """Yield index_stats.csv. It has a column `error` only if an index could not be built."""
    lines = [[*_list_values(configuration), *_list_values(stats)] for configuration, stats in built]
    return _render_table([*_list_names(Configuration), *_list_names(IndexStats)], lines)


def search_header() -> str:
    """Return the first line of search_results.csv."""
    query_id, run, *columns = _list_names(SearchRow)
    return render_line([query_id, run, *_list_names(Configuration), *columns])


def search_rows(search: Search, cutoffs: Iterable[int]) -> Iterator[SearchRow]:
    """Yield the rows of a search, one per cutoff: the same ranking, cut. Results below a cutoff count as not found."""
    base_values = dict(zip(_list_names(SearchRow), _list_values(search, SearchRow), strict=True))
    for k in cutoffs:
        doc_rank, section_rank = _cut(search.doc_rank, k), _cut(search.section_rank, k)
        found_flags = {"doc_found": _is_found(doc_rank), "section_found": _is_found(section_rank)}
        content = Content() if search.error else search.content.get(k, Content())
        ranks = {"doc_rank": doc_rank, "section_rank": section_rank}
        contents = dict(zip(_list_names(Content), _list_values(content), strict=True))
        yield SearchRow(**base_values | {"top_k": k} | found_flags | ranks | contents)


def search_line(configuration: Configuration, row: SearchRow) -> str:
    """Return a row as a line of search_results.csv."""
    query_id, run, *values = _list_values(row)
    return render_line([query_id, run, *_list_values(configuration), *values])


def render_summary(rows: Iterable[Summary]) -> Iterator[str]:
    """Yield summary.csv. It has a column `error` only if a configuration failed. Reads `rows` on the first `next`."""
    lines = [[*_list_values(row.configuration), *map(row.values.get, SUMMARY_COLUMNS), row.error] for row in rows]
    yield from _render_table([*_list_names(Configuration), *SUMMARY_COLUMNS, "error"], lines)


def summarise(
    configuration: Configuration,
    stats: IndexStats,
    rows: Sequence[SearchRow],
    *,
    consistency_score: float | None,
    runs_per_query: int,
    error: str = "",
) -> Summary:
    """Return the summary of a configuration's rows, computed so that search_results.csv gives the same figures.

    Hit rates (a document or section in the first k) and reciprocal ranks are means over the queries that expect one,
    by the first repetition that did not fail. Times cover every search that did not fail; sums cover all searches. The
    consistency score needs whole rankings, which the rows do not hold. With an `error`, the summary has only the index
    and zero evaluated queries.
    """
    values: dict[str, float | str | None] = {
        "index_time_sec": stats.duration_sec,
        "num_vectors": stats.num_vectors,
        "queries_evaluated": 0,
        "runs_per_query": runs_per_query,
    }
    if not error:
        answered = [row for row in rows if not row.error]
        values |= _average_quality(_first(answered)) | _totals(rows)
        values["consistency_score"] = consistency_score
        values["execution"] = next((row.execution for row in answered if row.execution), None)
        values["queries_evaluated"] = len({row.query_id for row in answered})
    return Summary(configuration=configuration, values=values, error=error)


def compute_consistency(searches: Iterable[Search], k: int) -> float | None:
    """Return the share of queries whose first k documents are the same in all repetitions.

    A query that failed in some repetitions is not consistent; one that failed in all is left out.
    """
    lists: dict[str, dict[int, Sequence[Hashable]]] = defaultdict(dict)
    for search in searches:
        lists[search.query_id][search.run] = FAILED if search.error else search.documents[:k]
    repetitions = [list(of_query.values()) for of_query in lists.values()]
    return consistency([of_query for of_query in repetitions if any(list_ != FAILED for list_ in of_query)])


def _average_quality(rows: Sequence[SearchRow]) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for name in ("doc", "section"):
        ranks = _best_ranks(rows, f"{name}_rank")
        for k in CUTOFFS:
            hits = [float(rank != NOT_FOUND) for (_, top_k), rank in ranks.items() if top_k == k]
            values[f"{name}_recall_at_{k}"] = _mean(hits)
        greatest = max((top_k for _, top_k in ranks), default=0)
        values[f"{name}_mrr"] = _mean([reciprocal(rank) for (_, top_k), rank in ranks.items() if top_k == greatest])
    return values


def _best_ranks(rows: Iterable[SearchRow], name: str) -> dict[tuple[str, int], int]:
    """Return by query and cutoff the rank of the first expected document or section found, or NOT_FOUND."""
    best: dict[tuple[str, int], int] = {}
    for row in rows:
        rank, key = getattr(row, name), (row.query_id, row.top_k)
        if rank is not None:
            both = {rank, best.get(key, NOT_FOUND)} - {NOT_FOUND}
            best[key] = min(both, default=NOT_FOUND)
    return best


def _totals(rows: Iterable[SearchRow]) -> dict[str, float | None]:
    """Return times and calls of searches, each of which has one row per cutoff and document."""
    searches = {(row.query_id, row.run): row for row in rows}.values()
    times = [row.search_time_ms for row in searches if not row.error and row.search_time_ms is not None]
    return {
        "avg_search_time_ms": _mean(times),
        "p50_search_time_ms": order_statistic(times, 0.5),
        "p95_search_time_ms": order_statistic(times, 0.95),
        "total_llm_calls": _sum(row.llm_calls for row in searches),
        "total_embed_calls": _sum(row.embed_calls for row in searches),
    }


def _sum(counts: Iterable[int | None]) -> int | None:
    """Return the sum of the known values; None without any."""
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if numbers else None


def _first(answered: Iterable[SearchRow]) -> list[SearchRow]:
    """Return the rows of each query's first repetition."""
    first: dict[str, int] = {}
    return [row for row in answered if first.setdefault(row.query_id, row.run) == row.run]


def _cut(rank: int | None, k: int) -> Any:
    """Return a rank in a ranking cut at k; None stays None."""
    return rank if rank is None or rank <= k else NOT_FOUND


def _is_found(rank: int | None) -> bool | None:
    return None if rank is None else rank != NOT_FOUND


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


@cache
def _list_names(record: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record))


def _list_values(record: object, kind: type | None = None) -> list[Any]:
    """Return the values of a record, by default of its own type. `dataclasses.astuple` would copy each, slowly."""
    return [getattr(record, name) for name in _list_names(kind or type(record))]


def _render_table(columns: list[str], lines: list[list[object]]) -> Iterator[str]:
    """Yield a table without its last column, `error`, if that is empty."""
    width = len(columns) - (0 if any(line[-1] for line in lines) else 1)
    yield render_line(columns[:width])
    for line in lines:
        yield render_line(line[:width])
