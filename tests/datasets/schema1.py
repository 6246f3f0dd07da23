"""Files of BenchBench JSON, schema 1.0."""

import json
from typing import Any

import pytest
from django.test import override_settings

from apps.datasets.formats.schema1 import parse_schema1
from apps.datasets.records import DatasetRecord
from benchbench.errors import BenchbenchError

LIMITED = override_settings(
    BENCHMARK_DATASET_MAX_UPLOAD_BYTES=10_000,
    BENCHMARK_DATASET_MAX_QUERIES=3,
    BENCHMARK_DATASET_MAX_JUDGMENTS_PER_QUERY=3,
)


@LIMITED
def parse(value: Any) -> DatasetRecord:
    return parse_schema1(value if isinstance(value, bytes) else json.dumps(value).encode())


def refusal(value: Any) -> BenchbenchError:
    with pytest.raises(BenchbenchError) as caught:
        parse(value)
    assert caught.value.status == 400
    assert caught.value.message.endswith(".")
    return caught.value


def query(**changes: Any) -> dict[str, Any]:
    """A file with one query of the key q1, changed."""
    return {"queries": [{"query_key": "q1", "query_text": "red fruit"} | changes]}


def judged(*items: Any) -> dict[str, Any]:
    return query(relevant_docs=list(items))


FULL = {
    "schema_version": "1.0",
    "metadata": {
        "name": "Fruit",
        "description": "Questions about fruit.",
        "version": "2.1",
        "slice_definitions": {"easy": "One fruit."},
        "judges": 2,
    },
    "queries": [
        {
            "query_key": "q1",
            "query_text": "red fruit",
            "metadata": {
                "slices": ["easy", "colour", "easy"],
                "category": "colour",
                "difficulty": "low",
                "query_type": "keyword",
                "split": "test",
                "filters": {"season": "autumn"},
                "expected_answer": "apple",
                "evidence": ["red"],
                "notes": "A warm-up.",
                "author": "mara",
            },
            "relevant_docs": [
                {"doc_ref": {"document_id": "apple", "uri": "shop:apple"}, "relevance_grade": 3},
                {"doc_ref": "shop:plum", "relevance_grade": "1"},
                "shop:cherry",
            ],
        },
        {
            "query_id": "q2",
            "query": "no fruit",
            "relevant_doc_refs": [{"doc_ref": {"path": "a/b"}, "relevance_grade": 0}],
        },
        {"query_key": "q3", "query_text": "what?"},
    ],
}
