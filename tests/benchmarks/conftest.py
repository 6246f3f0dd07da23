"""A small library, really imported, indexed and searched, by a keyword encoder whose rankings one can predict."""

import math
import random
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import yaml

from apps.benchmarks.defining.choosing import choose_indexes
from apps.benchmarks.defining.creating import run_of
from apps.benchmarks.launching import choose_batch_size
from apps.benchmarks.models import Benchmark, Run
from apps.collections.importing import create_collection, import_documents
from apps.collections.records import DocumentRecord
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
from apps.engines.asking import healths
from apps.mappings.creating import create_mapping
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.working import wait
from apps.retrieval.encoders.registry import ENCODERS
from apps.retrieval.indexing import build_index, create_index
from benchbench.ir.planning.configuration import AXES, LATE_INTERACTION, Configuration
from benchbench.ir.planning.matrix import Matrix
from tests.benchmarks.imported import RUN, make_judged, write
from tests.benchmarks.laboratory import make_folder
from tests.benchmarks.shop_server import Shop
from tests.benchmarks.word_experiment import run_word_experiment
from tests.created import create_benchmark
from tests.kept import made_once
from tests.retrieval.words import BagOfWords
from tests.tiny_models import save_cross_encoder, save_encoder

FRUITS = ("apple", "pear", "plum", "cherry", "fig", "grape", "lemon", "melon", "olive", "peach")
ENCODER = "keyword:" + ",".join(FRUITS)
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


def import_all(documents: Sequence[DocumentRecord], queries: Sequence[QueryRecord], **index: Any) -> Mapping:
    """Import both, build an index of the documents with the options `index`, and return a resolved mapping."""
    collection = create_collection("library")
    import_documents(collection, documents)
    dataset = import_dataset(DatasetRecord(name="questions", queries=list(queries))).version.dataset
    collection.refresh_from_db()
    wait(build_index(create_index(collection, **index)))
    mapping = create_mapping(dataset, collection, name="library")
    resolve(mapping)
    mapping.refresh_from_db()
    return mapping


@made_once
def make_library(*, documents: int = 30, queries: int = 12, seed: int = 7, filtered: bool = False) -> Mapping:
    """Return a resolved mapping over an index named "keywords"; what is relevant shares words with the query.

    `filtered`: every second document is green and the rest are red, and every third query asks for green ones only.
    """
    draw = random.Random(seed)
    texts = {f"d{number:03}": draw.choices(FRUITS, k=6) for number in range(documents)}
    colours = cycle(({"colour": "green"}, {"colour": "red"})) if filtered else cycle(({},))
    pairs = zip(texts.items(), colours, strict=False)
    shelf = [DocumentRecord(key, key, " ".join(words), metadata=colour) for (key, words), colour in pairs]
    records = []
    for number in range(queries):
        wanted = draw.sample(FRUITS, k=2)
        grades = {key: sum(words.count(fruit) for fruit in wanted) for key, words in texts.items()}
        judgments = [
            JudgmentRecord({"document_id": key}, grade=min(3, grade)) for key, grade in grades.items() if grade
        ]
        filters = {"colour": "green"} if filtered and number % 3 == 0 else {}
        records.append(QueryRecord(f"q{number:03}", " ".join(wanted), judgments=judgments, filters=filters))
    return import_all(shelf, records, name="keywords", encoder=ENCODER)


@pytest.fixture(autouse=True)
def short_batches(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the few queries of a test make three batches, where a test does not set longer ones: more show no more."""
    settings.BENCHBENCH_BATCH_SECONDS = 0.001

    def of_three(queries: int, seconds: float) -> int:
        return max(choose_batch_size(queries, seconds), math.ceil(queries / 3))

    monkeypatch.setattr("apps.benchmarks.launching.choose_batch_size", of_three)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an experiment, without the file that compares."""
    make_folder(tmp_path)
    return tmp_path


@cache
def draw_wide(runs: int, seed: int) -> list[Configuration]:
    """Return configurations of WIDE, among them every value of every axis. To spell all out takes a second."""
    configurations = Matrix.parse(WIDE).list_configurations()
    chosen = random.Random(seed).sample(configurations, runs)
    for axis in AXES.values():
        there = {getattr(run, axis.field) for run in chosen}
        assert there == {getattr(run, axis.field) for run in configurations}, axis.field
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
    made = [run_of(benchmark, order, one, indexes[one.index]) for order, one in enumerate(chosen, start=1)]
    Run.objects.bulk_create(made)
    Benchmark.objects.filter(pk=benchmark.pk).update(total_runs=runs)
    benchmark.refresh_from_db()
    return benchmark


@pytest.fixture
def library(transactional_db: None) -> Mapping:
    return make_library()


@pytest.fixture
def dataset(db: None) -> Dataset:
    return make_judged()


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    """A file of rankings for that dataset."""
    return write(tmp_path / "bm25.run", RUN)


@pytest.fixture
def measured(transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    """An experiment of two strategies over words, run."""
    monkeypatch.setitem(ENCODERS, "bag:", BagOfWords)
    return run_word_experiment(tmp_path)


def run_key(benchmark: Any) -> dict[str, Any]:
    """Return everything a benchmark found, by configuration and query: what two equal benchmarks must agree in."""
    results = [(run.config_hash, result) for run in benchmark.runs.all() for result in run.query_results.all()]
    return {
        (key, one.query_id, one.repetition): (one.document_ids, one.chunk_ids, one.scores, one.error)
        for key, one in results
    }


@pytest.fixture
def shop(tmp_path, settings) -> Iterator[Shop]:
    server = Shop()
    declared = {
        "url": f"http://127.0.0.1:{server.server_port}/search",
        "version": "7",
        "query": {"q": "{query}", "size": "{size}", "newest": "{newest}"},
        "parameters": {"newest": {"default": False}},
        "private": True,
        "page_size": 100,
        "answer": {
            "hits": "hits",
            "id": "id",
            "score": "score",
            "title": "title",
            "snippet": "text",
            "complete_when": "done",
        },
    }
    path = tmp_path / "engines.yaml"
    path.write_text(yaml.safe_dump({"engines": {"shop": declared}}))
    settings.BENCHBENCH_ENGINES = str(path)
    healths.clear()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def shop_library(transactional_db, shop):
    library = make_library(documents=12, queries=3)
    shop.ranking = list(library.collection.documents.order_by("external_id").values_list("external_id", flat=True))
    return library
