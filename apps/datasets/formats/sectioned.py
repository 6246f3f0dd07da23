"""Reading questions that name their documents: sectioned ground truth, and module queries (SPEC-001)."""

from collections.abc import Sequence
from pathlib import Path

from apps.collections.folders import FolderError
from apps.collections.sources import documents_in
from apps.datasets.records import DatasetError, DatasetRecord, JudgmentRecord, QueryRecord
from benchbench.decimals import some_of
from benchbench.files import module_queries
from benchbench.files.sectioned import Question, read_ground_truth

GRADE = 1
NAMES = ("ground_truth.json", "ground_truth.json.gz")


def read_sectioned(path: Path, *, directory: Path | None = None, most: int | None = None) -> DatasetRecord:
    """Return the questions of a ground_truth.json, or of the directory that holds it, in file order; the first `most`.

    Where there are documents in `directory`, or else in `documents/` beside the file, each question's document and
    sections are looked up in them: those that are lacking are dangling, counted and named in warnings.
    """
    file = path if path.is_file() else next((path / name for name in NAMES if (path / name).is_file()), None)
    if file is None:
        raise DatasetError(f"{path} holds no ground_truth.json.")
    questions = read_ground_truth(file)[:most]
    dangling, warnings = _dangling(questions, directory or file.parent / "documents", file)
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


def _dangling(questions: Sequence[Question], directory: Path, besides: Path) -> tuple[int | None, list[str]]:
    try:
        read = documents_in(directory, besides=besides).read()
    except FolderError:  # there are none
        return None, []
    documents = {document.external_id: {section.section_id for section in document.sections} for document in read}
    lost = [q for q in questions if q.document_id not in documents]
    parts = [
        (question, section)
        for question in questions
        for section in question.section_ids
        if question.document_id in documents and section not in documents[question.document_id]
    ]
    warnings = []
    if lost:
        named = some_of([f"{question.document_id!a} of {question.id!a}" for question in lost])
        warnings.append(f"Documents that documents/ does not have: {named}.")
    if parts:
        named = some_of([f"{section!a} of {question.document_id!a} ({question.id})" for question, section in parts])
        warnings.append(f"Sections that their document does not have: {named}.")
    return len(lost) + len(parts), warnings


def read_module_queries(path: Path) -> DatasetRecord:
    """Return the queries in file order; a module is the document that has its name as external_id.

    A query's `version` becomes its filter: the search looks only at documents whose metadata has that version, or
    one of those that are stated.
    """
    file = module_queries.read_module_queries(path)
    name = file.metadata.get("name")
    queries = [
        QueryRecord(
            key=str(query.id),
            text=query.query,
            judgments=[JudgmentRecord({"document_id": module}, GRADE) for module in query.expected_modules],
            category=query.category,
            difficulty=query.difficulty,
            filters={"version": query.version if isinstance(query.version, str) else list(query.version)},
            notes=query.notes,
        )
        for query in file.queries
    ]
    return DatasetRecord(
        name=name if isinstance(name, str) else path.name.removesuffix(".gz").removesuffix(".json"),
        queries=queries,
        source_format="module-queries",
        metadata=file.metadata,
        warnings=file.warnings,
    )
