"""JSON: the outcome of a benchmark as one object, the `results` of the API, and a run's outcomes by query."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any
from uuid import UUID

from apps.datasets.models import DatasetVersion
from apps.execution.running.timing import find_execution
from apps.operations.models import Status
from apps.records.finding import flatten, nest
from apps.records.lists.final import CALLS
from apps.records.measuring.alternatives import choose_alternatives
from apps.records.measuring.approximations import build_ann
from apps.records.models import Benchmark, Run
from apps.results.exporters.outcomes import Outcome, load_outcomes
from apps.results.triage.queries import load_evaluation
from apps.verdicts.expected import RoundVerdictReport, find_board_selection, report_leaderboard
from apps.verdicts.ranked_runs import WEIGHTING, Row, load_leaderboard
from benchbench import SOFTWARE
from benchbench.durations import measure_seconds
from benchbench.reading.strict_json import attributes

FLAT = 'By name, as in {"precision@10": 0.4}.'
STAGES = ("rewrite", "search", "rerank", "total")
NO_METRICS: dict[str, object] = {"mrr": None, "ap": None, "precision": {}, "recall": {}, "ndcg": {}}
Values = dict[str, float | None]


@dataclass(frozen=True)
class Timing:
    """Milliseconds of a run's own work. Runs share the wall clock, so that belongs to the benchmark."""

    indexing_ms: Annotated[int | None, "Time to build its index."]
    evaluation_ms: Annotated[int | None, "Sum of the stages over all queries; under a rate, of the service times."]
    total_ms: int | None
    per_query: Annotated[
        dict[str, Any],
        "Mean milliseconds per query by stage, nearest-rank `percentiles` of isolated searches, how many `samples` "
        "were timed, and `execution`: shared or isolated. Under a rate, `total_ms` and `percentiles` are the latencies "
        "of all answers of the `open_loop`, and the stages the service times of each query's first answer.",
    ]


@dataclass(frozen=True)
class RunResult:
    """A run with its means."""

    id: UUID
    run_order: int
    config_hash: str
    config: dict[str, Any]
    status: Run.Status
    error_message: str | None
    metrics: dict[str, object]
    metrics_flat: Annotated[Values, FLAT]
    weighting: Annotated[str, WEIGHTING]
    timing: Timing
    label: str
    failed_queries: Annotated[int, "Left out of the means."]
    unranked: Annotated[
        str | None, "Why the run has no rank: too many queries have no value, or a smaller filter share than others."
    ]
    warnings: list[str]
    index: Annotated[str | None, "Name of the index that it searched."]
    ann: Annotated[dict[str, Any] | None, "Setting, recall and loss of its approximate search; null if exact."]


@dataclass(frozen=True)
class Summary:
    """The results of all runs together."""

    total_runs: int
    completed_runs: int
    failed_runs: int
    best_run: Annotated[
        UUID | None,
        "The best run by nDCG at the primary k of those with the greatest filter share and one rate.",
    ]
    best_primary_metric: float | None


@dataclass(frozen=True)
class Results:
    """The outcome of a benchmark: its runs in their order, and a summary."""

    benchmark_id: UUID
    name: str
    status: Status
    dataset_version: int
    duration_ms: Annotated[int | None, "From start to end of the benchmark."]
    primary_k: int
    weighting: Annotated[str, WEIGHTING]
    exclude_self: Annotated[bool, "Rankings leave out the document whose id is the query's key."]
    identical_texts: Annotated[str, "judged: documents with the text of a judged one have its grade; or different."]
    k_values_for_metrics: list[int]
    runs: list[RunResult]
    summary: Summary
    total_runs: int
    round_verdict: Annotated[
        RoundVerdictReport | None, "The verdict of the judging round that made the version, if it compared these runs."
    ]
    caveat: Annotated[str | None, "What the means rest on, if a judging round selected the judgments."]
    software: Annotated[str, "The version of BenchBench that wrote this."]


@dataclass(frozen=True)
class QueryOutcome:
    """Result of a run for one query. Values are at the benchmark's primary k, null if undefined."""

    query_id: int
    query_key: str
    query_text: str
    retrieved_doc_ids: Annotated[list[str], "External ids, best first."]
    precision_at_k: float | None
    recall_at_k: float | None
    reciprocal_rank: float | None
    ndcg_at_k: float | None
    rewrite_time_ms: Annotated[
        float | None, "Time in which a language model rewrote the query; null if it is searched as asked."
    ]
    search_time_ms: float | None
    rerank_time_ms: float | None
    total_time_ms: Annotated[
        float | None, "All stages, including encoding and fusion; under a rate, from when it was due."
    ]
    execution: Annotated[str | None, "How the times were measured: shared or isolated."]
    embed_calls: Annotated[int | None, "Encodings that the run alone would need; null for an external run."]
    llm_calls: Annotated[int | None, "Calls of a language model that the run alone would need."]
    llm_cached: Annotated[int | None, "How many of these calls were cached."]
    fallback_used: Annotated[
        bool | None,
        "Whether the language model chose none of the offered documents or sections, so the nearest were used.",
    ]
    error: Annotated[str | None, "Why the query failed and has no ranking."]
    metrics_flat: Annotated[Values, FLAT]


