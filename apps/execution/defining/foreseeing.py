"""The difference that queries will detect, from the spread of an earlier benchmark's differences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from uuid import UUID

import numpy as np
from django.contrib.auth.models import User

from apps.datasets.versions import choose_weighting, load_weights
from apps.mappings.models import Mapping
from apps.records.measuring.alternatives import keep_alternatives
from apps.records.models import Benchmark, Evaluation, Run
from apps.records.models.values import load_values
from benchbench.access import visible
from benchbench.ir.demand import compute_deviation, name_means
from benchbench.ir.planning.matrix import DEFAULT_PRIMARY_K
from benchbench.ir.statistics.skew import foresee_detectable

MEASURE = f"nDCG@{DEFAULT_PRIMARY_K}"
PRIOR_RUNS = 8  # most runs of an earlier benchmark whose differences are measured


@dataclass(frozen=True, slots=True)
class Prior:
    """The typical spread of the differences between two runs, and the benchmark that it comes from."""

    deviation: float
    benchmark: Benchmark
    means_name: str = ""  # "weighted by demand", or "" for plain means


@dataclass(frozen=True, slots=True)
class Foresight:
    """The difference in MEASURE that a benchmark could detect over all its pairs; None without a `prior`."""

    detectable: float | None
    prior: Prior | None
    queries: int


def find_prior(mapping: Mapping, user: User, *, weighting: str = "") -> Prior | None:
    """Return the median spread of the differences of MEASURE between runs of the newest benchmark with these queries.

    `weighting` is that of the new benchmark, by default that of the mapping's version. None if `user` sees no such
    benchmark with two completed alternatives.
    """
    if not weighting and mapping.dataset_version:
        weighting = choose_weighting(mapping.dataset_version)
    earlier = visible(Benchmark.objects.filter(mapping__dataset=mapping.dataset_id), user)
    values = Evaluation.objects.filter(measures__contains=[MEASURE], run__status=Run.Status.COMPLETED)
    newest_first = ("-run__benchmark__created_at", "-dataset_version__number", "run__run_order")
    several = keep_alternatives(values.filter(run__benchmark__in=earlier), "run__").order_by(*newest_first)
    recent = list(
        several.select_related("run__benchmark", "dataset_version").defer("values", "query_ids")[: 4 * PRIOR_RUNS]
    )
    by_benchmark: dict[tuple[UUID, UUID], list[Evaluation]] = {}
    for evaluation in recent:
        by_benchmark.setdefault((evaluation.run.benchmark_id, evaluation.dataset_version_id), []).append(evaluation)
    for evaluations in by_benchmark.values():
        spread = [*_yield_deviations(evaluations[:PRIOR_RUNS], weighting)] if len(evaluations) > 1 else []
        if spread:
            return Prior(median(spread), evaluations[0].run.benchmark, name_means(weighting))
    return None


def _yield_deviations(evaluations: Sequence[Evaluation], weighting: str) -> Iterator[float]:
    values = load_values(evaluations, [MEASURE])[:, 0]
    answered = ~np.isnan(values).any(axis=0)
    common = values[:, answered]
    version = evaluations[0].dataset_version
    weights = load_weights(weighting, version, np.array(evaluations[0].query_ids)[answered].tolist())
    for first in range(len(common)):
        for second in range(first):
            deviation = compute_deviation(common[first] - common[second], weights) if common.shape[1] > 1 else 0.0
            if deviation > 1e-12:
                yield deviation


def foresee(mapping: Mapping, runs: int, prior: Prior | None) -> Foresight:
    """Return the difference that the mapping's queries detect between any two of `runs` with a power of 80 %."""
    queries = mapping.dataset_version.query_count if mapping.dataset_version else 0
    pairs = runs * (runs - 1) // 2
    if prior is None or not queries or not pairs:
        return Foresight(None, prior, queries)
    return Foresight(foresee_detectable(prior.deviation, queries, pairs), prior, queries)
