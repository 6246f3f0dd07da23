"""Reading judgments from a table: CSV, JSON Lines or a list in JSON, a row for each judgment or each query."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from apps.datasets.formats.cells import Grades, parse_id, parse_text
from apps.datasets.records import (
    DOC_REF_KEYS,
    DatasetError,
    DatasetRecord,
    JudgmentRecord,
    QueryRecord,
    find_doc_ref_fault,
    name_source,
)
from benchbench.decimals import list_some
from benchbench.files.columns import (
    DOCUMENTS,
    FIELDS,
    OF_JUDGMENTS,
    REFERENCES,
    RELEVANT,
    assign_columns,
    find_field,
    fold_column,
    number_field,
)
from benchbench.files.ratings import build_text_key
from benchbench.files.tables import read_table
from benchbench.ir.demand import is_weight
from benchbench.reading.kinds import convert_number

OPTIONAL = ("category", "difficulty", "query_type", "split", "expected_answer", "notes", "weight")
NEEDED = tuple(field.name for field in OF_JUDGMENTS if field.is_needed)
MAX_LISTED = 5


@dataclass
class _Query:
    location: str
    texts: dict[str, str] = field(default_factory=dict)
    judgments: dict[str, JudgmentRecord] = field(default_factory=dict)


def read_table_of_judgments(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    ignore: Collection[str] = (),
    grade_factor: int = 1,
    is_lenient: bool = False,
    needed: Collection[str] = NEEDED,
) -> DatasetRecord:
    """Return what the rows of a table say, in the order of the queries' first rows.

    `columns` maps fields of FIELDS to columns; other fields are read from a column of their own name, or of a name for
    them (`benchbench.files.columns`). `doc_ref` is a uri, or an object as in BenchBench JSON. Any key of that object
    may have its own column, instead or in addition. Without a column for `query_key`, a query's text is its key. A row
    without reference and grade has a query alone, and a document without a grade is left out and counted. Without a
    column for grades, if every column is read, each document has grade 1; columns of `documents` have several a row.
    Grades may be words (`Grades`). A query's own fields may be given in only one of its rows, but must
    not differ between rows. A column without a field is an error unless it is in `ignore`, or the reader `is_lenient`:
    then a warning names it. Errors name file, line and column; a DatasetError has the `columns` too.

    A part of a dataset, whose other file holds the rest, needs fewer fields: `needed` of NEEDED.
    """
    names, rows = read_table(path)
    by_field = assign_columns(names, columns or {}, ignore)
    fields = {column: find_field(name) for name, column in by_field.items()}
    unknown = {name: "" for name in names if name not in fields and name not in ignore}
    record = DatasetRecord(name_source(path), [], source_format="table")
    record = replace(record, columns={name: fields.get(name, "") for name in names})
    try:
        are_relevant = fold_column(by_field.get(DOCUMENTS, "")).startswith(RELEVANT)
        has_more = len(fields) < len(names) and not are_relevant
        _require_columns(path, names, columns or {}, by_field, needed, has_more=has_more)
        if not is_lenient:
            _refuse_unknown(path.name, unknown)
        by_guess = _refuse_texts_of_documents(path, columns or {}, by_field, needed)
        grades = Grades(path, by_field.get("grade"), grade_factor)
        allowed = {*by_field.values(), *FIELDS, *ignore}
        by_field |= {name: name for name in FIELDS if name not in by_field and name not in names}
        queries: dict[str, _Query] = {}
        duplicates = 0
        for location, row in rows:
            extra = {} if row.keys() <= allowed else {name: "" for name in row if name not in allowed}
            unknown |= extra
            if not is_lenient or ("grade" in needed and not grades.column and not are_relevant):
                _refuse_unknown(location, extra)
            cells = {name: row[column] for name, column in by_field.items() if column in row}
            key = _find_key(location, cells, has_key="query_key" in record.columns.values())
            query = queries.setdefault(key, _Query(location))
            _describe(query, location, cells)
            duplicates += sum(_judge(query, location, *judged) for judged in grades.yield_judged(location, cells))
        if not queries:
            raise DatasetError(f"{path.name} has a header and no rows: add a row for each judgment.", field="queries")
        notes = [f"Columns that are not read: {list_some([name or 'one without a name' for name in unknown])}."]
        return replace(
            record,
            queries=[_record(key, query, "query_text" in needed) for key, query in queries.items()],
            duplicates=duplicates,
            warnings=[*(notes if unknown else []), *by_guess, *(grades.notes if "grade" in needed else [])],
        )
    except DatasetError as error:
        error.columns = record.columns
        raise


def read_columns(choices: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the options `columns` and `ignore` of pairs of field and column. Raises DatasetError for two columns."""
    columns: dict[str, str] = {}
    ignored: list[str] = []
    for name, column in choices:
        if name == DOCUMENTS:
            name = number_field(name, 1 + sum(find_field(field) == name for field in columns))
        if columns.get(name, column) != column:
            raise DatasetError(
                f"{name[:60]} is chosen for two columns, {columns[name][:60]!a} and {column[:60]!a}: choose one.",
                field="columns",
            )
        if name:
            columns[name] = column
        else:
            ignored.append(column)
    return {"columns": columns, "ignore": ignored}


def _find_key(location: str, cells: Mapping[str, object], *, has_key: bool) -> str:
    if (
        not has_key
        and "query_key" not in cells
        and (text := parse_text(location, "query_text", cells.get("query_text")))
    ):
        return build_text_key(text)
    key = parse_id(location, "query_key", cells.get("query_key"))
    if not key:
        name = "query_key" if has_key else "query_text"
        each = ". Write it in each row, also where a sheet has merged cells, and remove rows of totals"
        raise DatasetError(f"{location} has no {name}{each}.", field=name)
    return key


