"""Reading of sectioned ground truth: the strategy benchmark's questions about documents and their sections."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from apps.collections.folders import FolderError
from apps.collections.sources import open_directory
from apps.datasets.records import DatasetError, DatasetRecord, JudgmentRecord, QueryRecord
from benchbench.decimals import list_some
from benchbench.errors import FileFormatError
from benchbench.reading.objects import Filled, Identifier, Listed, StrictRecord, Strings, read_list
from benchbench.reading.strict_json import kind, read_value

GRADE = 1
NAMES = ("ground_truth.json", "ground_truth.json.gz")


@dataclass(frozen=True, slots=True)
class Question(StrictRecord):
    """A question, its answer, and the document and sections that hold it."""

    id: Identifier
    question: Filled
    answer: str
    document_id: Identifier
    section_ids: Strings
    evidence: Listed[object]
    difficulty: str = "unknown"
    query_type: str = "unknown"


def read_sectioned(path: Path, *, directory: Path | None = None, limit: int | None = None) -> DatasetRecord:
    """Return the first `limit` questions, in file order, of a ground_truth.json or the directory that holds it.

    If `directory`, by default `documents/` next to the file, has documents, each question's document and sections are
    looked up in them. Missing ones are dangling: they are counted and named in warnings.
    """
    file = path if path.is_file() else next((path / name for name in NAMES if (path / name).is_file()), None)
    if file is None:
        raise DatasetError(f"{path} holds no ground_truth.json.")
    questions = read_ground_truth(file)[:limit]
    dangling, warnings = _find_dangling(questions, directory or file.parent / "documents", file)
    return DatasetRecord(
        name=file.resolve().parent.name if path.is_dir() else file.name.removesuffix(".gz").removesuffix(".json"),
        queries=[_query(question) for question in questions],
        source_format="sectioned",
        dangling=dangling,
        warnings=warnings,
    )


def _query(question: Question) -> QueryRecord:
    judgment = JudgmentRecord({"document_id": question.document_id}, GRADE, section_refs=list(question.section_ids))
    return QueryRecord(
        key=question.id,
        text=question.question,
        judgments=[judgment],
        difficulty=question.difficulty,
        query_type=question.query_type,
        expected_answer=question.answer,
        evidence=question.evidence,
    )


def read_ground_truth(path: Path) -> Sequence[Question]:
    """Return the questions of a ground_truth.json in file order. Errors name file and key."""
    value = read_value(path)
    if not isinstance(value, list):
        raise FileFormatError(f"{path.name} must be a list of questions, not {kind(value)}.")
    questions = read_list(Question, value, prefix=path.name)
    repeated = [id for id, count in Counter(question.id for question in questions).items() if count > 1]
    if repeated or not questions:
        problem = f"has the id {repeated[0][:60]!a} more than once" if repeated else "holds no question"
        raise FileFormatError(f"{path.name} {problem}.", field="id")
    return questions


def _find_dangling(questions: Sequence[Question], directory: Path, ignored_file: Path) -> tuple[int | None, list[str]]:
    try:
        read = open_directory(directory, ignored_file=ignored_file).read()
    except FolderError:  # there are none
        return None, []
    documents = {document.external_id: {section.section_id for section in document.sections} for document in read}
    lost_documents = [q for q in questions if q.document_id not in documents]
    lost_sections = [
        (question, section)
        for question in questions
        for section in question.section_ids
        if question.document_id in documents and section not in documents[question.document_id]
    ]
    warnings = []
    if lost_documents:
        names = list_some([f"{question.document_id!a} of {question.id!a}" for question in lost_documents])
        warnings.append(f"Documents that documents/ does not have: {names}.")
    if lost_sections:
        names = list_some(
            [f"{section!a} of {question.document_id!a} ({question.id})" for question, section in lost_sections]
        )
        warnings.append(f"Sections that their document does not have: {names}.")
    return len(lost_documents) + len(lost_sections), warnings
