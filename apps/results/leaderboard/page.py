"""Contents of the first page and of the page of a benchmark."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from apps.benchmarks.gates.baselines import load_baseline_names
from apps.benchmarks.measuring.slicing import try_slicing
from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.progress import find_stage
from apps.benchmarks.repeating.verifying import verify
from apps.benchmarks.runs import find_shared_warnings
from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from apps.operations import queueing
from apps.operations.models import Operation, Status, of_subject
from apps.operations.progress import compute_each_progress, compute_progress
from apps.operations.waiting import describe_wait
from apps.results.charts import plot_quality
from apps.results.configurations import (
    build_configuration,
    build_labels,
    differ_in_making,
    find_varying,
    list_builds,
    list_phrases,
    list_shared,
)
from apps.results.leaderboard.coverage import LOW, describe_uneven, name_judged
from apps.results.leaderboard.runs import (
    Leaderboard,
    Row,
    load_best_runs,
    load_leaderboard,
    name_primary,
    select_measures,
)
from apps.results.leaderboard.versions import VersionView, compare_versions
from apps.retrieval.models import Index
from benchbench.access import visible
from benchbench.reading.strict_json import attributes

ENDED = (Status.COMPLETED, Status.FAILED)


def build_context(benchmark: Benchmark, k: int, *, at: VersionView, within: str = "") -> dict[str, Any]:
    """Return the leaderboard of `benchmark` at cutoff `k`, with its progress while it runs and its figure afterwards.

    `at` is the dataset version of the values. `within` names the slice whose queries the means cover.
    """
    board = load_leaderboard(benchmark, version=at.version, within=within)
    slicing, unsliced = try_slicing(benchmark, board.evaluation)
    configs = [run.config for run in board.runs]
    differ = find_varying(configs)
    common_warnings = find_shared_warnings(board.runs)
    names = select_measures(benchmark, k)
    baselines = load_baseline_names(benchmark)
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
        "rows": [
            {
                **_build_row(row, board, names, differ),
                "baselines": baselines.get(row.run.pk, []),
                "warnings": [warning for warning in row.run.warnings if warning not in common_warnings],
            }
            for row in board.rows
        ],
        "shared_warnings": common_warnings,
        "shared": list_shared(configs),
        "unresolved": board.evaluation if board.evaluation and board.evaluation.unresolved_count else None,
        "counts": {status: sum(row.run.status == status for row in board.rows) for status in Run.Status.values},
        "figure": plot_quality(board) if benchmark.status == Status.COMPLETED else None,
        **_check_coverage(board),
        **_describe_indexes(board, benchmark),
        **_describe_progress(benchmark),
    }


def _check_coverage(board: Leaderboard) -> dict[str, Any]:
    """Return a warning if the runs are judged unevenly, and whether few of their returned documents are judged."""
    name = name_judged(board.primary)
    labels = zip(board.rows, build_labels(board.runs), strict=True)
    judged = {label: row.values.get(name) for row, label in labels if not row.provisional}
    shares = [share for share in judged.values() if share is not None]
    return {"judged_name": name, "uneven": describe_uneven(judged), "low": min(shares, default=1.0) < LOW}


def _describe_indexes(board: Leaderboard, benchmark: Benchmark) -> dict[str, Any]:
    """Return the searched indexes, and their contents if strategies or models are compared."""
    indexes = {row.run.index_id: row.run.index for row in board.rows if row.run.index}.values()
    return {"indexes": indexes, "made_of": differ_in_making(benchmark, indexes), "built": list_builds(indexes)}


def _build_row(row: Row, board: Leaderboard, names: list[str], differ: list[str]) -> dict[str, Any]:
    best = board.best
    primary = row.values.get(board.primary)
    top = best.values[board.primary] if best else None
    return {
        "row": row,
        "run": row.run,
        "primary": primary,
        "share": 100 * primary / top if primary is not None and top and not row.unranked else 0,
        "judged": row.values.get(name_judged(board.primary)),
        "cells": [(row.values.get(name), row.values.get(name_judged(name))) for name in names],
        "ann": row.ann,
        "made_of": build_configuration(row.run),
        "chips": list_phrases(row.run.config, differ),
        "times": list_times(row.run.timing),
    }


def list_times(timing: dict[str, Any]) -> list[tuple[str, float]]:
    """Return the details of a run's time: percentiles if single searches were timed, else stages."""
    percentiles = timing.get("percentiles", {}).get("total_ms", {})
    stages = {name: timing.get(f"{name}_ms") for name in ("rewrite", "encode", "search", "fuse", "rerank")}
    return [(name, ms) for name, ms in (percentiles or stages).items() if ms]


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
        "stage": find_stage(operation),
    }


