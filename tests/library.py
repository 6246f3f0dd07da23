"""A small library, really imported, indexed and searched, by a keyword encoder whose rankings one can predict."""

import math
import random
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import pytest

from apps.collections.importing import create_collection, import_documents
from apps.collections.records import DocumentRecord
from apps.datasets.importing import import_dataset
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
from apps.execution.launching import choose_batch_size
from apps.mappings.creating import create_mapping
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.working import wait
from apps.retrieval.indexing import build_index, create_index
from tests.kept import made_once

FRUITS = ("apple", "pear", "plum", "cherry", "fig", "grape", "lemon", "melon", "olive", "peach")
ENCODER = "keyword:" + ",".join(FRUITS)


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
        expected = draw.sample(FRUITS, k=2)
        grades = {key: sum(words.count(fruit) for fruit in expected) for key, words in texts.items()}
        judgments = [
            JudgmentRecord({"document_id": key}, grade=min(3, grade)) for key, grade in grades.items() if grade
        ]
        filters = {"colour": "green"} if filtered and number % 3 == 0 else {}
        records.append(QueryRecord(f"q{number:03}", " ".join(expected), judgments=judgments, filters=filters))
    return import_all(shelf, records, name="keywords", encoder=ENCODER)


@pytest.fixture(autouse=True)
def short_batches(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the few queries of a test make three batches, where a test does not set longer ones: more show no more."""
    settings.BENCHBENCH_BATCH_SECONDS = 0.001

    def of_three(queries: int, seconds: float) -> int:
        return max(choose_batch_size(queries, seconds), math.ceil(queries / 3))

    monkeypatch.setattr("apps.execution.launching.choose_batch_size", of_three)
