"""Contents of the page of a benchmark."""

from collections.abc import Sequence
from typing import Any

from django.core.cache import cache
from django.db import connection

from apps.experiments.verifying import verify
from apps.operations import queueing
from apps.operations.models import Status
from apps.operations.progress import compute_progress
from apps.operations.waiting import describe_wait
from apps.records.circumstances import group_by
from apps.records.finding import describe_warnings
from apps.records.measuring.slicing import try_slicing
from apps.records.models import Benchmark, QueryResult, Run
from apps.records.models.timing import TIMINGS, Timing
from apps.results.charts import plot_quality
from apps.results.leaderboard.parallel import plot_parallel
from apps.results.leaderboard.versions import VersionView, compare_versions
from apps.verdicts.configurations import (
    build_configuration,
    build_labels,
    differ_in_making,
    find_varying,
    list_builds,
    list_phrases,
    list_shared,
    spell_settings,
)
from apps.verdicts.coverage import describe_coverage, name_judged
from apps.verdicts.gates.baselines import load_baseline_names
from apps.verdicts.ranked_runs import (
    NARROWER,
    UNFINISHED,
    Leaderboard,
    Row,
    load_leaderboard,
    select_measures,
)

ENDED = (Status.COMPLETED, Status.FAILED)
CACHED_SECONDS = 7 * 24 * 3600
HASHES = f"""
    SELECT run_id, count(*), sum(hash_record_extended((query_id, repetition, document_ids, error), 0)::numeric)
    FROM {QueryResult._meta.db_table} WHERE run_id = ANY(%s) GROUP BY run_id
"""  # nosec # of constants


def build_context(benchmark: Benchmark, k: int, *, at: VersionView, within: str = "") -> dict[str, Any]:
    """Return the leaderboard of `benchmark` at cutoff `k`, with its progress while it runs and its figure afterwards.

    `at` is the dataset version of the values. `within` names the slice whose queries the means cover.
    """
    board = load_leaderboard(benchmark, version=at.version, within=within)
    slicing, unsliced = try_slicing(benchmark, board.evaluation)
    configs = spell_settings(run.config for run in board.runs)
    labels = build_labels(board.runs)
    names = select_measures(benchmark, k)
    baselines = load_baseline_names(benchmark)
    uneven, few_judged = describe_coverage(board)
    return {
        "benchmark": benchmark,
        "board": board,
        "versions": at.choices,
        "rescored": board.evaluation if board.version != benchmark.dataset_version else None,
        "moved": compare_versions(benchmark, board, at.choices) if not board.slice else None,
        "verification": verify(benchmark) if benchmark.manifest and benchmark.status in ENDED else None,
        "slices": slicing.slices if slicing else (),
        "unsliced": unsliced,
        "within": within,
        "slice_kept": [("k", k), ("version", board.version.number)],
        "k": k,
        "measures": names,
        "rows": _fold_equal(
            [
                {
                    **_build_row(row, board, names, label),
                    "baselines": baselines.get(row.run.pk, []),
                }
                for row, label in zip(board.rows, labels, strict=True)
            ]
        ),
        "run_warnings": describe_warnings(board.runs, labels),
        "shared": list_shared(configs),
        "unresolved": board.evaluation if board.evaluation and board.evaluation.unresolved_count else None,
        "counts": {status: sum(row.run.status == status for row in board.rows) for status in Run.Status.values},
        "figure": plot_quality(board) if benchmark.status == Status.COMPLETED else None,
        "parallel": plot_parallel(board) if benchmark.status == Status.COMPLETED else None,
        "uneven": uneven,
        "few_judged": few_judged,
        **_describe_indexes(board, benchmark),
        **_describe_progress(benchmark),
    }


def _describe_indexes(board: Leaderboard, benchmark: Benchmark) -> dict[str, Any]:
    """Return the searched indexes, and their contents if strategies or models are compared."""
    indexes = {row.run.index_id: row.run.index for row in board.rows if row.run.index}.values()
    return {"indexes": indexes, "made_of": differ_in_making(benchmark, indexes), "built": list_builds(indexes)}


def _build_row(row: Row, board: Leaderboard, names: list[str], label: str) -> dict[str, Any]:
    best = board.best
    primary = row.values.get(board.primary)
    top = best.values[board.primary] if best else None
    return {
        "row": row,
        "run": row.run,
        "primary": primary,
        "share": 100 * primary / top if primary is not None and top and not row.unranked else 0,
        "judged": row.values.get(name_judged(board.primary)),
        "is_mild": row.unranked in (NARROWER, UNFINISHED),
        "cells": [(row.values.get(name), row.values.get(name_judged(name))) for name in names],
        "ann": row.ann,
        "made_of": build_configuration(row.run),
        "label": label,
        "times": list_times(row.run.times),
    }


def _fold_equal(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first row of each group of equal runs, with the others and what each differs in."""
    by_run = {row["run"].pk: row for row in rows}
    groups = [[by_run[row.run.pk] for row in group] for group in group_equal([row["row"] for row in rows])]
    for group in groups:
        configs = spell_settings(row["run"].config for row in group)
        differ = find_varying(configs)
        for row, config in zip(group, configs, strict=True):
            row["differs"] = list_phrases(config, differ)
    return [{**group[0], "equal": group[1:]} for group in groups]


def list_times(times: Timing) -> list[tuple[str, float]]:
    """Return the details of a run's time: percentiles if single searches were timed, else stages."""
    stages = {name.removesuffix("_ms"): times.get_mean(name) for name in TIMINGS[:-1]}
    return [(name, ms) for name, ms in (times.total_percentiles or stages).items() if ms]


def _describe_progress(benchmark: Benchmark) -> dict[str, Any]:
    operation = benchmark.operation
    if benchmark.status != Status.RUNNING or operation is None:
        return {"active": False, "operation": operation}
    return {
        "active": True,
        "operation": operation,
        "progress": compute_progress(operation),
        "position": queueing.count_ahead(operation),
        "waiting_for": describe_wait(operation),
    }


def group_equal(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows in groups of equal runs, in the order of their first rows; most groups have one row.

    Only the lists of ranked runs with equal means are read. Runs whose rankings were deleted are alone.
    """
    ranked = [row for row in rows if row.rank and not row.provisional]
    by_values = group_by(ranked, lambda row: (row.rank, row.run.failed_queries, tuple(sorted(row.values.items()))))
    hashes = _hash_lists([row.run for group in by_values.values() if len(group) > 1 for row in group])
    return list(group_by(rows, lambda row: (row.values and hashes.get(row.run.pk)) or row.run.pk).values())


def _hash_lists(runs: Sequence[Run]) -> dict[Any, str]:
    """Return a hash of the lists of each run that has lists. A run that ends again has a new one."""
    keys = {f"lists:{run.pk}:{run.completed_at.timestamp()}": run.pk for run in runs if run.completed_at}
    stored = cache.get_many(keys)
    if missing := {pk: key for key, pk in keys.items() if key not in stored}:
        with connection.cursor() as cursor:
            cursor.execute(HASHES, [list(missing)])
            new = {missing[pk]: f"{count} {total}" for pk, count, total in cursor.fetchall()}
        cache.set_many(new, CACHED_SECONDS)
        stored |= new
    return {keys[key]: value for key, value in stored.items()}
