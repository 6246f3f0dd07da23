"""Writing a Flowbaby dataset, as `benchbench.files.flowbaby.reading` reads them."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from benchbench.files.flowbaby.reading import Dataset, Topic
from benchbench.files.json_writing import array, text


def write_dataset(dataset: Dataset) -> dict[str, Iterator[str]]:
    """Return the files of a valid dataset by name, in pieces."""
    about = {name: value for name, value in asdict(dataset.metadata).items() if value}
    return {
        "metadata.json": iter([text(about, indent=2), "\n"]),
        "topics.json": _list(map(_topic, dataset.topics)),
        "qrels.json": _list(
            {"query_id": query, "canonical_item_id": item, "relevance": grade}
            for query, grades in dataset.qrels.items()
            for item, grade in grades.items()
        ),
    }


def _topic(topic: Topic) -> dict[str, Any]:
    fields: dict[str, Any] = {"query_id": topic.key, "query_text": topic.text, "slice_ids": topic.slices}
    if topic.expected_positive_count is not None:
        fields["expected_positive_count"] = topic.expected_positive_count
    return fields | {name: value for name in ("notes", "split") if (value := getattr(topic, name))}


def _list(items: Any) -> Iterator[str]:
    yield from array(items)
    yield "\n"
