"""CSV: the runs of a benchmark, or their queries, for spreadsheets and data frames."""

import json
from collections.abc import Iterable, Iterator

from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.running.rankings import CALLS, TIMINGS
from apps.benchmarks.running.timing import execution_of
from apps.datasets.models import DatasetVersion
from apps.results.configurations import keys_of
from apps.results.exporters.outcomes import measured, outcomes_of
from apps.results.leaderboard.runs import evaluations_of, leaderboard
from benchbench.files.tables import csv_line

RUN_COLUMNS = (
    *("run_id", "run_order", "label", "config_hash", "status", "error"),
    *("failed_queries", "query_count", "unranked", "dataset_version"),
)
QUERY_COLUMNS = ("run_id", "run_order", "label", "dataset_version", "query_key", "query_text", "status", "error")


def write_runs(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """One row a run, in run order, those that failed with their error: configuration, means, milliseconds per query."""
    rows = leaderboard(benchmark, version=version).in_run_order
    keys = keys_of(row.run.config for row in rows)
    stages = list(TIMINGS)
    counts = {key: evaluation.query_count for key, evaluation in evaluations_of(benchmark, version=version).items()}
    yield csv_line([*RUN_COLUMNS, *keys, *benchmark.measures, *stages, "execution"])
    for row in rows:
        run = row.run
        facts = [str(run.pk), run.run_order, run.label, run.config_hash, run.status, run.error_message]
        facts += [run.failed_queries, counts.get(run.pk), row.unranked, version.number]
        config = [run.config.get(key) for key in keys]
        times = [*map(run.timing.get, stages), execution_of(benchmark, row.ms)]
        yield csv_line([*facts, *config, *map(row.final.get, benchmark.measures), *times])


def write_queries(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """One row a run and query. A query that failed has its error and no value; so has a run that failed, in one row.

    `documents` is a JSON list of external ids, best first.
    """
    runs = benchmark.runs.select_related("benchmark__dataset_version").order_by("run_order")
    yield from _query_rows(benchmark, runs, version)


def write_run(run: Run, version: DatasetVersion) -> Iterator[str]:
    """One row a query of a run; see `write_queries`."""
    measured(run, version)
    yield from _query_rows(run.benchmark, [run], version)


def _query_rows(benchmark: Benchmark, runs: Iterable[Run], version: DatasetVersion) -> Iterator[str]:
    names = benchmark.measures
    columns = [*QUERY_COLUMNS, *names, *TIMINGS, "execution", *CALLS, "documents"]
    yield csv_line(columns)
    for run in runs:
        about = [str(run.pk), run.run_order, run.label, version.number]
        if run.status != Run.Status.COMPLETED:
            facts = [*about, None, None, run.status, run.error_message]
            yield csv_line([*facts, *[None] * (len(columns) - len(facts))])
            continue
        for outcome in outcomes_of(run, measured(run, version)):
            values = [outcome.values[name] for name in names]
            times = [getattr(outcome.result, name, None) for name in TIMINGS]
            times.append(execution_of(benchmark, getattr(outcome.result, "total_ms", None)))
            facts = [
                *about,
                outcome.query.key,
                outcome.query.text,
                "failed" if outcome.error else "completed",
                outcome.error,
            ]
            calls = [getattr(outcome.result, name, None) for name in CALLS]
            yield csv_line([*facts, *values, *times, *calls, json.dumps(outcome.documents, ensure_ascii=False)])
