"""Datasets in two files: queries in one and judgments in the other, each of any kind that holds them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from apps.datasets.formats.keyed import read_keyed
from apps.datasets.formats.quepid import read_ratings
from apps.datasets.formats.table import read_table_of_judgments
from apps.datasets.records import DatasetError, DatasetRecord, JudgmentRecord, QueryRecord, build_judgments
from benchbench.decimals import list_some
from benchbench.errors import BenchbenchError
from benchbench.files import beir
from benchbench.files.columns import REFERENCES, assign_columns
from benchbench.files.sniffing import Kind, SwappedError, holds_documents, sniff
from benchbench.files.tables import read_table
from benchbench.files.trec import decode_ids, read_qrels, read_topics

DOCUMENTS = "holds documents, not judged queries"
PAGES = (".md", ".markdown", ".html", ".htm", ".rst")
TOGETHER = (
    "choose both files at once on the page, name both in the command, or send both in the request, or a zip of them"
)


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgments of queries by key, with the place of each query's first."""

    judgments: Mapping[str, list[JudgmentRecord]]
    places: Mapping[str, str]
    duplicates: int = 0
    notes: tuple[str, ...] = ()


def _read_lines(path: Path, **_: Any) -> Iterator[QueryRecord]:
    for query in beir.read_queries(path):
        yield QueryRecord(query.key, query.text, metadata=query.metadata)


def _read_topics(path: Path, **_: Any) -> Iterator[QueryRecord]:
    for topic in read_topics(path):
        about = {"description": topic.description, "narrative": topic.narrative}
        yield QueryRecord(topic.key, topic.text, metadata={name: text for name, text in about.items() if text})


def _read_query_rows(path: Path, **options: Any) -> Iterable[QueryRecord]:
    return read_table_of_judgments(path, needed=("query_text",), **_select(path, options)).queries


def _judge_by_beir(path: Path, **_: Any) -> Judged:
    qrels = beir.read_qrels(path)
    judgments = {key: build_judgments(grades) for key, grades in qrels.grades.items()}
    return Judged(judgments, qrels.places, qrels.duplicates)


def _judge_by_trec(path: Path, **_: Any) -> Judged:
    judgments = {}
    for key, grades in read_qrels(path).items():
        documents = decode_ids(list(grades), location=f"{path.name}, query {key[:60]!a},")
        judgments[key] = build_judgments(dict(zip(documents, grades.values(), strict=True)))
    return Judged(judgments, dict.fromkeys(judgments, path.name))


def _judge_by_rows(path: Path, **options: Any) -> Judged:
    """Return the judgments of a table. Without ids of queries, its texts of queries are those."""
    selected, fields = _select(path, options), _assign(path, options)
    if "query_key" not in fields and "query_text" in fields:
        columns = {name: column for name, column in selected["columns"].items() if name != "query_text"}
        selected["columns"] = {**columns, "query_key": fields["query_text"]}
    record = read_table_of_judgments(path, needed=("query_key", "grade", "doc_ref"), **selected)
    judgments = {query.key: [*query.judgments] for query in record.queries}
    return Judged(judgments, dict.fromkeys(judgments, path.name), record.duplicates, (*record.warnings,))


