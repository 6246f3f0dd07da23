"""Judged shares of the values of a run."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TypeVar, cast

import numpy as np
from django.core.cache import cache
from numpy.typing import NDArray

from apps.datasets.versions import load_weights
from apps.mappings.truth import hash_truth
from apps.records.lists.reading import load_rankings
from apps.records.measuring.alternatives import choose_alternatives
from apps.records.measuring.evaluating import load_truth
from apps.records.models import Evaluation
from apps.verdicts.configurations import build_labels
from apps.verdicts.ranked_runs import Leaderboard
from benchbench.errors import ConflictError
from benchbench.ir.coverage import cover, describe_uneven
from benchbench.ir.measures import EmptyQueries, Measure, Truths, Values, mean

T = TypeVar("T")
LOW = 0.5  # warn below: fewer than half of the documents that a value reads are judged
KEPT_SECONDS = 24 * 3600


class CoverageError(ConflictError):
    """The coverage of values is unknown."""

    code = "coverage"


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """A mean with its judged share and bounds, all means over the same queries; None if undefined."""

    name: str
    value: float | None
    judged: float | None
    condensed: float | None
    lower_bound: float | None
    upper_bound: float | None


def name_judged(name: str) -> str:
    """Return the measure of the judged share of what `name` reads: `Judged@10` for `nDCG@10`."""
    return str(Measure("Judged", Measure.parse(name).cutoff))


def is_coverage(name: str) -> bool:
    """Return whether a measure describes the coverage of others, not the ranking."""
    return Measure.parse(name).name == "Judged"


def describe_coverage(board: Leaderboard) -> tuple[str, str]:
    """Return a warning that the runs are judged unevenly, and one that few of their results are judged; each or ""."""
    name = name_judged(board.primary)
    alternatives, _ = choose_alternatives(row.run for row in board.rows if not row.provisional)
    labels = zip(board.rows, build_labels(board.runs), strict=True)
    judged = {label: row.values.get(name) for row, label in labels if row.run in alternatives}
    lowest = min((share for share in judged.values() if share is not None), default=1.0)
    few = (
        f"Few of the returned documents are judged, {100 * lowest:.0f} % for the least judged run; the others count as "
        "not relevant. A run’s page shows how far its values could move."
    )
    return describe_uneven(judged, board.means_name), few.replace("%", " %") if lowest < LOW else ""


def load_coverage(evaluation: Evaluation) -> list[CoverageRow]:
    """Return the coverage of every measure of an evaluation, computed from the stored rankings and cached.

    Raises CoverageError if the mapping was resolved again since the evaluation.
    """
    return get_cached("coverage", evaluation, partial(_compute_coverage, evaluation))


def get_cached(name: str, evaluation: Evaluation, compute: Callable[[], T]) -> T:
    """Return the result of `compute` for an evaluation, from the cache if possible; `name` says of what.

    The key includes the state of the evaluation, because measuring again may replace it under the same id.
    """
    counts = evaluation.query_count, evaluation.failed_queries, evaluation.unsearched_queries
    state = sha256(json.dumps([evaluation.means, *counts], sort_keys=True).encode()).hexdigest()
    key = f"{name}:{evaluation.pk}:{evaluation.truth_hash}:{state}"
    return cast(T, cache.get_or_set(key, compute, KEPT_SECONDS))


def _compute_coverage(evaluation: Evaluation) -> list[CoverageRow]:
    benchmark = evaluation.run.benchmark
    ground_truth = load_truth(benchmark, evaluation.dataset_version)
    if hash_truth(ground_truth) != evaluation.truth_hash:
        raise CoverageError(
            "The mapping was resolved again after these values were measured, so their bounds are "
            "unknown: re-score the benchmark."
        )
    names = [name for name in evaluation.measures if not is_coverage(name)]
    rankings = load_rankings(evaluation.run)
    truths = Truths.from_grades([ground_truth.grades[query_id] for query_id in evaluation.query_ids])
    graded = truths.grade([rankings.get(query_id, []) for query_id in evaluation.query_ids])
    covered = cover([Measure.parse(name) for name in names], graded)
    failed = np.array([query_id not in rankings for query_id in evaluation.query_ids], bool)
    empty = cast(EmptyQueries, evaluation.policies["empty_queries"])

    weights = load_weights(evaluation.weighting, evaluation.dataset_version, evaluation.query_ids)

    def compute_means(values: Values) -> list[float]:
        means = mean(values, has_relevant=graded.has_relevant, failed=failed, empty=empty, weights=weights)
        return list(map(float, means.values))

    judged, condensed = compute_means(covered.judged), compute_means(covered.condensed)
    valued = np.array([evaluation.get_column(name) for name in names])
    lower, upper = (
        _average_bounds(bound, valued, failed, compute_means(bound))
        for bound in (covered.lower_bound, covered.upper_bound)
    )
    return [
        CoverageRow(name, evaluation.means[name], *map(_replace_nan, numbers))
        for name, *numbers in zip(names, judged, condensed, lower, upper, strict=True)
    ]


def _average_bounds(bounds: Values, values: Values, failed: NDArray[np.bool_], means: Sequence[float]) -> list[float]:
    """Return the means of bounds; NaN if an answered query lacks a bound or value: the queries would differ."""
    incomplete = [bool(np.isnan(both[:, ~failed]).any()) for both in np.stack([bounds, values], axis=1)]
    return [float("nan") if is_incomplete else mean for is_incomplete, mean in zip(incomplete, means, strict=True)]


def _replace_nan(number: float) -> float | None:
    return None if np.isnan(number) else number
