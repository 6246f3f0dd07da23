"""Reading judgments that other tools export: Quepid, Elasticsearch's `_rank_eval`, OpenSearch's Search Relevance."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from apps.datasets.records import DatasetError, DatasetRecord, JudgmentRecord, QueryRecord
from benchbench.files.quepid import read_ratings, read_snapshot_ratings
from benchbench.files.rank_eval import read_rank_eval
from benchbench.files.ratings import RatedFile, RatedQuery
from benchbench.files.search_relevance import read_judgment_list, read_query_set

MAX_FACTOR = 10_000


def read_quepid_ratings(path: Path, *, grade_factor: int = 1) -> DatasetRecord:
    """Return the queries and ratings of a CSV; see `benchbench.files.quepid`."""
    return _build_record(path, read_ratings(path), "quepid-ratings", grade_factor)


def read_quepid_snapshot(path: Path, *, grade_factor: int = 1) -> DatasetRecord:
    """Return the queries and ratings of a snapshot or case; see `benchbench.files.quepid`."""
    return _build_record(path, read_snapshot_ratings(path), "quepid-snapshot", grade_factor)


def read_rated_requests(
    path: Path, *, grade_factor: int = 1, columns: Mapping[str, str] | None = None
) -> DatasetRecord:
    """Return the requests of a `_rank_eval` body; see `benchbench.files.rank_eval`."""
    return _build_record(path, read_rank_eval(path, columns=columns or {}), "rank-eval", grade_factor)


def read_opensearch_judgments(path: Path, *, grade_factor: int = 1) -> DatasetRecord:
    """Return the queries and ratings of a judgment list; see `benchbench.files.search_relevance`."""
    return _build_record(path, read_judgment_list(path), "opensearch-judgments", grade_factor)


def read_opensearch_queries(path: Path) -> DatasetRecord:
    """Return the queries of a query set, without judgments; see `benchbench.files.search_relevance`."""
    return _build_record(path, read_query_set(path), "opensearch-queries", 1)


def _build_record(path: Path, file: RatedFile, source_format: str, factor: int) -> DatasetRecord:
    """Return the dataset of a file. A grade is the rating times `factor`, and must be a whole number."""
    if factor not in range(1, MAX_FACTOR + 1):
        raise DatasetError(
            f"The grade factor {factor} is not a number from 1 to {MAX_FACTOR:,}: choose 10 for grades such as 0.7.",
            field="grade_factor",
        )
    scaled = [f"A grade is the rating in the file times {factor}."] if factor != 1 else []
    stem = path.name.removesuffix(".gz")
    return DatasetRecord(
        name=file.name.strip() or stem.rpartition(".")[0] or stem,
        queries=[_build_query(path, query, file.source, factor) for query in file.queries.values()],
        description=file.description,
        source_format=source_format,
        metadata={"grade_factor": factor} if factor != 1 else {},
        duplicates=file.duplicates,
        warnings=[*scaled, *file.warnings],
    )


def _build_query(path: Path, query: RatedQuery, source: str, factor: int) -> QueryRecord:
    judgments = []
    for document, rating in query.ratings.items():
        grade = rating * factor
        if grade != grade.to_integral_value():
            raise DatasetError(
                f"{path.name} rates the document {document[:60]!a} of the query {query.text[:60]!a} with {rating}, and "
                f"a grade is a whole number: {_find_remedy(rating)}.",
                field="grade_factor",
            )
        judgments.append(JudgmentRecord({"document_id": document}, int(grade), source=source))
    return QueryRecord(
        key=query.key,
        text=query.text,
        judgments=judgments,
        expected_answer=query.expected_answer,
        notes=query.notes,
        metadata=query.metadata,
    )


def _find_remedy(rating: Decimal) -> str:
    factor = 10 ** max(0, -int(rating.normalize().as_tuple().exponent))
    if factor > MAX_FACTOR:
        return "round the ratings in the file"
    return (
        f"import it with the grade factor {factor} (Grade factor on the page, --grade-factor of the command, "
        "grade_factor of the API), or round the ratings in the file"
    )
