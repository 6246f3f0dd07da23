"""A small library, really imported, indexed and searched, by a keyword encoder whose rankings one can predict."""

import random
from typing import Any

import pytest

from apps.collections.importing import create_collection, import_documents
from apps.collections.records import DocumentRecord
from apps.datasets.importing import import_dataset
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
from apps.mappings.creating import create_mapping
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.working import wait
from apps.retrieval.indexing import build_index, create_index

FRUITS = ("apple", "pear", "plum", "cherry", "fig", "grape", "lemon", "melon", "olive", "peach")
ENCODER = "keyword:" + ",".join(FRUITS)


def make_library(*, documents: int = 30, queries: int = 12, seed: int = 7) -> Mapping:
    """Return a resolved mapping over an index named "keywords"; what is relevant shares words with the query."""
    draw = random.Random(seed)
    texts = {f"d{number:03}": draw.choices(FRUITS, k=6) for number in range(documents)}
    collection = create_collection("library")
    import_documents(
        collection, [DocumentRecord(external_id=key, title=key, text=" ".join(words)) for key, words in texts.items()]
    )
    records = []
    for number in range(queries):
        wanted = draw.sample(FRUITS, k=2)
        grades = {key: sum(words.count(fruit) for fruit in wanted) for key, words in texts.items()}
        judgments = [
            JudgmentRecord(doc_ref={"document_id": key}, grade=min(3, grade)) for key, grade in grades.items() if grade
        ]
        records.append(QueryRecord(key=f"q{number:03}", text=" ".join(wanted), judgments=judgments))
    dataset = import_dataset(DatasetRecord(name="questions", queries=records)).version.dataset
    collection.refresh_from_db()
    wait(build_index(create_index(collection, name="keywords", encoder=ENCODER)))
    mapping = create_mapping(dataset, collection, name="library")
    resolve(mapping)
    mapping.refresh_from_db()
    return mapping


@pytest.fixture(autouse=True)
def short_batches(settings: Any) -> None:
    """Let a dozen queries make several batches."""
    settings.BENCHBENCH_BATCH_SECONDS = 0.001


@pytest.fixture
def library(transactional_db: None) -> Mapping:
    return make_library()


def run_key(benchmark: Any) -> dict[str, Any]:
    """Return everything a benchmark found, by configuration and query: what two equal benchmarks must agree in."""
    return {
        (run.config_hash, result.query_id, result.repetition): (
            result.document_ids,
            result.chunk_ids,
            result.scores,
            result.error,
        )
        for run in benchmark.runs.all()
        for result in run.query_results.all()
    }
