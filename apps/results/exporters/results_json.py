"""JSON: the outcome of a benchmark as one object, the `results` of the API, and what a run answered to each query."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from apps.benchmarks.describing import flat
from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.running.storing import CALLS
from apps.benchmarks.running.timing import cost_ms, execution_of
from apps.datasets.models import DatasetVersion
from apps.results.exporters.outcomes import Outcome, outcomes_at
from apps.results.leaderboard.runs import Row, leaderboard
from apps.results.triage.queries import evaluation_of

NO_METRICS: dict[str, Any] = {"mrr": None, "ap": None, "precision": {}, "recall": {}, "ndcg": {}}
OF_A_RUN = (
    *("id", "run_order", "config_hash", "config", "status", "error_message", "metrics", "metrics_flat", "timing"),
    *("label", "failed_queries", "unranked", "warnings"),
)


def results(benchmark: Benchmark, *, version: DatasetVersion | None = None) -> dict[str, Any]:
    """Return the runs of `benchmark` in run order with their means, and a summary; at any status.

    Only final means are in it. `timing` holds a run's own costs: building its index, its stages for all queries, and
    both; `per_query` has milliseconds per query, and whether they are shared. The wall clock is that of all runs
    together, and so the benchmark's: `duration_ms`. Means are those on `version`, by default the benchmark's own.
    Beyond the contract of the API there is its number, `dataset_version`, and `duration_ms`, and a run has `label`,
    `failed_queries`, `unranked`, `warnings` and `per_query`.
    """
    board = leaderboard(benchmark, version=version)
    final = [row for row in board.rows if row.run.status == Run.Status.COMPLETED and not row.provisional]
    ranked = [row for row in final if row.rank]
    runs = sorted(board.rows, key=lambda row: row.run.run_order)
    counts = {status: sum(row.run.status == status for row in runs) for status in Run.Status.values}
    return {
        "benchmark_id": str(benchmark.pk),
        "dataset_version": board.version.number,
        "duration_ms": milliseconds_between(benchmark.started_at, benchmark.completed_at),
        "primary_k": benchmark.primary_k,
        "k_values_for_metrics": benchmark.k_values,
        "runs": [_run(row) for row in runs],
        "summary": {
            "total_runs": len(runs),
            "completed_runs": counts[Run.Status.COMPLETED],
            "failed_runs": counts[Run.Status.FAILED],
            "best_run": str(ranked[0].run.pk) if ranked else None,
            "best_primary_metric": ranked[0].values[board.primary] if ranked else None,
        },
        "total_runs": len(runs),
    }


def run_results(run: Run, *, version: DatasetVersion | None = None) -> dict[str, Any]:
    """Return one run as `results` tells it."""
    return next(_run(row) for row in leaderboard(run.benchmark, version=version).rows if row.run.pk == run.pk)


def query_results(run: Run, query_ids: Sequence[int], *, version: DatasetVersion | None = None) -> list[dict[str, Any]]:
    """Return what a run answered to some of its queries, with the values on `version` (its own by default).

    The single values are those at the primary k of the benchmark, `metrics_flat` has every measure; both have none
    while the run is not completed, for a query that failed, and for one that `version` lacks. Documents are external
    ids, best first; of several repetitions it is the first that did not fail.
    """
    evaluation = evaluation_of(run, version=version)
    return [_answer(outcome, run.benchmark) for outcome in outcomes_at(run, query_ids, evaluation)]


def write(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    yield json.dumps(results(benchmark, version=version), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _run(row: Row) -> dict[str, Any]:
    facts = row.facts
    told = {**facts, "metrics": NO_METRICS | facts["metrics"], "timing": _timing(row.run)}
    return {name: told[name] for name in OF_A_RUN}


def _timing(run: Run) -> dict[str, Any]:
    built = run.index.stats.get("duration_sec") if run.index else None
    indexing = None if built is None else round(1000 * built)
    evaluation = cost_ms(run)
    known = [ms for ms in (indexing, evaluation) if ms is not None]
    return {
        "indexing_ms": indexing,
        "evaluation_ms": evaluation,
        "total_ms": sum(known) if known else None,
        "per_query": run.timing,
    }


def _answer(outcome: Outcome, benchmark: Benchmark) -> dict[str, Any]:
    values, result, k = outcome.values, outcome.result, benchmark.primary_k
    return {
        "query_id": outcome.query.pk,
        "query_key": outcome.query.key,
        "query_text": outcome.query.text,
        "retrieved_doc_ids": outcome.documents,
        "precision_at_k": values.get(f"P@{k}"),
        "recall_at_k": values.get(f"R@{k}"),
        "reciprocal_rank": values.get("RR"),
        "ndcg_at_k": values.get(f"nDCG@{k}"),
        "rewrite_time_ms": result.rewrite_ms if result else None,
        "search_time_ms": result.search_ms if result else None,
        "rerank_time_ms": result.rerank_ms if result else None,
        "total_time_ms": result.total_ms if result else None,
        "execution": execution_of(benchmark, result.total_ms) if result else None,
        **{name: getattr(result, name, None) for name in CALLS},
        "error": outcome.error or None,
        "metrics_flat": flat(values),
    }


def milliseconds_between(started: datetime | None, ended: datetime | None) -> int | None:
    """Return the whole milliseconds from one moment to the other; None where one is not known."""
    if started is None or ended is None:
        return None
    return round(1000 * (ended - started).total_seconds())
