"""Reading module queries (SPEC-001)."""

from pathlib import Path

from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
from benchbench.files.module_queries import ModuleQuery
from benchbench.files.module_queries import read_module_queries as read

GRADE = 1


def read_module_queries(path: Path) -> DatasetRecord:
    """Return the queries in file order; a module is the document that has its name as external_id.

    A query's `version` becomes its filter: the search looks only at documents whose metadata has that version, or
    one of those that are stated.
    """
    file = read(path)
    name = file.metadata.get("name")
    return DatasetRecord(
        name=name if isinstance(name, str) else path.name.removesuffix(".gz").removesuffix(".json"),
        queries=[_query(query) for query in file.queries],
        source_format="module-queries",
        metadata=file.metadata,
        warnings=file.warnings,
    )


def _query(query: ModuleQuery) -> QueryRecord:
    return QueryRecord(
        key=str(query.id),
        text=query.query,
        judgments=[JudgmentRecord({"document_id": module}, GRADE) for module in query.expected_modules],
        category=query.category,
        difficulty=query.difficulty,
        filters={"version": query.version if isinstance(query.version, str) else list(query.version)},
        notes=query.notes,
    )
