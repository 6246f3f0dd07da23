"""Writing the ground truth of the retrieval-strategy benchmark."""

from dataclasses import replace

from apps.datasets.readers.sectioned import GRADE
from apps.datasets.records import DatasetRecord, QueryRecord
from apps.datasets.writers.base import WriteError, by_document, kept
from benchbench.files.sectioned import Question, write_ground_truth
from benchbench.local_files.placing import Files

LABEL = "ground_truth.json"


def fit(record: DatasetRecord) -> DatasetRecord:
    """Questions with one document each, of grade 1, and its sections; every one of them, or WriteError."""
    return DatasetRecord(record.name, [_fit(query) for query in record.queries], source_format="sectioned")


def files(record: DatasetRecord) -> Files:
    return {"ground_truth.json": write_ground_truth(map(_question, record.queries))}


def _fit(query: QueryRecord) -> QueryRecord:
    if len(query.judgments) != 1:
        raise WriteError(
            f"The query {query.key[:60]!a} has {len(query.judgments)} judgments, and a question of {LABEL} has one "
            "document: choose another format.",
            field="format",
        )
    (judgment,) = by_document(query, grades=[GRADE], label=LABEL)
    sections = list(dict.fromkeys(query.judgments[0].section_refs or []))
    own = ("difficulty", "query_type", "expected_answer", "evidence")
    return kept(query, [replace(judgment, section_refs=sections)], *own)


def _question(query: QueryRecord) -> Question:
    (judgment,) = query.judgments
    return Question(
        id=query.key,
        question=query.text,
        answer=query.expected_answer,
        document_id=judgment.doc_ref["document_id"],
        section_ids=tuple(judgment.section_refs or ()),
        evidence=tuple(query.evidence),
        difficulty=query.difficulty,
        query_type=query.query_type,
    )
