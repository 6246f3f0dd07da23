"""What rankings add to the provisional means of their runs, before the runs are whole and evaluated."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from apps.benchmarks.models import Benchmark
from apps.benchmarks.rankings import RunResult
from apps.mappings.truth import Truth
from benchbench.ir.measures import Measure, Truths, evaluate

Parts = dict[str, dict[str, Any]]


def contributions(benchmark: Benchmark, truth: Truth, results: Iterable[RunResult]) -> Parts:
    """Return by run id what the first repetitions among `results` add: queries done, failed and counted, those cut
    short; per measure the sum of the values and how many there are, since a query that counts may have none
    (`FirstRelevant`)."""
    measures = [Measure.parse(name) for name in benchmark.measures]
    by_run: dict[str, list[RunResult]] = {}
    for result in results:
        if result.repetition == 1:
            by_run.setdefault(str(result.run_id), []).append(result)
    truths_of = lru_cache(lambda query_ids: Truths.of([truth.grades[one] for one in query_ids]))  # most runs have all
    return {run_id: _part(benchmark, truths_of, measures, mine) for run_id, mine in by_run.items()}


def _part(
    benchmark: Benchmark,
    truths_of: Callable[[tuple[int, ...]], Truths],
    measures: Sequence[Measure],
    mine: list[RunResult],
) -> dict[str, Any]:
    answered = [result for result in mine if not result.error]
    truths = truths_of(tuple(result.query_id for result in answered))
    graded = truths.grade([result.document_ids for result in answered])
    counted = graded.has_relevant if benchmark.empty_queries == "skip" else np.ones(len(answered), bool)
    values = evaluate(measures, graded)[:, counted]
    return {
        "completed": len(mine),
        "failed": len(mine) - len(answered),
        "counted": int(counted.sum()),
        "short": [result.query_id for result in mine if result.short],
        "sums": np.nansum(values, axis=1).tolist(),
        "valued": np.count_nonzero(~np.isnan(values), axis=1).tolist(),
    }


def added(parts: Parts, more: Parts) -> Parts:
    """Return what both add together."""
    return {run_id: _sum(parts.get(run_id), more.get(run_id)) for run_id in {**parts, **more}}


def _sum(one: dict[str, Any] | None, other: dict[str, Any] | None) -> dict[str, Any]:
    if one is None or other is None:
        return one or other or {}
    counts = {name: one[name] + other[name] for name in ("completed", "failed", "counted", "short")}
    per_measure = {name: [a + b for a, b in zip(one[name], other[name], strict=True)] for name in ("sums", "valued")}
    return {**counts, **per_measure}
