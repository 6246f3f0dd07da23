"""A large collection through the product: import, BM25, vectors, HNSW, 16 runs × 1,000 queries; and pages of many runs.

Each size (10,000 and 100,000 documents, with `--million` also 1,000,000) is imported from a BEIR folder with vectors:
texts of 100 words as in bm25.py, vectors in clusters; a query has five words of its only relevant document, and a
vector near the document's. The 16 runs are dense and hybrid, exact and by HNSW on halfvec with three
values of ef_search, returning 50 and 100 chunks; each approximate one has its exact counterpart. It prints seconds,
the highest peak of any process, bytes, and the exponents that fit the last two sizes.

With `--pages`, instead: 64 runs × 10,000 queries over 5,000 documents, and the first and second look at their pages and
exports.

python perf/scale.py [--million | --pages]
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import bm25
import throwaway

if "--pages" in sys.argv:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the web processes have it
# Room for the graph of a million halfvecs, since pgvector builds several times slower without.
os.environ.setdefault("BENCHBENCH_ANN_BUILD_BYTES", str(2 * 2**30))
throwaway.open_site()

import numpy as np
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.urls import reverse

from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
from apps.execution.launching import launch
from apps.mappings.beir import import_beir
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.records.models import Benchmark
from apps.results.exporting import list_exporters

SIZES = (10_000, 100_000, 1_000_000)
MATRIX = {
    "search_modes": ["dense", "hybrid"],
    "ann": ["exact", *(f"hnsw(ef_search={breadth}, storage=halfvec)" for breadth in (100, 200, 400))],
    "top_k_values": [50, 100],
}
MANY = {
    "search_modes": ["dense", "hybrid"],
    "rrf_k_values": [10, 20, 40, 60, 80, 100, 120],
    "candidates": [100],
    "top_k_values": [20, 30, 40, 50, 60, 70, 80, 100],
}
DIMENSION, INNER, PER_CLUSTER, SPREAD, NOISE, PART = 384, 32, 1_000, 0.7, 0.02, 50_000  # of synthetic vectors
Figures = dict[str, float]


def clustered(rows: int, seed: int, *, clusters: int) -> np.ndarray:
    """Unit vectors (rows, 384) around common centres, of INNER dimensions but for a little noise.

    As those of texts are: in vectors that are random in every dimension all are equally far, and no index finds the
    nearest.
    """
    fixed = np.random.default_rng(0)
    centres = fixed.standard_normal((clusters, INNER), dtype=np.float32)
    turn = np.linalg.qr(fixed.standard_normal((DIMENSION, INNER)))[0].T.astype(np.float32)
    rng = np.random.default_rng(seed)
    vectors = np.empty((rows, DIMENSION), np.float32)
    for start in range(0, rows, PART):
        part = vectors[start : start + PART]
        own = SPREAD * rng.standard_normal((len(part), INNER), dtype=np.float32)
        part[:] = (centres[rng.integers(clusters, size=len(part))] + own) @ turn
        part += NOISE * rng.standard_normal(part.shape, dtype=np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return vectors


def write_collection(documents: int, queries: int, folder: Path) -> None:
    """Write a BEIR folder and its vectors (`vectors.npz`)."""
    bm25.measured("write", documents, folder)
    rng = np.random.default_rng(5)
    relevant = rng.choice(documents, queries, replace=queries > documents)
    texts = {}
    with (folder / "texts").open() as lines, (folder / "corpus.jsonl").open("w") as corpus:
        wanted = set(relevant.tolist())
        for number, line in enumerate(lines):
            corpus.write(json.dumps({"_id": f"d{number}", "title": "", "text": line.strip()}) + "\n")
            if number in wanted:
                texts[number] = line.split()
    asked = [" ".join(rng.choice(texts[number], 5)) + f" {place}" for place, number in enumerate(relevant.tolist())]
    rows = [json.dumps({"_id": f"q{place}", "text": text}) for place, text in enumerate(asked)]
    (folder / "queries.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "qrels").mkdir()
    judged = [f"q{place}\td{number}\t1" for place, number in enumerate(relevant.tolist())]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]) + "\n")
    vectors = clustered(documents, 1, clusters=max(10, documents // PER_CLUSTER))
    near = vectors[relevant] + 0.03 * rng.standard_normal((queries, DIMENSION), dtype=np.float32)
    np.savez(
        folder / "vectors.npz",
        document_ids=np.array([f"d{number}" for number in range(documents)]),
        document_vectors=vectors,
        query_ids=np.array([f"q{place}" for place in range(queries)]),
        query_vectors=near / np.linalg.norm(near, axis=1, keepdims=True),
    )


def list_peaks() -> Iterator[tuple[str, float]]:
    """Yield the name and the peak, in MB, of this process and of those of PostgreSQL."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:
            continue
        name = lines["Name"].strip()
        if status.parent.name == str(os.getpid()) or name.startswith("postgres"):
            yield name, int(lines.get("VmHWM", "0 kB").split()[0]) / 1000


