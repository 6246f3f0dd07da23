"""Benchmarks with approximate arms, what they found, and a worker that does one batch."""

from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.operations.working import perform_batch
from apps.records.models import Benchmark, Run
from tests.created import create_benchmark, finish

NARROW = "hnsw(ef_search=2)"
WIDE = "hnsw(ef_search=1000)"


def benchmark_of(library: Mapping, **matrix: object) -> Benchmark:
    options = {key: matrix.pop(key) for key in ("execution", "runs_per_query") if key in matrix}
    return create_benchmark(library, name="b", matrix={"top_k_values": [20], **matrix}, **options)


def run_matrix(library: Mapping, **matrix: object) -> Benchmark:
    return finish(benchmark_of(library, **matrix))


def run_of(benchmark: Benchmark, ann: str, mode: str = "dense") -> Run:
    runs = [run for run in benchmark.runs.all() if run.config.get("ann", "exact") == ann]
    return next(run for run in runs if run.config["search_mode"] == mode)


def rankings_of(benchmark: Benchmark) -> dict[str, list[list[int]]]:
    """The documents that each run found for each query, by its ann."""
    runs = {run.config.get("ann", "exact"): run for run in benchmark.runs.all()}
    return {ann: [row.document_ids for row in run.query_results.order_by("query_id")] for ann, run in runs.items()}


def work_one(operation: Operation) -> None:
    perform_batch(operation.batches.filter(state="pending").order_by("ordinal").first().pk, owner="test")