def _select(path: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a table with its columns alone."""
    names, columns = read_table(path)[0], options.get("columns") or {}
    return {**options, "columns": {name: column for name, column in columns.items() if column in names}}


QUERIES: dict[Kind, Callable[..., Iterable[QueryRecord]]] = {
    "beir-lines": _read_lines,
    "trec-topics": _read_topics,
    "table": _read_query_rows,
}
JUDGMENTS: dict[Kind, Callable[..., Judged]] = {
    "beir-qrels": _judge_by_beir,
    "trec-qrels": _judge_by_trec,
    "table": _judge_by_rows,
}


def _judge_by_dataset(read: Callable[[Path], DatasetRecord]) -> Callable[..., Judged]:
    def judge(path: Path, **_: Any) -> Judged:
        record = read(path)
        judgments = {query.text: [*query.judgments] for query in record.queries}
        return Judged(judgments, dict.fromkeys(judgments, path.name), record.duplicates, (*record.warnings,))

    return judge


# Files with ids where a dataset has the texts of queries.
BY_ID: dict[Kind, Callable[..., Judged]] = {
    "table": _judge_by_rows,
    "keyed": _judge_by_dataset(read_keyed),
    "quepid-ratings": _judge_by_dataset(read_ratings),
}


def read_pair(
    queries: Path, judgments: Path, *, kinds: tuple[Kind, Kind], name: str, split: str = "", **options: Any
) -> DatasetRecord:
    """Return the queries of one file that the other judges, in file order; `kinds` are those of the two files.

    Queries without a judgment are left out and named in a warning, unless `split` says that others are judged
    elsewhere. Raises an error with file and line, for example for a judgment of a missing query, and SwappedError if
    the file of queries has the documents.
    """
    judged = (JUDGMENTS | BY_ID)[kinds[1]](judgments, **options)
    records, unjudged = [], []
    try:
        for query in QUERIES[kinds[0]](queries, **options):
            if query.key in judged.judgments:
                records.append(replace(query, judgments=judged.judgments[query.key], split=split or query.split))
            else:
                unjudged.append(query.key)
    except BenchbenchError:
        if kinds[0] == "beir-lines" and holds_documents(queries):
            raise SwappedError(f"{queries.name} {DOCUMENTS}.") from None
        raise
    if len(records) < len(judged.judgments):
        _refuse_unknown(judged, {query.key for query in records}, {*unjudged}, queries.name)
    warnings = describe_unjudged([] if split else unjudged)
    columns: dict[str, str] = {}
    for path in (path for path, kind in zip((queries, judgments), kinds, strict=True) if kind == "table"):
        fields = {column: name for name, column in _assign(path, options).items()}
        columns |= {name: fields.get(name, "") for name in read_table(path)[0]}
    notes = [*judged.notes, *warnings]
    return DatasetRecord(name, records, duplicates=judged.duplicates, warnings=notes, columns=columns)


def _refuse_unknown(judged: Judged, judged_keys: set[str], unjudged: set[str], name: str) -> None:
    key = next(key for key in judged.judgments if key not in judged_keys)
    documents = {text for judgments in judged.judgments.values() for one in judgments for text in one.doc_ref.values()}
    if not judged_keys and not unjudged.isdisjoint(documents):
        raise SwappedError(
            f"{name} holds the documents that {judged.places[key].rstrip(',')} judges, not its queries: the files of "
            "documents and of queries are swapped."
        )
    keys = judged_keys | unjudged
    example = f": it has {min(keys)[:60]!a}, for example" if keys else ""
    raise DatasetError(f"{judged.places[key]} judges the query {key[:60]!a}, which {name} does not have{example}.")


def describe_unjudged(keys: list[str]) -> list[str]:
    """Return a warning that names the unjudged queries, if any."""
    return [f"Queries without a judgment, left out: {list_some(keys)}."] if keys else []


def read_two_files(directory: Path, *, split: str = "", **options: Any) -> DatasetRecord:
    """Return the queries of a file in a directory that another file in it judges, see `read_pair`.

    Of several files of judgments that of the `split` counts, by default `test`; of several of queries, the one with a
    judged query. Raises DatasetError if that leaves several or none. Further options are those of tables.
    """
    roles = sniff_roles(directory, options)
    judgments = [path for path, (_, role) in roles.items() if role == "judgments"]
    if len(judgments) > 1 or split:
        judgments = _choose_split(judgments, split or "test")
    queries = [path for path, (_, role) in roles.items() if role == "queries"]
    if not judgments or not queries:
        raise DatasetError(f"{directory.name} must hold a file of queries and one of judgments.")
    if len(queries) > 1:
        queries = _choose_judged(queries, judgments[0], roles)
    kinds = (roles[queries[0]][0], roles[judgments[0]][0])
    record = read_pair(queries[0], judgments[0], kinds=kinds, name=directory.name, split=split, **options)
    unread = [path.name for path in roles if path not in (queries[0], judgments[0])]
    notes = [f"Files that are not read: {list_some(unread)}."] if unread else []
    return replace(record, source_format="two-files", warnings=[*notes, *record.warnings])


def sniff_roles(directory: Path, options: Mapping[str, object]) -> dict[Path, tuple[Kind, str]]:
    """Return the kind and role of each file that lies anywhere in a directory, see `sniff_role`.

    With a file of queries, a dataset whose texts are all its ids holds judgments.
    """
    roles = {path: sniff_role(path, options) for path in list_files(directory)}
    queries = [path for path, (_, role) in roles.items() if role == "queries"]
    if len(queries) == 1 and "judgments" not in {role for _, role in roles.values()}:
        for path, (kind, role) in roles.items():
            if not role and kind in BY_ID and _has_ids(path, kind, queries[0], roles[queries[0]][0], options):
                roles[path] = (kind, "judgments")
    return roles


def _has_ids(path: Path, kind: Kind, queries: Path, kind_of_queries: Kind, options: Mapping[str, object]) -> bool:
    """Return whether the judgments of a file are of ids in a file of queries."""
    try:
        judged = BY_ID[kind](path, **options).judgments.keys()
        return bool(judged) and judged <= {query.key for query in QUERIES[kind_of_queries](queries, **options)}
    except BenchbenchError:
        return False  # the reader of the dataset says what is wrong


def _assign(path: Path, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the column of each field of a table, as its reader will with the same options."""
    return assign_columns(read_table(path)[0], _select(path, options)["columns"], options.get("ignore") or ())


def list_files(directory: Path) -> list[Path]:
    """Return the files that lie anywhere in a directory, without hidden ones and pages of documents."""
    files = (path for path in sorted(directory.rglob("*")) if path.suffix.lower() not in PAGES)
    return [path for path in files if path.is_file() and not path.name.startswith(".")]


def sniff_role(path: Path, options: Mapping[str, object]) -> tuple[Kind, str]:
    """Return the kind of a file, and "queries" or "judgments" if it holds these without the other, else ""."""
    kind = sniff(path)
    if kind == "table":
        fields = _assign(path, options).keys()
        judges = "grade" in fields or not fields.isdisjoint(REFERENCES)
        is_half = "query_key" in fields and judges != ("query_text" in fields)
        return kind, ("judgments" if judges else "queries") if is_half else ""
    return kind, "queries" if kind in QUERIES else "judgments" if kind in JUDGMENTS else ""


def _choose_split(files: list[Path], split: str) -> list[Path]:
    chosen = [path for path in files if path.name.split(".")[0] == split]
    if len(chosen) == 1:
        return chosen
    names = ", ".join(path.name for path in files)
    raise DatasetError(
        f"No file of judgments, or several, for the split {split[:50]!a}: they are {names[:200]}. Choose a split by "
        "the name of its file, or leave the others out.",
        field="split",
    )


def _choose_judged(files: list[Path], judgments: Path, roles: Mapping[Path, tuple[Kind, str]]) -> list[Path]:
    judged = (JUDGMENTS | BY_ID)[roles[judgments][0]](judgments).judgments
    likely = [path for path in files if not (roles[path][0] == "beir-lines" and holds_documents(path))] or files
    chosen = [path for path in likely if any(query.key in judged for query in QUERIES[roles[path][0]](path))]
    if len(chosen) == 1:
        return chosen
    names = ", ".join(path.name for path in files)
    raise DatasetError(
        f"{judgments.name} judges queries of several files, or of none: {names[:200]}. Leave others out."
    )
