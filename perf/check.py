"""Ratios of our times to those of a bare alternative, held against stored ones: exit status 1 where one has grown.

Each ratio is measured in one process, both sides in turn, in rounds after a warm-up. Times are CPU seconds of this
process and, on Linux, of its PostgreSQL session. The interval of the median is a bootstrap's (95 %).
A ratio is worse if the lower end of its interval is above the stored median by more than the stored noise. `--write`
measures in three passes and stores, for this kind of machine, the medians and as noise the furthest end of a pass.
`--self-test` slows our side of each path to 1.5 times its time and fails unless every one is then found worse.

python perf/check.py [--write | --self-test]
"""

import argparse
import gc
import json
import logging
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import throwaway

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # waiting threads would count as CPU seconds
throwaway.open_site()

import bm25s
import numpy as np
import pytrec_eval
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.benchmarks.defining.creating import BenchmarkOptions, create_benchmark
from apps.benchmarks.launching import launch
from apps.benchmarks.measuring.reading import FinalList
from apps.benchmarks.models import Benchmark
from apps.benchmarks.planning import add_sources, plan_of
from apps.benchmarks.running.execution import build_shared_lists
from apps.benchmarks.running.pairs import PinnedRerankers
from apps.benchmarks.running.rankings import build_final_lists, store_final_lists
from apps.benchmarks.running.stages import Stages
from apps.mappings.beir import import_beir
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.retrieval.indexing import build_index
from apps.retrieval.models import Index
from apps.retrieval.search.exact import find_nearest
from apps.retrieval.search.lexical import PARAMETERS, Bm25, build_tokenizer_options
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.search.term_counts import write_bm25
from benchbench.ir.measures import Measure, Truths, evaluate

logging.getLogger("bm25s").setLevel(logging.WARNING)
ROUNDS, PASSES, DRAWS = 9, 3, 2000
SLOWER = 1.5  # in the self-test
FAR = 10**9  # above the numbers of real sources
STORED = Path(__file__).with_name("ratios.json")
MACHINE = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version().rpartition('.')[0]}"
RNG = np.random.default_rng(5)
WORDS = [f"w{number:05}" for number in range(20_000)]
SHARES = 1 / np.arange(1, len(WORDS) + 1)

Act = Callable[[], object]


class Interval(NamedTuple):
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Pairing:
    """A path of ours and the bare alternative that it is held against."""

    name: str
    ours: Act
    other: Act


def draw_texts(count: int, words: int) -> list[str]:
    picked = RNG.choice(len(WORDS), (count, words), p=SHARES / SHARES.sum())
    return [" ".join(WORDS[number] for number in row) for row in picked.tolist()]


def make_dense() -> Pairing:
    vectors, queries = (RNG.standard_normal((rows, 384), dtype=np.float32) for rows in (10_000, 100))
    for block in (vectors, queries):
        block /= np.linalg.norm(block, axis=1, keepdims=True)

    def bare() -> None:
        scores = queries @ vectors.T
        best = np.argpartition(-scores, 100, axis=1)[:, :100]
        np.take_along_axis(best, np.argsort(-np.take_along_axis(scores, best, 1), axis=1), 1)

    return Pairing("exact search / NumPy", lambda: find_nearest(vectors, queries, 100), bare)


def make_words(folder: Path) -> tuple[Pairing, Pairing]:
    texts = draw_texts(4_000, 60)
    queries = [" ".join(text.split()[:5]) for text in texts[:150]]
    options = build_tokenizer_options()

    def build() -> None:
        with (folder / "ours").open("wb") as out:
            write_bm25(iter(texts), out)

    def build_alone() -> bm25s.BM25:
        engine = bm25s.BM25(method="lucene", k1=PARAMETERS["k1"], b=PARAMETERS["b"], dtype="float32")
        engine.index(bm25s.tokenize(texts, **options), show_progress=False)
        return engine

    build()
    index, engine = Bm25.from_archive(np.memmap(folder / "ours", np.uint8, "r").copy()), build_alone()

    def search_alone() -> None:
        tokens = bm25s.tokenize(queries, **(options | {"return_ids": False}))
        engine.retrieve(tokens, k=100, show_progress=False)

    return (
        Pairing("building BM25 / bm25s", build, build_alone),
        Pairing("searching BM25 / bm25s", lambda: index.search(queries, 100), search_alone),
    )


