"""Runs with stated values per query, for what compares them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from apps.datasets.models import Judgment, Query
from apps.mappings.models import Mapping
from apps.records.models import Benchmark, Evaluation
from benchbench.ir.measures import Values
from tests.created import run_benchmark
from tests.factories import judged, make_benchmark, make_collection, make_dataset, make_mapping
from tests.kept import made_once
from tests.library import make_library


def make_queries(number: int, *, name: str = "questions", **fields: Sequence[str]) -> Mapping:
    """Return a mapping of a dataset with `number` queries; `fields` gives each query a value: `category=[…]`."""
    dataset = make_dataset({}, name=name)
    queries = Query.objects.bulk_create(
        Query(
            dataset=dataset,
            key=f"q{index:04}",
            text="one more question",
            **{field: values[index] for field, values in fields.items()},
        )
        for index in range(number)
    )
    Judgment.objects.bulk_create(judged(query, {"document_id": "d1"}, 1) for query in queries)
    return make_mapping(dataset, make_collection(f"{name} library", [{"title": "On pears"}]), name=name)


def make_compared(mapping: Mapping, values: Any, *, configs: Sequence[Any] = (), **fields: Any) -> Benchmark:
    """Return a completed benchmark whose runs have these values of nDCG@10, (runs, queries), NaN for a failed query.

    Of every other measure they have half of that. `configs` changes the configurations.
    """
    array: Values = np.asarray(values, float)
    benchmark = make_benchmark(mapping, np.nanmean(array, axis=1).tolist(), **fields)
    for index, run in enumerate(benchmark.runs.order_by("run_order")):
        columns = [array[index] * (1 if name == "nDCG@10" else 0.5) for name in benchmark.measures]
        stored = [[None if np.isnan(one) else float(one) for one in column] for column in columns]
        Evaluation.objects.filter(run=run).update(values=stored)
        if configs:
            run.config |= configs[index]
            run.save()
    return benchmark


def noisy(means: Sequence[float], queries: int, *, spread: float = 0.1, seed: int = 1) -> Values:
    """Return values around these means that differ from run to run by `spread`, on queries as hard for all."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(0, 0.1, queries)
    values: Values = np.array([mean + hard + rng.normal(0, spread, queries) for mean in means])
    return values


@made_once
def make_finished() -> Benchmark:
    mapping = make_library(documents=20, queries=6)
    matrix = {"search_modes": ["dense", "sparse"], "k_values_for_metrics": [5, 10]}
    return run_benchmark(mapping, name="Which mode?", matrix=matrix)
