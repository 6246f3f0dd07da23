"""A matrix of 16 runs on SciFact: shared execution against its distinct stages alone, and isolated against shared.

Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names another place). Dense search uses the
vectors that come with SciFact; query vectors are encoded by the real model, from nothing in every round.
"""

import os
import statistics
import sys
import time
from pathlib import Path

import throwaway

throwaway.open_site()

from apps.benchmarks.creating import create_benchmark
from apps.benchmarks.launching import launch
from apps.benchmarks.models import Benchmark
from apps.benchmarks.planning import plan_of
from apps.benchmarks.stages import Stages
from apps.mappings.beir import import_beir
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.retrieval.models import CachedVector, Index
from apps.retrieval.searching import open_index

DATA = Path(os.environ.get("BENCHBENCH_SHARED_DATA") or throwaway.ROOT.parent / "shared" / "data") / "scifact"
ROUNDS = 1  # the isolated benchmark encodes every query once per dense run: minutes
MATRIX = {
    "search_modes": ["dense", "hybrid"],
    "top_k_values": [50, 100],
    "rrf_k_values": [20, 60, 100],
    "score_thresholds": [None, 0.5],
}


def forget_queries() -> None:
    CachedVector.objects.all().delete()


def stages_alone(benchmark: Benchmark) -> float:
    """Seconds that the distinct stages take, one after the other over all queries at once, without storing anything."""
    forget_queries()
    runs = list(benchmark.runs.select_related("index", "benchmark"))
    queries = list(benchmark.dataset_version.queries.order_by("pk"))
    indexes = {run.config.get("index"): open_index(run.index) for run in runs if run.index}
    started = time.perf_counter()
    Stages(queries, indexes, tolerant=False).run(plan_of(runs))
    return time.perf_counter() - started


def whole(mapping: Mapping, execution: str) -> float:
    """Seconds of a whole benchmark: search, measure, store."""
    forget_queries()
    benchmark = create_benchmark(mapping, name=execution, matrix=MATRIX, execution=execution)
    started = time.perf_counter()
    wait(launch(benchmark))
    return time.perf_counter() - started


def main() -> None:
    if not DATA.is_dir():
        sys.exit(f"There is no {DATA}: put the test collections there.")
    mapping = import_beir(DATA, name="scifact", vectors=DATA / "minilm.npz").mapping
    # The file names no model, and here queries are to be encoded; it is the one that made the vectors.
    Index.objects.update(encoder="all-MiniLM-L6-v2")
    benchmark = create_benchmark(mapping, name="plan", matrix=MATRIX)
    whole(mapping, "shared")  # warms up
    measured = [(whole(mapping, "shared"), stages_alone(benchmark), whole(mapping, "isolated")) for _ in range(ROUNDS)]
    shared, stages, isolated = (statistics.median(column) for column in zip(*measured, strict=True))
    ratio = statistics.median(one / other for one, other, _ in measured)
    gain = statistics.median(other / one for one, _, other in measured)
    print(f"{benchmark.total_runs} runs over {benchmark.dataset_version.query_count} queries, median of {ROUNDS}")
    print(f"shared {shared:.2f} s = {ratio:.2f} x its distinct stages alone ({stages:.2f} s)")
    print(f"isolated {isolated:.2f} s = {gain:.2f} x shared")


if __name__ == "__main__":
    main()
