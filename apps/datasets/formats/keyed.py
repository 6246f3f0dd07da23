"""Reading JSON that names queries by key, as LlamaIndex and sentence-transformers keep them for an evaluation."""

from collections.abc import Iterator
from pathlib import Path

from apps.datasets.records import DatasetError, DatasetRecord, QueryRecord, build_judgments, name_source
from benchbench.decimals import list_some
from benchbench.files.ratings import build_text_key, parse_grade
from benchbench.reading.objects import format_value
from benchbench.reading.strict_json import kind, read_value

JUDGED = ("relevant_docs", "qrels")  # the documents of each query
RELEVANT = 1  # the grade of a document in a list


def read_keyed(path: Path) -> DatasetRecord:
    """Return the queries of an object: texts of `queries` by key, and their documents in `relevant_docs` or `qrels`.

    Or each key is the text of a query. Its documents are a list, each relevant with grade 1, or an object with grades.
    Errors name the key.
    """
    value = read_value(path)
    if not isinstance(value, dict):
        raise DatasetError(f"{path.name} is {kind(value)}: put it into an object with the documents of each query.")
    texts = value.get("queries") if isinstance(value.get("queries"), dict) else None
    name = next((name for name in JUDGED if name in value), "")
    if texts is not None and not name:
        raise DatasetError(f"{path.name} has queries, but neither relevant_docs nor qrels: add one.", field="queries")
    judged = value if texts is None else value[name]
    if not isinstance(judged, dict):
        raise DatasetError(f"{path.name}, {name} must be an object, not {kind(judged)}.", field=name)
    unknown = next((key for key in judged if texts is not None and key not in texts), None)
    if unknown is not None:
        raise DatasetError(f"{path.name}, {name} has the query {unknown[:60]!a}, which queries does not have.")
    queries = []
    for key, documents in judged.items():
        location = f"{path.name}, {name}[{key[:60]!a}]" if name else f"{path.name}, {key[:60]!a}"
        text = key if texts is None else texts[key]
        if not isinstance(text, str):
            raise DatasetError(f"{path.name}, queries[{key[:60]!a}] must be a text, not {kind(text)}.", field="queries")
        judgments = build_judgments(dict(_yield_grades(documents, location)))
        queries.append(QueryRecord(key if texts is not None else build_text_key(key), text, judgments))
    further = [] if texts is None else [key for key in value if key not in ("queries", name, "mode")]
    notes = [f"Not read: {list_some(further)}."] if further else []
    unjudged = [] if texts is None else [key for key in texts if key not in judged]
    if texts is None and not any(isinstance(documents, dict) for documents in judged.values()):
        notes.append(f"{path.name} has no grades: each document counts as relevant, with grade {RELEVANT}.")
    notes += [f"Queries without a judgment, left out: {len(unjudged):,}."] if unjudged else []
    return DatasetRecord(name_source(path), queries, source_format="keyed", warnings=notes)


def _yield_grades(documents: object, location: str) -> Iterator[tuple[str, int]]:
    """Yield each document with its grade."""
    if isinstance(documents, str):
        documents = [documents]
    if not isinstance(documents, list | dict):
        raise DatasetError(f"{location} must be a list of documents, or an object with grades, not {kind(documents)}.")
    grades = documents if isinstance(documents, dict) else dict.fromkeys(map(_parse_id, documents), RELEVANT)
    for document, written in grades.items():
        grade = parse_grade(written)
        if not document:
            raise DatasetError(f"{location} must hold ids of documents: texts, or whole numbers.")
        if grade is None:
            raise DatasetError(
                f"{location} has the grade {format_value(written)[:40]}, which is not an integer: write whole numbers."
            )
        yield document, grade


def _parse_id(document: object) -> str:
    if isinstance(document, int) and not isinstance(document, bool):
        return str(document)
    return document if isinstance(document, str) else ""