def _require_columns(
    path: Path,
    names: list[str],
    columns: Mapping[str, str],
    by_field: Mapping[str, str],
    needed: Collection[str],
    *,
    has_more: bool,
) -> None:
    """Raise DatasetError for an invalid mapping of columns, and for a needed field without a column.

    A column of a table that `has_more` columns than fields may be that of the grades.
    """
    for name, column in columns.items():
        if find_field(name) not in FIELDS:
            raise DatasetError(
                f"{name[:60]!a} is not a field of a table: choose one of {', '.join(FIELDS)}.", field="columns"
            )
        if column not in names:
            available = ", ".join(names)[:200]
            raise DatasetError(f"{path.name} has no column {column[:60]!a}: it has {available}.", field="columns")
    missing = [name for name in needed if name not in by_field]
    if "doc_ref" in missing and not by_field.keys().isdisjoint(REFERENCES):
        missing.remove("doc_ref")
    if missing == ["grade"] and not has_more:
        return
    labels = [f"{name} (nor one of {', '.join(DOC_REF_KEYS)})" if name == "doc_ref" else name for name in missing]
    if missing:
        by_command = " ".join(f"--column {name}=COLUMN" for name in missing)
        written = ""
        if names[:1] == ["column 1"]:
            first = next(read_table(path)[1], ("", {}))[1].values()
            written = f", as its first line, without names of columns, is {', '.join(map(str, first))[:200]!a}"
        raise DatasetError(
            f"{path.name} has no column {', no '.join(labels)}: it has {', '.join(names)[:200]}{written}. "
            f"Say which column holds {'it' if len(missing) == 1 else 'each'}, under Columns. If no column does, add "
            "it to the file.",
            field="columns",
            by_command=by_command,
        )


def _refuse_texts_of_documents(
    path: Path, columns: Mapping[str, str], by_field: Mapping[str, str], needed: Collection[str]
) -> list[str]:
    """Return a note if a column "text" is taken for that of the queries. Raises DatasetError without grades."""
    name = by_field.get("query_text", "")
    if "query_text" in columns or fold_column(name) != "text" or not {*NEEDED} <= {*needed}:
        return []
    if "grade" not in by_field:
        raise DatasetError(
            f"{path.name} seems to hold documents with their texts. If its column {name!a} holds queries, choose it "
            "under Columns.",
            field="columns",
            by_command=f"--column query_text={name}",
        )
    return [f"{path.name}: its column {name!a} is read as the texts of queries."]


def _refuse_unknown(location: str, unknown: Collection[str]) -> None:
    if unknown:
        some = ", ".join(f"{name[:60]!a}" for name in list(unknown)[:MAX_LISTED])
        raise DatasetError(
            f"{location.rstrip(',')} has a column that holds no field: {some}. Say under Columns what it "
            "holds (FIELD=COLUMN), or that it is not read (=COLUMN).",
            field="columns",
            by_command="--column FIELD=COLUMN or --ignore-column COLUMN",
        )


def _describe(query: _Query, location: str, cells: Mapping[str, object]) -> None:
    parsers = dict.fromkeys(("query_text", *OPTIONAL), parse_text) | {"weight": _parse_weight}
    texts = {name: parse_cell(location, name, cells.get(name)) for name, parse_cell in parsers.items()}
    for name, text in texts.items():
        before = query.texts.get(name, "")
        if text and before and text != before:
            remedy = " Leave the column out, under Columns."
            raise DatasetError(
                f"{location} has another {name} than {query.location.rstrip(',')}, for the same query."
                f"{remedy if name in OPTIONAL else ''}",
                field=name,
                by_command="--ignore-column COLUMN" if name in OPTIONAL else "",
            )
        if text:
            query.texts[name] = text


def _judge(query: _Query, location: str, doc_ref: Any, grade: int) -> int:
    """Add a judgment of a row; return 1 for an equal repetition, else 0."""
    problem, _ = find_doc_ref_fault(doc_ref)
    if problem:
        total = "" if doc_ref else ". If the row is a total or a remark, remove it"
        raise DatasetError(f"{location} doc_ref {problem}{total}.", field="doc_ref")
    judgment = JudgmentRecord(doc_ref, grade)
    before = query.judgments.setdefault(judgment.canonical_ref, judgment)
    if before.grade != judgment.grade:
        raise DatasetError(
            f"{location} gives the grade {judgment.grade}, but the document had {before.grade} before: keep one of the "
            "rows.",
            field="grade",
        )
    return int(before is not judgment)


def _parse_weight(location: str, name: str, value: Any) -> str:
    """Return a weight as the shortest text of its number; "" for none."""
    if value in (None, ""):
        return ""
    try:
        weight = convert_number(float, value) if isinstance(value, str) else value
    except ValueError:
        weight = value
    if not is_weight(weight):
        raise DatasetError(
            f"{location} has the {name} {json.dumps(value)[:40]}, which is not a positive number.", field=name
        )
    return str(float(weight))


def _record(key: str, query: _Query, needs_text: bool) -> QueryRecord:
    texts = dict(query.texts)
    text = texts.pop("query_text", "")
    if not text and needs_text:
        raise DatasetError(f"{query.location} has no query_text for the query {key[:60]!a}, nor has a later line.")
    weight = float(texts.pop("weight", 1))
    return QueryRecord(key, text, list(query.judgments.values()), weight=weight, **texts)  # type: ignore[arg-type]
