"""Matrices of 16 runs on SciFact: shared execution against its distinct stages alone, and isolated against shared.

`shared` is a whole benchmark: cut into batches, searched, every ranking and stage list stored, measured, finished.
`stages` is the time that the plan's distinct stages take alone: encoding, dense and lexical lists, fusions, reranking,
and of each run the threshold, the cut and the collapse to documents; over all queries at once, models and indexes
loaded. Measuring and storing are no part of it: the ratio of the two tells what a benchmark costs beyond its search.

`rerun` is the encode-bound matrix once more, its query vectors known, with the CPU time of this process beside the
clock's: `beside` is what is no stage of it.

The encode-bound matrix has no reranker and encodes every query from nothing. The rerank-bound one reranks with a
cross-encoder so small that it finishes (random weights; its cost is real, its rankings mean nothing).

What isolated execution should cost is predicted from the plan: the sum over the runs of what their stages cost a
query, over the sum of the distinct ones, by the unit costs that this site measured in shared execution.

Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names another place). Dense search uses the
vectors that come with SciFact; it is the same model that encodes the queries here.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import throwaway

throwaway.open_site()

from django.db.models import F, FloatField, Func, Sum

from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
from apps.execution.launching import launch
from apps.execution.running.pairs import PinnedRerankers
from apps.execution.running.rankings import build_final_lists
from apps.execution.running.stages import Stages
from apps.mappings.beir import import_beir
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.records.models import Benchmark, PairList
from apps.records.planning import add_sources, build_shared_lists, estimate_costs, plan_of
from apps.retrieval.models import CachedVector, Index
from apps.retrieval.search.open_indexes import open_index
from tests.tiny_models import save_cross_encoder

DATA = Path(os.environ.get("BENCHBENCH_SHARED_DATA") or throwaway.ROOT.parent / "shared" / "data") / "scifact"
ROUNDS = {"encode-bound": 5, "rerun": 5, "rerank-bound": 3}
RERANKED_QUERIES = 100
ISOLATED_QUERIES = 40  # isolated execution encodes each once per run: all 300 would take minutes
Matrix = dict[str, Any]
ENCODE_BOUND: Matrix = {
    "search_modes": ["dense", "hybrid"],
    "top_k_values": [50, 100],
    "rrf_k_values": [20, 60, 100],
    "score_thresholds": [None, 0.5],
}


def rerank_bound(folder: Path) -> Matrix:
    return {
        "search_modes": ["dense", "hybrid"],
        "use_reranker": [False, True],
        "rerankers": [str(save_cross_encoder(folder / "tiny"))],
        "top_k_values": [50, 100],
        "score_thresholds": [None, 0.5],
    }


def scifact(folder: Path, queries: int | None) -> Mapping:
    """Import SciFact with its first `queries` judged queries."""
    source = DATA
    if queries is not None:
        source = folder / f"first-{queries}"
        (source / "qrels").mkdir(parents=True)
        (source / "corpus.jsonl").symlink_to(DATA / "corpus.jsonl")
        header, *judgments = (DATA / "qrels" / "test.tsv").read_text().splitlines()
        chosen = set(list(dict.fromkeys(line.split("\t")[0] for line in judgments))[:queries])
        kept = [line for line in judgments if line.split("\t")[0] in chosen]
        (source / "qrels" / "test.tsv").write_text("\n".join([header, *kept]) + "\n")
        lines = (DATA / "queries.jsonl").read_text().splitlines()
        (source / "queries.jsonl").write_text(
            "\n".join(one for one in lines if json.loads(one)["_id"] in chosen) + "\n"
        )
    mapping = import_beir(source, name=f"scifact {queries or ''}", vectors=DATA / "minilm.npz").mapping
    # The file names no model, and here queries are to be encoded; it is the one that made the vectors.
    Index.objects.update(encoder="all-MiniLM-L6-v2")
    return mapping


def forget_queries() -> None:
    CachedVector.objects.all().delete()


def stages_alone(benchmark: Benchmark, *, known: bool = False) -> float:
    """Seconds that the distinct stages take: see above. `known`: with the query vectors that are there."""
    if not known:
        forget_queries()
    add_sources(benchmark)
    runs = list(benchmark.runs.select_related("index", "benchmark"))
    queries = list(benchmark.dataset_version.queries.order_by("pk"))
    indexes = {run.config.get("index"): open_index(run.index) for run in runs if run.index}
    plan, query_ids = plan_of(runs), [query.pk for query in queries]
    lists = build_shared_lists(runs, plan)
    started = time.perf_counter()
    outcomes = Stages(queries, indexes, PinnedRerankers(benchmark), tolerant=False).run(plan)
    list(build_final_lists(lists, outcomes, query_ids, indexes, max_k=max(benchmark.k_values)))
    return time.perf_counter() - started


def whole(mapping: Mapping, matrix: Matrix, execution: str = "shared") -> float:
    """Seconds of a whole benchmark."""
    forget_queries()
    benchmark = create_benchmark(mapping, BenchmarkOptions(name=execution, matrix=matrix, execution=execution))
    started = time.perf_counter()
    wait(launch(benchmark))
    return time.perf_counter() - started


def rerun(mapping: Mapping) -> None:
    """Print what stands beside the stages where nothing has to be encoded, by the clock and in CPU time."""
    rows = []
    for number in range(ROUNDS["rerun"] + 1):  # the first warms up
        benchmark = create_benchmark(mapping, BenchmarkOptions(name="rerun", matrix=ENCODE_BOUND))
        started = time.perf_counter(), time.process_time()
        wait(launch(benchmark))
        ended = time.perf_counter(), time.process_time()
        stages = stages_alone(benchmark, known=True), time.process_time() - ended[1]
        if number:
            rows.append([ended[0] - started[0], ended[1] - started[1], *stages])
    beside = [(whole - alone, whole_cpu - alone_cpu) for whole, whole_cpu, alone, alone_cpu in rows]
    whole, whole_cpu, alone, alone_cpu = (statistics.median(column) for column in zip(*rows, strict=True))
    seconds, cpu = (statistics.median(column) for column in zip(*beside, strict=True))
    print(f"rerun, vectors known: {whole:.2f} s (CPU {whole_cpu:.2f}), its stages {alone:.2f} s (CPU {alone_cpu:.2f})")
    print(f"  beside them {seconds:.2f} s (CPU {cpu:.2f}); load {os.getloadavg()[0]:.1f}")


def predicted_gain(benchmark: Benchmark) -> float:
    """What the plan says isolated execution costs, over shared."""
    runs = list(benchmark.runs.select_related("index__chunk_set", "benchmark"))
    indexes = {run.config.get("index"): run.index for run in runs if run.index}
    alone = sum(
        sum(estimate_costs(plan_of([run]).select([str(run.pk)], truth=False), indexes).values()) for run in runs
    )
    return alone / sum(estimate_costs(plan_of(runs), indexes).values())


def compare(name: str, mapping: Mapping, matrix: Matrix) -> None:
    """Print shared execution beside its stages alone."""
    benchmark = create_benchmark(mapping, BenchmarkOptions(name="plan", matrix=matrix))
    for _ in range(2):  # warms up, and the second round is cut by measured costs
        whole(mapping, matrix)
    pairs = [(whole(mapping, matrix), stages_alone(benchmark)) for _ in range(ROUNDS[name])]
    shared, stages = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratios = sorted(one / other for one, other in pairs)
    print(f"{name}: {benchmark.total_runs} runs, {benchmark.dataset_version.query_count} queries, {len(pairs)} rounds")
    print(
        f"  shared {shared:.2f} s = {statistics.median(ratios):.2f} x its distinct stages alone ({stages:.2f} s); "
        f"from {ratios[0]:.2f} to {ratios[-1]:.2f}"
    )


def pair_ms() -> float:
    length = Func(F("positions"), function="cardinality", output_field=FloatField())
    sums = PairList.objects.aggregate(ms=Sum("duration_ms"), pairs=Sum(length))
    return sums["ms"] / sums["pairs"]


def isolate(mapping: Mapping, matrix: Matrix) -> None:
    """Print isolated execution beside shared, and beside what the plan predicts."""
    for _ in range(2):
        whole(mapping, matrix)
    predicted = predicted_gain(create_benchmark(mapping, BenchmarkOptions(name="plan", matrix=matrix)))
    shared = statistics.median(whole(mapping, matrix) for _ in range(3))
    isolated = whole(mapping, matrix, "isolated")
    print(f"isolated, {ISOLATED_QUERIES} queries, encode-bound: {isolated:.1f} s = {isolated / shared:.1f} x shared")
    print(f"  ({shared:.2f} s); the plan predicts {predicted:.1f} x, so {isolated / shared / predicted:.2f} of that")


def main() -> None:
    if not DATA.is_dir():
        sys.exit(f"There is no {DATA}: put the test collections there.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mapping = scifact(folder, None)
        compare("encode-bound", mapping, ENCODE_BOUND)
        rerun(mapping)
        isolate(scifact(folder, ISOLATED_QUERIES), ENCODE_BOUND)
        compare("rerank-bound", scifact(folder, RERANKED_QUERIES), rerank_bound(folder))
        print(f"  {pair_ms():.3f} ms a reranked pair")


if __name__ == "__main__":
    main()
