"""Reading a Flowbaby dataset: metadata.json, topics.json and qrels.json in a directory."""

from pathlib import Path

from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
from benchbench.files.flowbaby import reading as flowbaby


def read_flowbaby(directory: Path, *, split: str = "") -> DatasetRecord:
    """Return all topics, or those of a split, in file order; an item is the document that has its id as external_id.

    The dataset_id is the name unless another is given, and stays in the metadata, by which results are compared.
    """
    dataset = flowbaby.read_dataset(directory)
    if split:
        dataset = dataset.of_split(split)
    about = dataset.metadata
    names = ("dataset_id", "canonicalization_version", "created", "updated", "notes")
    return DatasetRecord(
        name=about.dataset_id,
        queries=[_query(topic, dataset) for topic in dataset.topics],
        description=about.description,
        label=about.version,
        source_format="flowbaby",
        metadata={name: value for name in names if (value := getattr(about, name))},
        slice_definitions=dict(about.slice_definitions),
        duplicates=dataset.duplicates,
        warnings=dataset.warnings,
    )


def _query(topic: flowbaby.Topic, dataset: flowbaby.Dataset) -> QueryRecord:
    expected = topic.expected_positive_count
    return QueryRecord(
        key=topic.key,
        text=topic.text,
        judgments=[
            JudgmentRecord({"document_id": item}, grade) for item, grade in dataset.qrels.get(topic.key, {}).items()
        ],
        slices=topic.slices,
        split=topic.split,
        notes=topic.notes,
        metadata={} if expected is None else {"expected_positive_count": expected},
    )
