"""Flowbaby datasets, read and written: metadata.json, topics.json and qrels.json in a directory."""

from pathlib import Path

from apps.datasets.formats.writing import merge_judgments, trim_query
from apps.datasets.records import DatasetRecord, QueryRecord, build_judgments
from benchbench.files import flowbaby
from benchbench.ir import canonical
from benchbench.local_files.placing import Files

ABOUT = ("dataset_id", "canonicalization_version", "created", "updated", "notes")
POSITIVES = "expected_positive_count"


def read_flowbaby(directory: Path, *, split: str = "") -> DatasetRecord:
    """Return all topics, or those of a split, in file order; an item is the document that has its id as external_id.

    The dataset_id is the default name. It stays in the metadata, by which results are compared.
    """
    dataset = flowbaby.read_dataset(directory)
    if split:
        dataset = dataset.select_split(split)
    about = dataset.metadata
    return DatasetRecord(
        name=about.dataset_id,
        queries=[_query(topic, dataset) for topic in dataset.topics],
        description=about.description,
        label=about.version,
        source_format="flowbaby",
        metadata={name: value for name in ABOUT if (value := getattr(about, name))},
        slice_definitions=dict(about.slice_definitions),
        duplicates=dataset.duplicates,
        warnings=dataset.warnings,
    )


def _query(topic: flowbaby.Topic, dataset: flowbaby.Dataset) -> QueryRecord:
    expected = topic.expected_positive_count
    return QueryRecord(
        key=topic.key,
        text=topic.text,
        judgments=build_judgments(dataset.qrels.get(topic.key, {})),
        slices=topic.slices,
        split=topic.split,
        notes=topic.notes,
        metadata={} if expected is None else {POSITIVES: expected},
    )


def fit(record: DatasetRecord) -> DatasetRecord:
    """Return queries with slices, notes and Flowbaby's splits; an item is a document_id, its grade 0, 1 or 2.

    The version defaults to 1.0, the dataset_id to the dataset's name, and a query's slice to `default`.
    """
    about = {name: record.metadata.get(name, "") for name in ABOUT}
    about["canonicalization_version"] = about["canonicalization_version"] or canonical.CURRENT
    stated_id = about["dataset_id"]
    about["dataset_id"] = stated_id if isinstance(stated_id, str) and stated_id.strip() else record.name
    canonical.get_rules(str(about["canonicalization_version"]))
    return DatasetRecord(
        record.name,
        [_fit(query) for query in record.queries],
        description=record.description,
        label=record.label or "1.0",
        source_format="flowbaby",
        metadata={name: value for name, value in about.items() if isinstance(value, str) and value},
        slice_definitions=record.slice_definitions,
    )


def build_files(record: DatasetRecord) -> Files:
    about = record.metadata
    metadata = flowbaby.Metadata(
        version=record.label,
        description=record.description,
        slice_definitions=record.slice_definitions,
        **about,
    )
    qrels = {
        query.key: {judgment.doc_ref["document_id"]: judgment.grade for judgment in query.judgments}
        for query in record.queries
        if query.judgments
    }
    return flowbaby.write_dataset(flowbaby.Dataset(metadata, tuple(map(_build_topic, record.queries)), qrels))


def _fit(query: QueryRecord) -> QueryRecord:
    expected = query.metadata.get(POSITIVES)
    states = type(expected) is int and expected >= 0
    return trim_query(
        query,
        merge_judgments(query, grades=flowbaby.GRADES, label="Flowbaby"),
        "notes",
        slices=list(dict.fromkeys(query.slices)) or [flowbaby.DEFAULT_SLICE],
        split=query.split if query.split in flowbaby.SPLITS else "",
        metadata={POSITIVES: expected} if states else {},
    )


def _build_topic(query: QueryRecord) -> flowbaby.Topic:
    return flowbaby.Topic(
        key=query.key,
        text=query.text,
        slices=tuple(query.slices),
        notes=query.notes,
        expected_positive_count=query.metadata.get(POSITIVES),
        split=query.split,
    )
