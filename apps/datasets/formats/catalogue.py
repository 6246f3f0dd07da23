"""Reading the queries and judgments of a public test collection, by its id in ir_datasets."""

from typing import Any

from apps.datasets.formats.pairs import describe_unjudged
from apps.datasets.records import DatasetError, DatasetRecord, QueryRecord, build_judgments
from benchbench.catalogue import load, read, require
from benchbench.reading.strict_json import fault

SPLITS = ("train", "dev", "validation", "test")


def read_catalogue(id: str) -> DatasetRecord:
    """Return the judged queries in the order of the collection. Judgments use document_id; grades are any integers.

    A query's text is the library's default text of it; its other texts become metadata. The split is the end of the id.
    Equal repeated judgments count once. Raises CatalogueError, and DatasetError for content that cannot be stored.
    """
    dataset = load(id)
    require(dataset, id, "queries", "qrels")
    grades: dict[str, dict[str, int]] = {}
    duplicates = 0
    for qrel in read(id, dataset.qrels_iter):
        before = grades.setdefault(qrel.query_id, {}).setdefault(qrel.doc_id, qrel.relevance)
        duplicates += 1
        if before != qrel.relevance:
            raise DatasetError(
                f"{id} of ir_datasets gives the document {qrel.doc_id[:60]!a} the grades {before} and {qrel.relevance} "
                f"for the query {qrel.query_id[:60]!a}."
            )
    split = id.rpartition("/")[2]
    topics = list(read(id, dataset.queries_iter))
    queries = [_query(query, grades[query.query_id], split) for query in topics if query.query_id in grades]
    query_ids = {query.query_id for query in topics}
    if unknown := next((key for key in grades if key not in query_ids), None):
        raise DatasetError(f"{id} of ir_datasets judges the query {unknown[:60]!a}, which it does not have.")
    return DatasetRecord(
        name=id,
        queries=queries,
        source_format="ir_datasets",
        metadata={"ir_datasets": id},
        duplicates=duplicates - sum(map(len, grades.values())),
        warnings=describe_unjudged([query.query_id for query in topics if query.query_id not in grades]),
    )


def _query(query: Any, grades: dict[str, int], split: str) -> QueryRecord:
    text = query.default_text()
    fields = {name: value for name, value in query._asdict().items() if name != "query_id" and value not in (text, "")}
    return QueryRecord(
        key=query.query_id,
        text=text,
        split=split if split in SPLITS else "",
        judgments=build_judgments(grades),
        metadata={name: value for name, value in fields.items() if isinstance(value, str | int) and not fault(value)},
    )
