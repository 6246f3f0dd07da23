"""A benchmark that is the same each time, and a hash of its figures. Import it once the site is open."""

import hashlib
import tempfile
import time
from pathlib import Path

import numpy as np

from apps.collections.importing import create_collection, import_documents
from apps.collections.records import DocumentRecord
from apps.datasets.importing import import_dataset
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
from apps.execution.launching import launch
from apps.mappings.creating import create_mapping
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve_now
from apps.operations.models import Operation
from apps.records.models import Benchmark, Evaluation
from apps.retrieval.importing_vectors import import_vectors
from apps.retrieval.indexing import create_index

DOCUMENTS, QUERIES, DIMENSIONS = 2_000, 96, 64
FRUITS = ("apple", "pear", "plum", "cherry", "fig", "grape", "lemon", "melon", "olive", "peach")


def make_library() -> Mapping:
    """Return questions on documents of random words, with imported random vectors."""
    random = np.random.default_rng(7)
    names = [f"d{number:05}" for number in range(DOCUMENTS)]
    texts = {name: " ".join(random.choice(FRUITS, 20)) for name in names}
    collection = create_collection("library")
    import_documents(collection, [DocumentRecord(external_id=name, title=name, text=texts[name]) for name in names])
    judged = [JudgmentRecord(doc_ref={"document_id": name}, grade=1) for name in names[:20]]
    questions = {f"q{number:03}": f"{' '.join(random.choice(FRUITS, 2))} {number}" for number in range(QUERIES)}
    records = [QueryRecord(key=key, text=text, judgments=judged) for key, text in questions.items()]
    dataset = import_dataset(DatasetRecord(name="questions", queries=records)).version.dataset
    mapping = create_mapping(dataset, collection)
    collection.refresh_from_db()
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        np.savez(
            file.name,
            document_ids=np.array(names),
            document_vectors=random.standard_normal((DOCUMENTS, DIMENSIONS)).astype(np.float32),
            query_ids=np.array(list(questions)),
            query_vectors=random.standard_normal((QUERIES, DIMENSIONS)).astype(np.float32),
        )
        import_vectors(create_index(collection, name="imported"), Path(file.name), queries=questions)
    return resolve_now(mapping)


def run_benchmark(mapping: Mapping, name: str) -> Benchmark:
    matrix = {"search_modes": ["sparse", "dense"], "ann": ["exact", "faiss:exact", "faiss:hnsw"], "top_k_values": [50]}
    benchmark = create_benchmark(mapping, BenchmarkOptions(name=name, matrix=matrix))
    await_end(launch(benchmark))
    return Benchmark.objects.get(pk=benchmark.pk)


def await_end(operation: Operation) -> None:
    while operation.is_active:
        time.sleep(0.1)
        operation.refresh_from_db()
    assert operation.status == "completed", operation.error


def hash_figures(benchmark: Benchmark) -> str:
    """Return a hash of every ranking with its scores, and of every value."""
    rankings = [
        (run.label, row.query.key, row.document_ids, [score.hex() for score in row.scores], row.error)
        for run in benchmark.runs.order_by("run_order")
        for row in run.query_results.select_related("query").order_by("query__key")
    ]
    evaluations = Evaluation.objects.filter(run__benchmark=benchmark).order_by("run__run_order")
    values = [(sorted(row.means.items()), row.values) for row in evaluations]
    assert len(rankings) == QUERIES * benchmark.runs.count()
    return hashlib.sha256(repr((rankings, values)).encode()).hexdigest()[:16]
