"""Benchmarks of a matrix that has several values on every axis."""

import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from apps.execution.defining.choosing import choose_indexes
from apps.execution.defining.creating import run_of
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.records.models import Benchmark, Run
from apps.retrieval.indexing import build_index, create_index
from benchbench.ir.planning.axes import AXES
from benchbench.ir.planning.configuration import LATE_INTERACTION, Configuration
from benchbench.ir.planning.matrix import Matrix
from tests.created import create_benchmark
from tests.tiny_models import save_cross_encoder, save_encoder

CROSS_ENCODER = "cross-encoder"
WIDE = {
    "k_values_for_metrics": [5],
    "indexes": ["keywords", "tiny"],
    "search_modes": ["dense", "sparse", "hybrid"],
    "use_reranker": [False, True],
    "rerankers": [LATE_INTERACTION, CROSS_ENCODER],
    "rerank_depths": [None, 5],
    "top_k_values": [10, 20],
    "candidates": [None, 40],
    "ann": [
        "exact",
        "hnsw(ef_search=60)",
        "hnsw(ef_search=60, iterative=strict, storage=halfvec)",
        "hnsw(ef_search=60, storage=binary)",
        "ivfflat(lists=4, probes=3)",
        "ivfflat(lists=4, probes=2, iterative=relaxed, storage=halfvec)",
    ],
    "lexical": ["bm25", "fts"],
    "fusion": ["rrf", "weighted"],
    "weights": [None, [0.7, 0.3]],
    "rrf_k_values": [20, 60],
    "score_thresholds": [None, 0.4],
}


@cache
def draw_wide(runs: int, seed: int) -> list[Configuration]:
    """Return configurations of WIDE, among them every value of every axis. To spell all out takes a second."""
    configurations = Matrix.parse(WIDE).list_configurations()
    chosen = random.Random(seed).sample(configurations, runs)
    for axis in AXES.values():
        remote = {getattr(run, axis.field) for run in chosen}
        assert remote == {getattr(run, axis.field) for run in configurations}, axis.field
    return chosen


def make_wide(mapping: Mapping, folder: Path, *, runs: int, seed: int = 1, **options: Any) -> Benchmark:
    """Return a benchmark of some configurations of a matrix that has several values on every axis.

    The whole has thousands; `runs` of them are drawn, the same each time, and it is made sure that each value is among
    them. The models, an encoder and a cross-encoder, are made in `folder`.
    """
    collection = mapping.collection
    if not collection.indexes.filter(name="tiny").exists():
        wait(build_index(create_index(collection, name="tiny", encoder=str(save_encoder(folder)))))
    cross_encoder = str(save_cross_encoder(folder / "cross"))
    chosen = [replace(r, reranker=cross_encoder) if r.reranker == CROSS_ENCODER else r for r in draw_wide(runs, seed)]
    benchmark = create_benchmark(mapping, name=f"wide {options}", matrix={"k_values_for_metrics": [5]}, **options)
    benchmark.runs.all().delete()
    indexes = choose_indexes(mapping, chosen, mapping.owner)
    created = [run_of(benchmark, order, one, indexes[one.index]) for order, one in enumerate(chosen, start=1)]
    Run.objects.bulk_create(created)
    Benchmark.objects.filter(pk=benchmark.pk).update(total_runs=runs)
    benchmark.refresh_from_db()
    return benchmark
