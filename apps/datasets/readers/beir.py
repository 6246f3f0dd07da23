"""Reading queries and judgments of a BEIR directory: queries.jsonl and qrels/SPLIT.tsv, `.gz` too."""

import re
from collections.abc import Iterator
from pathlib import Path

from apps.datasets.records import DatasetError, DatasetRecord, JudgmentRecord, QueryRecord
from benchbench.fields import Fields
from benchbench.strict_json import read_lines, read_objects

HEADER = ["query-id", "corpus-id", "score"]
GRADE = re.compile(r"-?[0-9]{1,9}")


def read_beir(directory: Path, *, split: str = "test") -> DatasetRecord:
    """Return the queries that a split judges, in file order, with their judgments.

    A judgment refers to the document whose external_id is its corpus-id; a grade is any integer. Raises a sentence that
    names file and line, among others for a judgment of a query that queries.jsonl lacks and for a document judged
    twice with different grades.
    """
    grades, places, duplicates = _read_qrels(_find_qrels(directory, split))
    queries = [
        QueryRecord(
            key=key,
            text=text,
            split=split,
            metadata=metadata,
            judgments=[JudgmentRecord({"document_id": document}, grade) for document, grade in grades.pop(key).items()],
        )
        for key, text, metadata in _read_queries(_find(directory, "queries.jsonl"))
        if key in grades
    ]
    for key in grades:
        raise DatasetError(f"{places[key]} judges the query {key!a}, which queries.jsonl does not have.")
    return DatasetRecord(
        name=directory.resolve().name,
        queries=queries,
        source_format="beir",
        metadata={"split": split},
        duplicates=duplicates,
    )


def _read_qrels(path: Path) -> tuple[dict[str, dict[str, int]], dict[str, str], int]:
    """Return the grades of each query by document, the place of each query's first judgment, and duplicates."""
    grades: dict[str, dict[str, int]] = {}
    places: dict[str, str] = {}
    duplicates = 0
    for where, query, document, grade in _rows(path):
        places.setdefault(query, where)
        known = grades.setdefault(query, {})
        if document not in known:
            known[document] = grade
        elif known[document] == grade:
            duplicates += 1
        else:
            raise DatasetError(
                f"{where} gives document {document!a} the grade {grade} for query {query!a}, "
                f"but it had the grade {known[document]} before."
            )
    if not grades:
        raise DatasetError(f"{path.name} holds no judgment.")
    return grades, places, duplicates


def _rows(path: Path) -> Iterator[tuple[str, str, str, int]]:
    lines = read_lines(path)
    where, header = next(lines, (f"{path.name}, line 1,", ""))
    if header.split("\t") != HEADER:
        raise DatasetError(f"{where} must be the header {'<TAB>'.join(HEADER)}.")
    for where, line in lines:
        cells = line.split("\t")
        if len(cells) != len(HEADER) or not all(cell.strip() for cell in cells):
            raise DatasetError(f"{where} must have three cells between tabs: {', '.join(HEADER)}.")
        query, document, grade = cells
        if not GRADE.fullmatch(grade):
            raise DatasetError(f"{where} has the score {grade[:40]!a}, which is not an integer.")
        yield where, query, document, int(grade)


def _read_queries(path: Path) -> Iterator[tuple[str, str, dict[str, object]]]:
    seen = set()
    for where, line in read_objects(path):
        fields = Fields(line, ("_id", "text", "metadata"), prefix=f"{where} ")
        key = fields.identifier("_id")
        if key in seen:
            raise fields.error("_id", f"{key!a} is that of an earlier line")
        seen.add(key)
        yield key, fields.filled("text"), fields.mapping("metadata")


def _find(directory: Path, name: str) -> Path:
    for path in (directory / name, directory / f"{name}.gz"):
        if path.is_file():
            return path
    raise DatasetError(f"{directory} holds no {name} and no {name}.gz: is it a BEIR directory?")


def _find_qrels(directory: Path, split: str) -> Path:
    files = sorted((directory / "qrels").glob("*.tsv")) + sorted((directory / "qrels").glob("*.tsv.gz"))
    splits = {path.name.removesuffix(".gz").removesuffix(".tsv"): path for path in reversed(files)}
    if split in splits:
        return splits[split]
    there = f"the splits there are {', '.join(sorted(splits))}" if splits else "there is no qrels/SPLIT.tsv"
    raise DatasetError(f"{directory} has no split {split!a}: {there}.", field="split")
