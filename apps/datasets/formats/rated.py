"""Reading judgments that other tools export: Quepid, Elasticsearch's `_rank_eval`, OpenSearch's Search Relevance."""

from collections.abc import Callable, Mapping
from pathlib import Path

from apps.datasets.records import DatasetError, DatasetRecord, JudgmentRecord, QueryRecord
from benchbench.files.quepid import read_ratings, read_snapshot_ratings
from benchbench.files.rank_eval import read_rank_eval
from benchbench.files.ratings import RatedFile, RatedQuery
from benchbench.files.search_relevance import read_judgment_list, read_query_set
from benchbench.files.sniffing import Kind

MAX_FACTOR = 10_000
# Of each format: its name for users, and its reader. A format's name is the kind of its file.
RATED_FORMATS: dict[Kind, tuple[str, Callable[..., RatedFile]]] = {
    "quepid-ratings": ("Quepid ratings (CSV: query, docid, rating)", read_ratings),
    "quepid-snapshot": ("Quepid snapshot (JSON)", read_snapshot_ratings),
    "rank-eval": ("_rank_eval body", read_rank_eval),
    "opensearch-judgments": ("OpenSearch judgment list", read_judgment_list),
    "opensearch-queries": ("OpenSearch query set", read_query_set),
}


def build_reader(name: Kind) -> Callable[..., DatasetRecord]:
    """Return the reader of one of RATED_FORMATS. A grade is the rating times `grade_factor`."""

    def read_rated(path: Path, *, grade_factor: int = 1, **options: Mapping[str, str]) -> DatasetRecord:
        return _build_record(path, RATED_FORMATS[name][1](path, **options), name, grade_factor)

    return read_rated


def _build_record(path: Path, file: RatedFile, source_format: str, factor: int) -> DatasetRecord:
    if factor not in range(1, MAX_FACTOR + 1):
        raise DatasetError(
            f"The grade factor {factor} is not a number from 1 to {MAX_FACTOR:,}: choose 10 for grades such as 0.7.",
            field="grade_factor",
        )
    stem = path.name.removesuffix(".gz")
    return DatasetRecord(
        name=file.name.strip() or stem.rpartition(".")[0] or stem,
        queries=[_build_query(path, query, file.source, factor) for query in file.queries.values()],
        description=file.description,
        source_format=source_format,
        metadata={"grade_factor": factor} if factor != 1 else {},
        duplicates=file.duplicates,
        warnings=[*file.warnings, *([f"A grade is the rating in the file times {factor}."] if factor != 1 else [])],
    )


def _build_query(path: Path, query: RatedQuery, source: str, factor: int) -> QueryRecord:
    """Return a query with its judgments. Raises DatasetError for a rating that gives no whole number."""
    for document, rating in query.ratings.items():
        if rating * factor != int(rating * factor):
            raise DatasetError(
                f"{path.name} rates the document {document[:60]!a} of the query {query.text[:60]!a} with {rating}, and "
                "a grade is a whole number: round the ratings, or import them with a factor, such as 10 (Grade "
                "factor on the page, --grade-factor of the command, grade_factor of the API).",
                field="grade_factor",
            )
    grades = {document: int(rating * factor) for document, rating in query.ratings.items()}
    return QueryRecord(
        key=query.key,
        text=query.text,
        judgments=[JudgmentRecord({"document_id": one}, grade, source=source) for one, grade in grades.items()],
        expected_answer=query.expected_answer,
        notes=query.notes,
        metadata=query.metadata,
    )
