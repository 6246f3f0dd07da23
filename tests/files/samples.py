"""A Flowbaby dataset and run whose aggregated measures are known, and writing of files."""

import gzip
import json
from pathlib import Path
from typing import Any

METADATA = {"dataset_id": "golden", "version": "1.0.0", "slice_definitions": {"a": "first", "b": "second"}}
TOPICS = [
    {"query_id": "q1", "query_text": "one?", "slice_ids": ["a", "b"], "split": "test", "expected_positive_count": 2},
    {"query_id": "q2", "query_text": "two?", "slice_ids": ["b"], "split": "test", "notes": None},
    {"query_id": "q3", "query_text": "three?", "slice_ids": [], "split": "train"},
]
QRELS = [
    {"query_id": "q1", "canonical_item_id": "doc1", "relevance": 1},
    {"query_id": "q1", "canonical_item_id": "doc2"},
    {"query_id": "q2", "canonical_item_id": "doc3", "relevance": 2},
    {"query_id": "q2", "canonical_item_id": "doc4", "relevance": 1},
    {"query_id": "q3", "canonical_item_id": "doc5", "relevance": 1},
]
RUN = {
    "run_id": "nightly",
    "entries": [
        {"query_id": "q1", "canonical_item_id": "doc1", "rank": 1, "score": 0.9},
        {"query_id": "q1", "canonical_item_id": "doc99", "rank": 2, "score": 0.8},
        {"query_id": "q1", "canonical_item_id": "doc2", "rank": 3, "score": 0.7},
        {"query_id": "q2", "canonical_item_id": "doc3", "rank": 1, "score": 0.95},
        {"query_id": "q2", "canonical_item_id": "doc4", "rank": 2, "score": 0.85},
        {"query_id": "q3", "canonical_item_id": "doc5", "rank": 1, "score": 0.99},
    ],
}


def write_file(path: Path, content: Any, *, packed: bool = False) -> Path:
    """Write bytes, text, or a value as JSON; compressed for a name in .gz, unless they are `packed` already."""
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" and not packed else data)
    return path


def write_dataset(directory: Path, **others: Any) -> Path:
    """Write the dataset, with other content for some of its files; None leaves one out."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in ({"metadata": METADATA, "topics": TOPICS, "qrels": QRELS} | others).items():
        if content is not None:
            write_file(directory / f"{name}.json", content)
    return directory
