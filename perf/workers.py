"""Two workers against one on a benchmark that reranks nearly all of its time: real worker processes, one thread each.

Measured from the start of the first batch to the end of the last, so that no start of a process counts; beside it, what
two processes against one make of the same pairs without us, which is the most that the machine has to give.
"""

import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import throwaway

throwaway.open_site()

from django.conf import settings
from django.db.models import Count, F, Max, Min, Sum

from apps.collections.importing import create_collection, import_documents
from apps.collections.records import DocumentRecord
from apps.datasets.importing import import_dataset
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
from apps.execution.launching import launch
from apps.mappings.creating import create_mapping
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve_now
from apps.operations.queueing import find_workers
from apps.operations.working import wait
from apps.records.models import Benchmark, PairList
from apps.retrieval.encoders.model_files import find_model
from apps.retrieval.indexing import build_index, create_index

QUERIES, WARM_UP, DEPTH, ROUNDS = 60, 8, 10, 5
BATCH_SECONDS = 0.5  # not 5: a benchmark of some seconds has to have as many batches as one of a minute
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
ENVIRONMENT = os.environ | ONE_THREAD
FRUITS = ("apple", "pear", "plum", "cherry", "fig", "grape", "lemon", "melon", "olive", "peach")
BARE = """
import sys, time
from sentence_transformers import CrossEncoder
model = CrossEncoder(sys.argv[1])
pairs = [("plum and fig", "apple plum fig olive peach grape melon cherry lemon pear " * 3)] * 10
model.predict(pairs, batch_size=1)
print("ready", flush=True)
sys.stdin.readline()
started = time.perf_counter()
for _ in range(20):
    model.predict(pairs, batch_size=1)
print(time.perf_counter() - started)
"""


def save_reranker(folder: Path) -> Path:
    """A cross-encoder of six layers of 384: all-MiniLM-L6-v2 with a head of random numbers. Its cost is real."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()  # it would report the head that the file does not have
    logging.disable_progress_bar()
    torch.manual_seed(0)
    source = str(find_model("all-MiniLM-L6-v2"))
    AutoModelForSequenceClassification.from_pretrained(source, num_labels=1).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return folder


def make_library() -> tuple[Mapping, Mapping]:
    """Queries of two words and documents of some more, embedded by counting them: the first stage costs nothing.

    The second mapping has some of the queries, to warm up.
    """
    draw = random.Random(5)
    texts = {f"d{number:03}": " ".join(draw.choices(FRUITS, k=30)) for number in range(200)}
    collection = create_collection("library")
    import_documents(collection, [DocumentRecord(external_id=key, title=key, text=text) for key, text in texts.items()])
    judged = [JudgmentRecord(doc_ref={"document_id": key}, grade=1) for key in list(texts)[:5]]
    queries = [
        QueryRecord(key=f"q{number:03}", text=" and ".join(draw.sample(FRUITS, k=2)), judgments=judged)
        for number in range(QUERIES)
    ]
    collection.refresh_from_db()
    wait(build_index(create_index(collection, name="counts", encoder="keyword:" + ",".join(FRUITS))))
    datasets = [
        import_dataset(DatasetRecord(name=name, queries=part)).version.dataset
        for name, part in (("questions", queries), ("warm-up", queries[:WARM_UP]))
    ]
    whole, some = (resolve_now(create_mapping(one, collection, name=one.name)) for one in datasets)
    return whole, some


@contextmanager
def another_worker() -> Iterator[None]:
    """One more real worker, `manage.py worker`, that has said that it lives."""
    before = find_workers("gpu")
    command = [sys.executable, "manage.py", "worker", "gpu"]
    process = subprocess.Popen(command, cwd=throwaway.ROOT, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    try:
        while find_workers("gpu") == before:
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def run(mapping: Mapping, reranker: Path) -> Benchmark:
    """Run a benchmark on the workers there are."""
    matrix = {
        "use_reranker": [True],
        "rerankers": [str(reranker)],
        "top_k_values": [DEPTH],
        "k_values_for_metrics": [10],
    }
    return done(create_benchmark(mapping, BenchmarkOptions(name="reranked", matrix=matrix)))


def done(benchmark: Benchmark) -> Benchmark:
    """Start a benchmark and wait until the workers have done it."""
    operation = launch(benchmark)
    while operation.is_active:
        time.sleep(0.25)
        operation.refresh_from_db()
    assert operation.status == "completed", operation.error
    benchmark.refresh_from_db()
    return benchmark


def facts(benchmark: Benchmark) -> dict[str, float]:
    """Seconds from the first batch's start to the last one's end, those within batches, and those of reranking."""
    assert benchmark.operation is not None
    times = benchmark.operation.batches.aggregate(
        first=Min("started_at"),
        last=Max("finished_at"),
        busy=Sum(F("finished_at") - F("started_at")),
        owners=Count("lease_owner", distinct=True),
        batches=Count("pk"),
    )
    reranking = PairList.objects.filter(benchmark=benchmark).aggregate(ms=Sum("duration_ms"))["ms"]
    return {
        "seconds": (times["last"] - times["first"]).total_seconds(),
        "whole": (benchmark.completed_at - times["first"]).total_seconds() if benchmark.completed_at else math.nan,
        "busy": times["busy"].total_seconds(),
        "reranking": (reranking or 0) / 1000,
        "owners": times["owners"],
        "batches": times["batches"],
    }


def measured(number: int, mappings: tuple[Mapping, Mapping], reranker: Path) -> dict[str, float]:
    """The facts of a benchmark on the `number` of workers there are, each of which has loaded everything before."""
    whole, some = mappings
    while facts(run(some, reranker))["owners"] < number:
        pass
    return facts(run(whole, reranker))


def bare(number: int, reranker: Path) -> float:
    """Seconds that so many processes at once take, on average, to score pairs in a loop."""
    command = [sys.executable, "-c", BARE, str(reranker)]
    processes = [
        subprocess.Popen(
            command,
            cwd=throwaway.ROOT,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(number)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return statistics.fmean(float(process.communicate()[0]) for process in processes)


def main() -> None:
    settings.BENCHBENCH_BATCH_SECONDS = BATCH_SECONDS
    with tempfile.TemporaryDirectory() as folder:
        reranker, mappings = save_reranker(Path(folder)), make_library()
        ceiling, rounds = 2 * bare(1, reranker) / bare(2, reranker), []
        with another_worker():
            for _ in range(ROUNDS):
                one = measured(1, mappings, reranker)
                with another_worker():
                    two = measured(2, mappings, reranker)
                rounds.append((one, two))
                print(f"one {one['seconds']:.2f} s, two {two['seconds']:.2f} s", flush=True)
    share = statistics.median(one["reranking"] / one["busy"] for one, _ in rounds)
    pair = statistics.median(one["reranking"] for one, _ in rounds) / (QUERIES * DEPTH)
    batches = {one["batches"] for both in rounds for one in both}
    print(f"{QUERIES} queries x {DEPTH} pairs in {batches} batches, median of {ROUNDS}")
    print(f"{1000 * pair:.1f} ms a pair, {share:.0%} of a worker's time")
    for both in zip(*rounds, strict=True):
        print(f"{both[0]['owners']:.0f} at work: {statistics.median(one['seconds'] for one in both):.2f} s")
    gains = [one["seconds"] / two["seconds"] for one, two in rounds]
    print(f"throughput of two: {statistics.median(gains):.2f} x (from {min(gains):.2f} to {max(gains):.2f})")
    print(f"of two bare processes against one: {ceiling:.2f} x")


if __name__ == "__main__":
    main()
