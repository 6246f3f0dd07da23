"""A Flowbaby dataset and run whose aggregated measures are known, the writing of files, and ways to spoil them."""

import gzip
import json
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from xlsxwriter import Workbook

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


def write_dataset(directory: Path, **remaining: Any) -> Path:
    """Write the dataset, with other content for some of its files; None leaves one out."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in ({"metadata": METADATA, "topics": TOPICS, "qrels": QRELS} | remaining).items():
        if content is not None:
            write_file(directory / f"{name}.json", content)
    return directory


Spoil = Callable[[bytes], bytes]


def _flipped(content: bytes, start: int, end: int, bits: int) -> bytes:
    spoilt = bytearray(content)
    for position in random.Random(1).sample(range(start * 8, end * 8), bits):
        spoilt[position // 8] ^= 1 << position % 8
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


COMPACT_EXPERIMENT = """id: a
data: {documents_dir: d, ground_truth_path: 'g', max_queries: ~}
benchmark: {top_k_values: [1, 3]}
embeddings: [{model: m}]
backends:
- name: memory
strategies: [{name: raptor, chunk_size: 300, cluster_threshold: .5}]
llms: [{model: "l", temperature: 0}]
"""
FULL_EXPERIMENT = {
    "id": "full",
    "description": "Every key stated.",
    "data": {
        "documents_dir": "docs",
        "ground_truth_path": "truth/ground_truth.json",
        "max_documents": 20,
        "max_queries": 7,
    },
    "benchmark": {"runs_per_query": 2, "top_k_values": [10, 1], "random_seed": 7},
    "embeddings": [{"model": "one", "provider": "sbert"}, {"model": "two", "provider": "sbert"}],
    "llms": [
        {
            "model": "llama3",
            "provider": "ollama",
            "base_url": "http://localhost:11434",
            "temperature": 0.5,
            "max_tokens": 100,
        },
        {"model": "mistral", "provider": "ollama", "base_url": None, "temperature": 0, "max_tokens": 500},
    ],
    "backends": [{"name": "memory", "path": None}, {"name": "chromadb", "path": "stores/chroma"}],
    "strategies": [
        {
            "name": name,
            "chunk_size": 300,
            "chunk_overlap": 30,
            "doc_top_k": 3,
            "section_top_k": 6,
            "max_layers": 2,
            "cluster_threshold": 0.2,
        }
        for name in ("flat", "raptor", "lod_embed", "lod_llm")
    ],
}


FLOWBABY_SUMMARY = {
    "run_id": "one",
    "timestamp": "2026-03-01T12:00:00Z",
    "git_sha": "abc",
    "dataset_id": "topics",
    "dataset_version": "1.0",
    "canonicalization_version": "v1",
    "metrics": {"mrr": 0.5, "ndcg@5": 0.25},
    "query_count": 10,
    "duration_ms": 1500,
}


TREC_RUN = b"q1 Q0 d1 1 0.5 tag\nq1 Q0 d2 2 1e-3 tag\nq2 Q0 d1 1 -7 tag more\n\nq1 Q0 d3 3 inf tag\n"


CLASSIC_TOPICS = """
<top>
<num> Number: 301
<title> International Organized Crime
<desc> Description:
Identify organizations that
participate & profit where x < y.
<narr> Narrative:
Topic: crime.
</top>

<TOP>
<num> Number: 302 <title> Poliomyelitis and Post-Polio
"""
XML_TOPICS = """<?xml version="1.0"?>
<topics task="x"><topic number="1"><title>Caf&eacute; &amp; bar</title><narrative>Where.</narrative></topic>
<topic number="2"><query>coronavirus origin</query><question>where from</question></topic></topics>
"""


def write_excel(path: Path, sheets: Mapping[str, Sequence[Sequence[object]]]) -> Path:
    book = Workbook(str(path), {"default_date_format": "yyyy-mm-dd"})
    for name, rows in sheets.items():
        sheet = book.add_worksheet(name)
        for number, row in enumerate(rows):
            for column, value in enumerate(row):
                write = sheet.write_datetime if isinstance(value, date) else sheet.write
                write(number, column, value)
    book.close()
    return path
