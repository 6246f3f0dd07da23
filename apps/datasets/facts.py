"""Facts of queries by which pages and gates slice: one account, so that a slice has the same queries in both."""

from typing import Any

from apps.datasets.models import Query
from benchbench.ir.slices import QueryFacts

FIELDS = ("id", "text", "slices", "category", "difficulty", "query_type", "split", "filters", "metadata")


def facts_of(query: Query, n_relevant: int) -> QueryFacts:
    """Return the facts of a query with so many relevant documents. Its version is what it filters by, or else states.

    Reads no other field than FIELDS.
    """
    version = query.filters.get("version") or query.metadata.get("version")
    return QueryFacts(
        text=query.text,
        n_relevant=n_relevant,
        slices=tuple(query.slices),
        category=query.category,
        difficulty=query.difficulty,
        query_type=query.query_type,
        split=query.split,
        version=version_text(version),
    )


def version_text(version: Any) -> str:
    """Return what a query states as its version as a label: several are "16.0 or 17.0", none is blank."""
    return " or ".join(map(str, version)) if isinstance(version, list) else str(version or "")