@contextmanager
def watch_peaks() -> Iterator[dict[str, float]]:
    """Collect the highest peak by the name of the process while the block runs."""
    peaks: dict[str, float] = {}
    ended = threading.Event()

    def watch() -> None:
        while True:
            for name, peak in list_peaks():
                peaks[name] = max(peaks.get(name, 0), peak)
            if ended.wait(0.5):
                return

    Path("/proc/self/clear_refs").write_text("5")  # a new peak
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()


def timed(act: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = act()
    return time.perf_counter() - started, result


def count_disk() -> Figures:
    with connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")
        cursor.execute("SELECT pg_database_size(current_database())")
        database = int(cursor.fetchone()[0])
    files = sum(file.stat().st_size for file in Path(settings.BENCHBENCH_VECTOR_DIR).rglob("*") if file.is_file())
    return {"database": database / 1e6, "files": files / 1e6}


def measure(documents: int, queries: int) -> Figures:
    """Import a collection of so many documents and do the 16 runs; return seconds, peaks and MB."""
    with tempfile.TemporaryDirectory(prefix="benchbench-perf-", dir=os.environ["BENCHBENCH_DATA_DIR"]) as name:
        folder = Path(name)
        write_collection(documents, queries, folder)
        before = count_disk()
        with watch_peaks() as importing:
            seconds, imported = timed(lambda: import_beir(folder, name=f"{documents}", vectors=folder / "vectors.npz"))
        figures = {"import": seconds}
    with watch_peaks() as running:
        matrix = {**MATRIX, "k_values_for_metrics": [10]}
        benchmark = create_benchmark(imported.mapping, BenchmarkOptions(name=f"{documents}", matrix=matrix))
        figures["benchmark"], _ = timed(lambda: wait(launch(benchmark)))
    figures["of it HNSW"] = find_build_seconds(benchmark)
    figures["whole"] = figures["import"] + figures["benchmark"]
    for label, peaks in (("importing", importing), ("running", running)):
        figures |= {f"peak {label}, {'site' if 'python' in name else name}": peak for name, peak in peaks.items()}
    figures |= {f"MB of {label}": size - before[label] for label, size in count_disk().items()}
    print_recalls(benchmark)
    return figures


def find_build_seconds(benchmark: Benchmark) -> float:
    facts = [run.lineage.approximation for run in benchmark.runs.all()]
    return max((one.build_seconds or 0.0 for one in facts if one), default=0.0)


def print_recalls(benchmark: Benchmark) -> None:
    for run in benchmark.runs.filter(config__search_mode="dense", config__top_k=100).order_by("run_order"):
        if facts := run.lineage.approximation:
            recalls = {share.k: round(share.mean or 0.0, 4) for share in facts.recall}
            cost = facts.ndcg.cost if facts.ndcg else None
            print(f"  {facts.setting}: recall {recalls}, loss in nDCG {cost or 0.0:.5f}", flush=True)


def print_table(by_size: dict[int, Figures]) -> None:
    sizes = list(by_size)
    print(f"{'':<34}" + "".join(f"{size:>12,}" for size in sizes) + f"{'exponent':>10}")
    for label in by_size[sizes[-1]]:
        values = [figures.get(label, math.nan) for figures in by_size.values()]
        growth = math.nan
        if len(sizes) > 1 and values[-2] > 0:
            growth = math.log(values[-1] / values[-2]) / math.log(sizes[-1] / sizes[-2])
        print(f"{label:<34}" + "".join(f"{value:>12,.1f}" for value in values) + f"{growth:>10.2f}", flush=True)


async def read_parts(answer: Any, started: float) -> tuple[float, int]:
    """Return the seconds to the first part of a streamed answer, and the bytes of all."""
    first, size = 0.0, 0
    async for part in answer.streaming_content:
        first = first or time.perf_counter() - started
        size += len(part)
    return first, size


def measure_pages(documents: int, queries: int) -> None:
    """Look twice at the pages of 64 runs, and export them."""
    with tempfile.TemporaryDirectory(prefix="benchbench-perf-") as name:
        folder = Path(name)
        write_collection(documents, queries, folder)
        mapping: Mapping = import_beir(folder, name="many", vectors=folder / "vectors.npz").mapping
    benchmark = create_benchmark(mapping, BenchmarkOptions(name="many", matrix=MANY))
    seconds, _ = timed(lambda: wait(launch(benchmark)))
    print(f"{benchmark.total_runs} runs × {queries:,} queries: {seconds:.1f} s")
    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(get_user_model().objects.create_superuser("perf"))
    runs = [str(run.pk) for run in benchmark.runs.order_by("run_order")]
    compare = reverse("admin:run_compare")
    pages = {
        "results": reverse("admin:benchmark_results", args=[benchmark.pk]),
        "runs": reverse("admin:benchmarks_run_changelist"),
        "run": reverse("admin:benchmarks_run_change", args=[runs[0]]),
        "comparison of 2": f"{compare}?" + "&".join(f"run={run}" for run in runs[:2]),
        "comparison of 8": f"{compare}?" + "&".join(f"run={run}" for run in runs[:64:8]),
        "benchmark in the API": f"/api/v2/benchmarks/{benchmark.pk}",
    }
    for name, path in pages.items():
        looks = []
        for _ in range(3):
            seconds, answer = timed(partial(client.get, path, follow=True))
            assert answer.status_code == 200, (path, answer.status_code)
            looks.append(seconds)
        print(f"{name:<24} first {looks[0]:.2f} s, then {statistics.median(looks[1:]):.2f} s", flush=True)
    for exporter in list_exporters(benchmark):
        path = reverse("admin:benchmark_export", args=[benchmark.pk, exporter.name])
        started = time.perf_counter()
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.status_code)
        first, size = async_to_sync(read_parts)(answer, started)
        print(f"export {exporter.name:<17} first byte {first:.2f} s, all {time.perf_counter() - started:.2f}, {size:,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--million", action="store_true", help="also 1,000,000 documents (12 minutes, 12 GB of disk)")
    parser.add_argument("--pages", action="store_true", help="instead the pages of 64 runs × 10,000 queries")
    parser.add_argument("--queries", type=int)
    parser.add_argument("--sizes", type=int, nargs="*")
    asked = parser.parse_args()
    if asked.pages:
        measure_pages(5_000, asked.queries or 10_000)
        return
    by_size = {}
    for size in asked.sizes or SIZES[: 3 if asked.million else 2]:
        print(f"{size:,} documents", flush=True)
        by_size[size] = measure(size, asked.queries or 1_000)
    print_table(by_size)


if __name__ == "__main__":
    main()
