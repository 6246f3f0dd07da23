"""Writing module queries (SPEC-001)."""

from apps.datasets.readers.module_queries import GRADE
from apps.datasets.records import DatasetRecord, QueryRecord
from apps.datasets.writers.base import WriteError, by_document, kept
from benchbench.files.module_queries import (
    DIFFICULTIES,
    INTEGER,
    MODULES,
    ModuleQueries,
    ModuleQuery,
    write_module_queries,
)
from benchbench.local_files.placing import Files

LABEL = "The format of module queries"


def fit(record: DatasetRecord) -> DatasetRecord:
    """Queries of a version, each with one to five modules of grade 1; every one of them, or WriteError."""
    return DatasetRecord(
        record.name,
        [_fit(query) for query in record.queries],
        source_format="module-queries",
        metadata=record.metadata,
    )


def files(record: DatasetRecord) -> Files:
    queries = tuple(
        ModuleQuery(
            id=int(query.key),
            query=query.text,
            version=_version(query),
            expected_modules=tuple(judgment.doc_ref["document_id"] for judgment in query.judgments),
            category=query.category,
            difficulty=query.difficulty,
            notes=query.notes,
        )
        for query in record.queries
    )
    return {"queries.json": write_module_queries(ModuleQueries(queries, record.metadata))}


def _fit(query: QueryRecord) -> QueryRecord:
    version = _version(query)
    for is_so, what in (
        (INTEGER.fullmatch(query.key), "an integer as its key"),
        (version, "a version among its filters"),
        (query.category.strip(), "a category"),
        (query.difficulty in DIFFICULTIES, f"a difficulty of {', '.join(DIFFICULTIES)}"),
        (len(query.judgments) in MODULES, "one to five judgments"),
    ):
        if not is_so:
            raise WriteError(
                f"The query {query.key[:60]!a} lacks {what}, which {LABEL.lower()} wants: choose another format.",
                field="format",
            )
    judgments = by_document(query, grades=[GRADE], label=LABEL.lower())
    return kept(query, judgments, "category", "difficulty", "notes", filters={"version": query.filters["version"]})


def _version(query: QueryRecord) -> str | tuple[str, ...]:
    """Return the version, or versions, that a query filters by as the format states them; "" where it can't."""
    version = query.filters.get("version")
    versions = version if isinstance(version, list) else [version]
    fits = versions and all(isinstance(version, str) and version.strip() for version in versions)
    if not fits or len(set(versions)) < len(versions):
        return ""
    return tuple(map(str, versions)) if isinstance(version, list) else str(version)
