"""Many runs that are cuts of few lists, on SciFact: time, bytes, the end of a benchmark, and two workers against one.

`eight` is a matrix of 8 runs with 8 distinct final lists of 100 chunks. `cuts` has 64 runs, which cut each of the same
lists at 8 depths. All query vectors are known. `stages` is the time of the distinct stages alone, as in matrix.py.
`end` is what is left when the last batch is done: means, hashes, provenance. Bytes are those of PostgreSQL's tables and
indexes of benchmarks. With `--queries N` the 1,109 judged queries are asked again under other keys until they are N;
last the first look at the leaderboard and at a comparison is taken. With `--workers` the 64 runs are done by one worker
process and by two, of one thread each.

Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names another place).
"""

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import matrix as matrices  # opens the throw-away site
import workers
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.urls import reverse

from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
from apps.execution.launching import launch
from apps.execution.running import finishing
from apps.mappings.beir import import_beir
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.operations.working import wait
from apps.records.models import Benchmark
from apps.retrieval.models import Index

EIGHT = {
    "search_modes": ["dense", "hybrid"],
    "rrf_k_values": [10, 20, 40, 60, 80, 100, 120],
    "candidates": [100],
    "top_k_values": [100],
}
CUTS = EIGHT | {"top_k_values": [20, 30, 40, 50, 60, 70, 80, 100]}
ROUNDS = 3


def all_judged(folder: Path, wanted: int) -> Mapping:
    """Import SciFact with the queries of both of its splits, asked again under other keys until they are `wanted`."""
    rows = [
        line.split("\t")
        for split in ("train", "test")
        for line in (matrices.DATA / "qrels" / f"{split}.tsv").read_text().splitlines()[1:]
    ]
    texts = {one["_id"]: one["text"] for one in map(json.loads, (matrices.DATA / "queries.jsonl").open())}
    judged: dict[str, list[list[str]]] = {}
    for query, *rest in rows:
        judged.setdefault(query, []).append(rest)
    copies = [(f"{key}-{copy}", key) for copy in range(wanted // len(judged) + 1) for key in judged][:wanted]
    source = folder / "scifact"
    (source / "qrels").mkdir(parents=True)
    (source / "corpus.jsonl").symlink_to(matrices.DATA / "corpus.jsonl")
    lines = [json.dumps({"_id": copy, "text": texts[key]}) for copy, key in copies]
    (source / "queries.jsonl").write_text("\n".join(lines) + "\n")
    qrels = ["\t".join([copy, *rest]) for copy, key in copies for rest in judged[key]]
    (source / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *qrels]) + "\n")
    mapping = import_beir(source, name="scifact", vectors=matrices.DATA / "minilm.npz").mapping
    Index.objects.update(encoder="all-MiniLM-L6-v2")
    return mapping


def bytes_of_benchmarks() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'benchmarks_%'"
        )
        return int(cursor.fetchone()[0])


def whole(mapping: Mapping, matrix: matrices.Matrix) -> tuple[float, float, float, int, Benchmark]:
    """Clock and CPU seconds of a whole benchmark, those of its end, and the bytes that it added."""
    ends: list[float] = []
    finish = finishing.finish

    def timed(operation: Operation) -> None:
        started = time.perf_counter()
        finish(operation)
        ends.append(time.perf_counter() - started)

    finishing.finish = timed
    benchmark = create_benchmark(mapping, BenchmarkOptions(name="lists", matrix=matrix))
    before, started = bytes_of_benchmarks(), (time.perf_counter(), time.process_time())
    wait(launch(benchmark))
    ended = time.perf_counter(), time.process_time()
    finishing.finish = finish
    return ended[0] - started[0], ended[1] - started[1], sum(ends), bytes_of_benchmarks() - before, benchmark


def by_workers(mapping: Mapping, number: int) -> dict[str, float]:
    """The facts of the 64 runs on the `number` of workers there are, each of which has opened the index before."""
    while workers.facts(cuts_done(mapping))["owners"] < number:
        pass
    return workers.facts(cuts_done(mapping))


def cuts_done(mapping: Mapping) -> Benchmark:
    return workers.done(create_benchmark(mapping, BenchmarkOptions(name="lists", matrix=CUTS)))


def compare_workers(mapping: Mapping, rounds: int) -> None:
    with workers.another_worker():
        pairs = []
        for _ in range(rounds):
            one = by_workers(mapping, 1)
            with workers.another_worker():
                pairs.append((one, by_workers(mapping, 2)))
    for name, label in (("seconds", "batches"), ("whole", "with the end")):
        first, second = (statistics.median(pair[place][name] for pair in pairs) for place in (0, 1))
        gain = statistics.median(pair[0][name] / pair[1][name] for pair in pairs)
        print(f"64 runs, {label}: one worker {first:.2f} s, two {second:.2f} s, {gain:.2f} x as fast")


def first_look(benchmark: Benchmark) -> None:
    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(get_user_model().objects.create_superuser("perf"))
    runs = list(benchmark.runs.order_by("run_order")[:2])
    pages = {
        "leaderboard": reverse("admin:benchmark_results", args=[benchmark.pk]),
        "comparison of two": f"{reverse('admin:run_compare')}?run={runs[0].pk}&run={runs[1].pk}",
    }
    for name, path in pages.items():
        started = time.perf_counter()
        assert client.get(path).status_code == 200, path
        print(f"first look at the {name}: {time.perf_counter() - started:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1109)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--workers", action="store_true")
    asked = parser.parse_args()
    if not matrices.DATA.is_dir():
        sys.exit(f"There is no {matrices.DATA}: put the test collections there.")
    with tempfile.TemporaryDirectory() as name:
        mapping = all_judged(Path(name), asked.queries)
        whole(mapping, EIGHT)  # warms up: encodes the queries, opens the index
        gc.freeze()  # a full collection takes .4 s, and would fall into the one time or the other
        rounds = []
        for _ in range(asked.rounds):
            eight, cuts = whole(mapping, EIGHT), whole(mapping, CUTS)
            rounds.append((eight, cuts, matrices.stages_alone(cuts[4], known=True)))
        for place, label in enumerate(("8 runs", "64 runs that are cuts of theirs")):
            columns = zip(*((eight, cuts)[place][:4] for eight, cuts, _ in rounds), strict=True)
            seconds, cpu, end, size = map(statistics.median, columns)
            print(f"{label}: {seconds:.2f} s (CPU {cpu:.2f}), of it the end {end:.2f} s; {size / 1e6:.1f} MB")
        times = statistics.median(cuts[0] / eight[0] for eight, cuts, _ in rounds)
        sizes = statistics.median(cuts[3] / eight[3] for eight, cuts, _ in rounds)
        alone = statistics.median(cuts[0] / stages for _, cuts, stages in rounds)
        share = statistics.median(cuts[2] / cuts[0] for _, cuts, _ in rounds)
        print(f"64 against 8: {times:.2f} x the time, {sizes:.2f} x the bytes; {alone:.2f} x their stages alone")
        print(f"the end: {share:.1%} of the whole; {asked.queries:,} queries, median of {asked.rounds} rounds")
        first_look(rounds[-1][1][4])
        if asked.workers:
            compare_workers(mapping, asked.rounds)


if __name__ == "__main__":
    main()