def build_results(benchmark: Benchmark, *, version: DatasetVersion | None = None) -> Results:
    """Return the runs of `benchmark` in run order with their means, and a summary, at any status.

    It has final means only. `timing` holds a run's own costs: building its index, its stages for all queries, and both.
    `per_query` has milliseconds per query, and whether they are shared. Runs share the wall clock, so it belongs to the
    benchmark: `duration_ms`. Means are those on `version`, by default the benchmark's own. Additions to the contract of
    the API: `name`, `status`, `dataset_version`, its number, `weighting`, `exclude_self`, `identical_texts`,
    `duration_ms`, `round_verdict`, `caveat`, `software`; and a run's `label`, `failed_queries`, `unranked`,
    `warnings`, `index`, `ann`, `weighting` and `per_query`.
    """
    board = load_leaderboard(benchmark, version=version)
    final = [row for row in board.rows if row.run.status == Run.Status.COMPLETED and not row.provisional]
    alternatives, _ = choose_alternatives([row.run for row in final])
    ranked = [row for row in final if row.rank and row.run in alternatives]
    runs, selection = board.in_run_order, find_board_selection(board)
    counts = Counter(row.run.status for row in runs)
    seconds = measure_seconds(benchmark.started_at, benchmark.completed_at)
    return Results(
        benchmark_id=benchmark.pk,
        name=benchmark.name,
        status=Status(benchmark.status),
        dataset_version=board.version.number,
        duration_ms=None if seconds is None else round(1000 * seconds),
        primary_k=benchmark.primary_k,
        **attributes(benchmark, "weighting", "exclude_self", "identical_texts"),
        k_values_for_metrics=benchmark.k_values,
        runs=[_build_run_result(row, benchmark) for row in runs],
        summary=Summary(
            total_runs=len(runs),
            completed_runs=counts[Run.Status.COMPLETED],
            failed_runs=counts[Run.Status.FAILED],
            best_run=ranked[0].run.pk if ranked else None,
            best_primary_metric=ranked[0].values[board.primary] if ranked else None,
        ),
        total_runs=len(runs),
        round_verdict=report_leaderboard(board, selection),
        caveat=selection.caveat if selection else None,
        software=SOFTWARE,
    )


def load_run_result(run: Run, *, version: DatasetVersion | None = None) -> RunResult:
    """Return the result of one run, as in `build_results`."""
    return next(
        _build_run_result(row, run.benchmark)
        for row in load_leaderboard(run.benchmark, version=version).rows
        if row.run.pk == run.pk
    )


def load_query_outcomes(
    run: Run, query_ids: Sequence[int], *, version: DatasetVersion | None = None
) -> list[QueryOutcome]:
    """Return a run's outcomes of some of its queries, with the values on `version` (its own by default).

    The single values are at the benchmark's primary k; `metrics_flat` has every measure. Both are empty while the run
    is not completed, for a failed query, and for a query that `version` lacks. Documents are external ids, best first.
    Of several repetitions, the first that did not fail counts.
    """
    evaluation = load_evaluation(run, version=version)
    return [_build_query_outcome(outcome, run.benchmark) for outcome in load_outcomes(run, query_ids, evaluation)]


def write(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    content = asdict(build_results(benchmark, version=version))
    yield json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False, default=str) + "\n"


def _build_run_result(row: Row, benchmark: Benchmark) -> RunResult:
    run, metrics = row.run, flatten(row.final)
    return RunResult(
        id=run.pk,
        **attributes(run, "run_order", "config_hash", "config", "status", "label", "failed_queries", "warnings"),
        error_message=run.error_message or None,
        metrics=NO_METRICS | nest(metrics),
        metrics_flat=metrics,
        weighting=benchmark.weighting,
        timing=_build_timing(run),
        unranked=row.unranked or None,
        index=str(run.index) if run.index else None,
        ann=build_ann(run, row.truth),
    )


def _build_timing(run: Run) -> Timing:
    built = run.index.stats.get("duration_sec") if run.index else None
    indexing = None if built is None else round(1000 * built)
    evaluation = run.times.cost_ms
    costs = [ms for ms in (indexing, evaluation) if ms is not None]
    return Timing(indexing, evaluation, sum(costs) if costs else None, run.timing)


def _build_query_outcome(outcome: Outcome, benchmark: Benchmark) -> QueryOutcome:
    values, costs, k = outcome.values, outcome.costs, benchmark.primary_k
    return QueryOutcome(
        query_id=outcome.query.pk,
        query_key=outcome.query.key,
        query_text=outcome.query.text,
        retrieved_doc_ids=outcome.documents,
        precision_at_k=values.get(f"P@{k}"),
        recall_at_k=values.get(f"R@{k}"),
        reciprocal_rank=values.get("RR"),
        ndcg_at_k=values.get(f"nDCG@{k}"),
        **{f"{stage}_time_ms": costs.get(f"{stage}_ms") for stage in STAGES},
        execution=find_execution(benchmark, costs.get("total_ms")),
        **{name: costs.get(name) for name in CALLS},
        error=outcome.error or None,
        metrics_flat=flatten(values),
    )
