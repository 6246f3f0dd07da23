"""The demo's objects, created by the ordinary use cases: a collection, judged questions, an index and a benchmark."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from apps.collections.importing import create_collection, import_documents
from apps.collections.models import Collection
from apps.collections.sources import read_corpus
from apps.datasets.formats.schema1 import read_schema1
from apps.datasets.importing import import_dataset
from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
from apps.mappings.creating import ensure_mapping
from apps.mappings.models import Mapping
from apps.records.models import Benchmark
from apps.retrieval.indexing import create_index, filter_equal_indexes
from apps.retrieval.models import Index

DATA = Path(__file__).parent / "data"
CORPUS = DATA / "python-docs.jsonl.gz"
QUESTIONS = DATA / "python-questions.json"
COLLECTION = "Python documentation"
DATASET = "Python questions"
INDEX = "MiniLM"
MATRIX: dict[str, Any] = {
    "search_modes": ["dense", "sparse", "hybrid"],
    "use_reranker": [False, True],
    "top_k_values": [100],
    "rrf_k_values": [20, 60],
}


def prepare_collection(owner: User | None) -> Collection:
    """Return the demo's collection, updated to the documents of the file."""
    collection = Collection.objects.filter(name=COLLECTION, owner=owner).first()
    collection = collection or create_collection(
        COLLECTION, owner=owner, description="Docstrings of the standard library and the language's topics."
    )
    import_documents(collection, read_corpus(CORPUS))
    collection.refresh_from_db()
    return collection


def prepare_mapping(collection: Collection, owner: User | None) -> Mapping:
    """Return the resolved mapping of the demo's questions onto the collection."""
    imported = import_dataset(replace(read_schema1(QUESTIONS), name=DATASET), owner=owner)
    return ensure_mapping(imported.version.dataset, collection, owner=owner)


def prepare_index(collection: Collection, owner: User | None) -> Index:
    """Return the index of documents, divided where the encoder stops reading, ready or still to be built."""
    made_of: dict[str, Any] = {"name": INDEX, "encoder": settings.BENCHBENCH_DEFAULT_MODEL}
    made_of["chunk_parameters"] = {"fit_encoder": True}
    # The index of an interrupted demo continues where it stopped.
    equal = filter_equal_indexes(collection, owner, **made_of).filter(owner=owner)
    return equal.first() or create_index(collection, **made_of, owner=owner)


def prepare_benchmark(mapping: Mapping, owner: User | None, *, engines: Sequence[str] = ()) -> Benchmark:
    """Return a new benchmark of the index in every mode, and of declared search `engines`."""
    matrix = {**MATRIX, "indexes": [INDEX]}
    if engines:
        matrix |= {"engines": list(engines), "search_modes": [*MATRIX["search_modes"], "engine", "engine+dense"]}
    options = BenchmarkOptions(
        name=f"Dense, lexical or both? {time.strftime('%Y-%m-%d %H:%M:%S')}",
        description="Which way of searching the Python documentation answers programmers' questions best?",
        matrix=matrix,
    )
    return create_benchmark(mapping, options, owner=owner)
