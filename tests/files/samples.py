"""A Flowbaby dataset and run whose aggregated measures are known, the writing of files, and ways to spoil them."""

import gzip
import json
import random
from collections.abc import Callable
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


Spoil = Callable[[bytes], bytes]


def _flipped(content: bytes, start: int, end: int, bits: int) -> bytes:
    spoilt = bytearray(content)
    for place in random.Random(1).sample(range(start * 8, end * 8), bits):
        spoilt[place // 8] ^= 1 << place % 8
    return bytes(spoilt)


def _reversed(content: bytes, row: int) -> bytes:
    count = len(content) // 2 // row
    rows = [content[number * row : (number + 1) * row] for number in range(count)]
    return b"".join(reversed(rows)) + content[count * row :]


def ways(*, row: int, header: slice) -> dict[str, Spoil]:
    """Return ways to spoil a file whose rows take `row` bytes and whose `header` may be anywhere in it."""

    def flip_header(content: bytes) -> bytes:
        start, end, _ = header.indices(len(content))
        return _flipped(content, start, end, 1)

    return {
        "second half zeroed": lambda content: content[: len(content) // 2].ljust(len(content), b"\0"),
        "rows in another order": lambda content: _reversed(content, row),
        "cut to half": lambda content: content[: len(content) // 2],
        "a byte short": lambda content: content[:-1],
        "a byte longer": lambda content: content + b"\0",
        "emptied": lambda content: b"",
        "all zeros": lambda content: bytes(len(content)),
        "a bit flipped": lambda content: _flipped(content, 0, len(content) // 2, 1),
        "bits flipped": lambda content: _flipped(content, 0, len(content), 20),
        "a bit of the header flipped": flip_header,
        "something else": lambda content: b"nonsense",
    }


def spoil(file: Path, way: Spoil) -> None:
    spoilt = way(file.read_bytes())
    assert spoilt != file.read_bytes()
    file.write_bytes(spoilt)