def make_measures() -> Pairing:
    rankings = [RNG.permutation(2_000)[:100] for _ in range(500)]
    truths = [{int(one): int(RNG.integers(0, 4)) for one in RNG.permutation(2_000)[:100]} for _ in range(500)]
    measures = [Measure.parse(name) for name in ("nDCG@10", "P@10", "R@20", "RR", "AP")]
    qrels = {str(query): {str(key): grade for key, grade in truth.items()} for query, truth in enumerate(truths)}
    run = {
        str(query): {str(key): 100.0 - rank for rank, key in enumerate(ranking.tolist())}
        for query, ranking in enumerate(rankings)
    }
    names = {"ndcg_cut.10", "P.10", "recall.20", "recip_rank", "map"}
    return Pairing(
        "measures / pytrec_eval",
        lambda: evaluate(measures, Truths.from_grades(truths).grade(rankings)),
        lambda: pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run),
    )


def make_storing() -> Pairing:
    """Binary COPY of final lists against a COPY of the same rows, made before, by psycopg alone."""
    lists = [
        FinalList(
            source,
            (),
            query,
            chunk_ids=RNG.integers(1, 10**6, 100),
            scores=RNG.random(100),
            document_ids=RNG.integers(1, 10**6, 100),
            lengths=(100,),
        )
        for source in range(FAR, FAR + 4)
        for query in range(1, 501)
    ]
    columns = "source_id, query_id, repetition, chunk_ids, scores, document_ids, lengths, error"

    def roll_back(act: Act) -> Act:
        def rolled_back() -> None:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL session_replication_role = replica")
                act()
                transaction.set_rollback(True)

        return rolled_back

    dumped: list[bytes] = []
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        store_final_lists(lists)
        with cursor.copy(
            f"COPY (SELECT {columns} FROM benchmarks_stagelist WHERE source_id >= {FAR}) TO STDOUT (FORMAT BINARY)"
        ) as copy:
            dumped.extend(map(bytes, copy))
        transaction.set_rollback(True)

    def bare() -> None:
        statement = f"COPY benchmarks_stagelist ({columns}) FROM STDIN (FORMAT BINARY)"
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            for block in dumped:
                copy.write(block)

    return Pairing("storing lists / bare COPY", roll_back(lambda: store_final_lists(lists)), roll_back(bare))


def make_benchmark(folder: Path, cuts: int) -> Benchmark:
    """Return a benchmark of `cuts` runs of BM25, over the one mapping that there is."""
    mapping = Benchmark.objects.first().mapping if Benchmark.objects.exists() else import_small(folder)
    matrix = {"search_modes": ["sparse"], "top_k_values": list(range(20, 20 + 5 * cuts, 5)), "candidates": [100]}
    return create_benchmark(mapping, BenchmarkOptions(name=f"{cuts} runs", matrix=matrix))


def import_small(folder: Path) -> Mapping:
    texts = draw_texts(2_000, 40)
    (folder / "qrels").mkdir()
    rows = {"corpus": texts, "queries": [" ".join(text.split()[:4]) for text in texts[:200]]}
    for name, lines in rows.items():
        content = [json.dumps({"_id": f"{name[0]}{number}", "text": text}) for number, text in enumerate(lines)]
        (folder / f"{name}.jsonl").write_text("\n".join(content) + "\n")
    qrels = [f"q{number}\tc{number}\t1" for number in range(200)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *qrels]) + "\n")
    mapping = import_beir(folder, name="small").mapping
    index = Index.objects.create(collection=mapping.collection, name="words", lexical=True)
    wait(build_index(index))
    return mapping


def make_shared(folder: Path) -> Pairing:
    """A whole shared run against its distinct stages alone."""
    first = make_benchmark(folder, 6)
    wait(launch(first))

    def whole() -> None:
        wait(launch(make_benchmark(folder, 6)))

    add_sources(first)
    runs = list(first.runs.select_related("index", "benchmark"))
    queries = list(first.dataset_version.queries.order_by("pk"))
    indexes = {run.config.get("index"): open_index(run.index) for run in runs if run.index}

    def stages() -> None:
        plan = plan_of(runs)
        outcomes = Stages(queries, indexes, PinnedRerankers(first), tolerant=False).run(plan)
        ids = [query.pk for query in queries]
        list(build_final_lists(build_shared_lists(runs, plan), outcomes, ids, indexes, max_k=max(first.k_values)))

    return Pairing("shared run / its stages", whole, stages)


def make_planning(folder: Path) -> Pairing:
    many, few = (list(make_benchmark(folder, cuts).runs.select_related("index")) for cuts in (16, 4))
    return Pairing(
        "planning 16 runs / 4 runs",
        lambda: [plan_of(many) for _ in range(10)],
        lambda: [plan_of(few) for _ in range(10)],
    )