LATEST = 6


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the main job, on one model. The rows of `ready` count as done."""

    title: str
    sentence: str
    act: str
    ready: QuerySet[Any]
    noun: str

    def for_user(self, user: Any) -> dict[str, Any]:
        """Return the step for `user`: the count of rows and the links; links that are forbidden are ""."""
        meta = self.ready.model._meta
        name = f"{meta.app_label}_{meta.model_name}"
        count = visible(self.ready, user).count()
        may_view, may_add = (user.has_perm(f"{meta.app_label}.{verb}_{meta.model_name}") for verb in ("view", "add"))
        return {
            **attributes(self, "title", "sentence", "act", "noun"),
            "done": count > 0,
            "count": count,
            "list_url": reverse(f"admin:{name}_changelist") if may_view else "",
            "act_url": reverse(f"admin:{name}_add") if may_add else "",
        }


STEPS = (
    Step(
        "Add documents",
        "A collection holds the documents to search. Upload a corpus file, or import a folder with a command.",
        "Upload a collection",
        Collection.objects.filter(kind=Collection.Kind.DOCUMENTS),
        "collection",
    ),
    Step(
        "Make them searchable",
        "An index cuts documents into chunks and encodes them. Build one for each setup that you want to compare.",
        "Build an index",
        Index.objects.filter(status=Index.Status.READY),
        "ready index",
    ),
    Step(
        "Add judged queries",
        "A dataset holds queries and relevance judgments: a grade for each judged document.",
        "Upload a dataset",
        Dataset.objects.all(),
        "dataset",
    ),
    Step(
        "Map and resolve",
        "A mapping matches each judgment to a document of the collection, and lists judgments without a match.",
        "Map a dataset",
        Mapping.objects.exclude(status=Mapping.Status.PENDING),
        "resolved mapping",
    ),
    Step(
        "Benchmark",
        "Choose configurations, start the benchmark, and see which one is best.",
        "New benchmark",
        Benchmark.objects.filter(status=Status.COMPLETED),
        "finished benchmark",
    ),
)


def start_context(user: Any) -> dict[str, Any]:
    """Return the steps with the progress of `user`, the latest benchmarks with their best runs, active operations."""
    steps = [step.for_user(user) for step in STEPS]
    return {
        "steps": steps,
        "next_step": next((step for step in steps if not step["done"]), None),
        "benchmarks": _list_latest(user),
        "at_work": list(compute_each_progress(_list_active(user)).items()),
    }


def _list_latest(user: Any) -> list[tuple[Benchmark, Row | None, float | None]]:
    """Return the latest benchmarks, each with its best completed run and that run's primary value."""
    if not user.has_perm("benchmarks.view_benchmark"):
        return []
    benchmarks = Benchmark.objects.select_related("mapping__dataset", "mapping__collection")
    latest = list(visible(benchmarks, user).order_by("-created_at")[:LATEST])
    best = load_best_runs(latest)
    rows = [best.get(benchmark.pk) for benchmark in latest]
    return [
        (benchmark, row, row.values[name_primary(benchmark)] if row else None)
        for benchmark, row in zip(latest, rows, strict=True)
    ]


def _list_active(user: Any) -> list[Operation]:
    if not user.has_perm("operations.view_operation"):
        return []
    active = Operation.objects.filter(status__in=Status.active()).annotate(subject_name=of_subject("name"))
    return list(visible(active, user).order_by("created_at")[:LATEST])
