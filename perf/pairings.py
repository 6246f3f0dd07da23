"""Paths of ours and the bare alternatives that `check.py` holds them against. Import it once the site is open."""
# mypy: no-strict-optional

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import bm25s
import numpy as np
import pytrec_eval
from bm25 import ENGLISH, build_tokenizer_options
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
from apps.execution.launching import launch
from apps.execution.running.execution import build_shared_lists
from apps.execution.running.pairs import PinnedRerankers
from apps.execution.running.rankings import build_final_lists
from apps.execution.running.stages import Stages
from apps.mappings.beir import import_beir
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.records.lists.final import FinalList, ListKey, SearchFacts, store_final_lists
from apps.records.models import Benchmark
from apps.records.planning import add_sources, plan_of
from apps.retrieval.indexing import build_index
from apps.retrieval.models import Index
from apps.retrieval.search.exact import find_nearest
from apps.retrieval.search.lexical import K1, B, Bm25
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.search.term_counts import write_bm25
from benchbench.ir.compression import Form
from benchbench.ir.measures import Measure, Truths, evaluate

logging.getLogger("bm25s").setLevel(logging.WARNING)
FAR = 10**9  # above the numbers of real sources
RNG = np.random.default_rng(5)
WORDS = [f"w{number:05}" for number in range(20_000)]
SHARES = 1 / np.arange(1, len(WORDS) + 1)

Act = Callable[[], object]


@dataclass(frozen=True)
class Pairing:
    """A path of ours and the bare alternative that it is held against."""

    name: str
    ours: Act
    other: Act


def make_pairings(folder: Path) -> list[Pairing]:
    paths = [*make_dense(), *make_words(folder), make_measures(), make_storing()]
    return [*paths, make_shared(folder / "small"), make_planning(folder / "small")]


def draw_texts(count: int, words: int) -> list[str]:
    picked = RNG.choice(len(WORDS), (count, words), p=SHARES / SHARES.sum())
    return [" ".join(WORDS[number] for number in row) for row in picked.tolist()]


def make_dense() -> tuple[Pairing, ...]:
    vectors, queries = (RNG.standard_normal((rows, 384), dtype=np.float32) for rows in (10_000, 100))
    for block in (vectors, queries):
        block /= np.linalg.norm(block, axis=1, keepdims=True)

    def bare() -> None:
        scores = queries @ vectors.T
        best = np.argpartition(-scores, 100, axis=1)[:, :100]
        np.take_along_axis(best, np.argsort(-np.take_along_axis(scores, best, 1), axis=1), 1)

    form, mask = Form.learn(vectors, "int8", 0), RNG.random(len(vectors)) < 0.1
    codes, admitted = np.concatenate(list(form.encode(vectors))), vectors[mask]
    return (
        Pairing("exact search / NumPy", lambda: find_nearest(vectors, queries, 100), bare),
        Pairing(
            "int8 search / exact search",
            lambda: [form.find_best(codes, form.prepare(query), 100, None) for query in queries],
            lambda: [find_nearest(vectors, query[None], 100) for query in queries],
        ),
        Pairing(
            "filtered search / admitted rows",
            lambda: [find_nearest(vectors, query[None], 100, mask=mask) for query in queries],
            lambda: [find_nearest(admitted, query[None], 100) for query in queries],
        ),
    )


def make_words(folder: Path) -> tuple[Pairing, Pairing]:
    texts = draw_texts(4_000, 60)
    queries = [" ".join(text.split()[:5]) for text in texts[:150]]
    options = build_tokenizer_options()

    def build() -> None:
        with (folder / "ours").open("wb") as out:
            write_bm25(iter(texts), out, ENGLISH)

    def build_alone() -> bm25s.BM25:
        engine = bm25s.BM25(method="lucene", k1=K1, b=B, dtype="float32")
        engine.index(bm25s.tokenize(texts, **options), show_progress=False)
        return engine

    build()
    index, engine = Bm25.from_archive(np.memmap(folder / "ours", np.uint8, "r").copy(), ENGLISH), build_alone()

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
            ListKey(source, query),
            SearchFacts(),
            RNG.integers(1, 10**6, 100),
            RNG.random(100),
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
    (folder / "qrels").mkdir(parents=True)
    rows = {"corpus": texts, "queries": [" ".join(text.split()[:4]) for text in texts[:200]]}
    for name, lines in rows.items():
        content = [json.dumps({"_id": f"{name[0]}{number}", "text": text}) for number, text in enumerate(lines)]
        (folder / f"{name}.jsonl").write_text("\n".join(content) + "\n")
    qrels = [f"q{number}\tc{number}\t1" for number in range(200)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *qrels]) + "\n")
    mapping = import_beir(folder, name="small").mapping
    wait(build_index(Index.objects.create(collection=mapping.collection, name="words", lexical=True)))
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