def count_statements() -> int:
    """Return the statements of the second look at a leaderboard: the first fills caches of the process."""
    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(get_user_model().objects.get_or_create(username="perf", is_superuser=True, is_staff=True)[0])
    ended = Benchmark.objects.filter(status="completed").first()
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            assert client.get(reverse("admin:benchmark_results", args=[ended.pk])).status_code == 200
    return len(captured)


def read_cpu() -> float:
    """Return the CPU seconds of this process and of its session in PostgreSQL."""
    session = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat") if connection.connection else None
    nanoseconds = int(session.read_text().split()[0]) if session and session.exists() else 0
    return time.process_time() + nanoseconds / 1e9


def time_act(act: Act, slowness: float = 1.0) -> float:
    """Return the CPU seconds of an act, after which a slowed one works on for its share."""
    gc.collect()
    started = read_cpu()
    act()
    ends = started + (read_cpu() - started) * slowness
    while read_cpu() < ends:
        pass
    return read_cpu() - started


def measure(path: Pairing, slowness: float = 1.0) -> Interval:
    pairs = [(time_act(path.ours, slowness), time_act(path.other)) for _ in range(ROUNDS + 1)][1:]
    return bootstrap([ours / other for ours, other in pairs])


def bootstrap(ratios: list[float]) -> Interval:
    """Return the median of ratios with its 95 % interval."""
    drawn = np.random.default_rng(6).choice(ratios, (DRAWS, len(ratios)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975]).tolist()
    return Interval(low, statistics.median(ratios), high)


def is_worse(found: Interval, stored: dict[str, float]) -> bool:
    """Return whether the whole interval is above the stored median by more than the stored noise."""
    return found.low > stored["median"] + stored["noise"]


def summarise(passes: list[Interval]) -> dict[str, float]:
    """Return the median of several passes, and as noise how far the furthest end of a pass is from it."""
    median = statistics.median(each.median for each in passes)
    noise = max(max(median - each.low, each.high - median) for each in passes)
    return {"median": round(median, 4), "noise": round(noise, 4)}


def measure_all(paths: list[Pairing], slowness: float = 1.0) -> Iterator[tuple[str, Interval]]:
    for path in paths:
        yield path.name, measure(path, slowness)
    count = count_statements() * slowness
    yield "statements of a leaderboard", Interval(count, count, count)


def check(paths: list[Pairing], stored: dict[str, dict[str, float]], slowness: float) -> set[str]:
    """Print the table of all ratios and return the names of those that are worse."""
    worse = set()
    print(f"{'ratio':<30} {'stored':>8} {'noise':>7} {'now':>8}   95 % interval")
    for name, found in measure_all(paths, slowness):
        before = stored[name]
        bad = is_worse(found, before)
        worse |= {name} if bad else set()
        print(
            f"{name:<30} {before['median']:>8.3f} {before['noise']:>7.3f} {found.median:>8.3f}   "
            f"{found.low:.3f} to {found.high:.3f}{'  WORSE' if bad else ''}",
            flush=True,
        )
    return worse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    act = parser.add_mutually_exclusive_group()
    act.add_argument("--write", action="store_true")
    act.add_argument("--self-test", action="store_true")
    asked = parser.parse_args()
    every = json.loads(STORED.read_text()) if STORED.exists() else {}
    if MACHINE not in every and not asked.write:
        sys.exit(f"No ratios are stored for {MACHINE}: run perf/check.py --write on a commit that you trust.")
    with tempfile.TemporaryDirectory(prefix="benchbench-perf-") as name:
        folder = Path(name)
        (folder / "small").mkdir()
        paths = [make_dense(), *make_words(folder), make_measures(), make_storing()]
        paths += [make_shared(folder / "small"), make_planning(folder / "small")]
        if asked.write:
            passes = [dict(measure_all(paths)) for _ in range(PASSES)]
            every[MACHINE] = {ratio: summarise([each[ratio] for each in passes]) for ratio in passes[0]}
            STORED.write_text(json.dumps(every, indent=2, sort_keys=True) + "\n")
            print(json.dumps(every[MACHINE], indent=2))
            return
        worse = check(paths, every[MACHINE], SLOWER if asked.self_test else 1.0)
    missed = every[MACHINE].keys() - worse
    if asked.self_test:
        sys.exit(f"Not found worse: {', '.join(sorted(missed))}." if missed else 0)
    sys.exit(f"Worse than before: {', '.join(sorted(worse))}." if worse else 0)


if __name__ == "__main__":
    main()
