"""Documents and judged questions about fruit."""

from typing import Any

PASSWORD = "correct horse battery staple"
ENCODER = "keyword:apple,pear,plum"
LIBRARY = {"d1": "apple apple", "d2": "apple pear", "d3": "pear pear", "d4": "plum pear", "d5": "plum plum"}
JUDGED = {"apple": {"d1": 3, "d2": 1}, "pear": {"d3": 3, "d2": 1, "d4": 1}, "plum": {"d5": 3, "d4": 1, "gone": 2}}


def documents() -> list[dict[str, Any]]:
    return [{"external_id": key, "title": key, "text": text} for key, text in LIBRARY.items()]


def questions(**metadata: Any) -> dict[str, Any]:
    """Return a dataset of schema 1.0: a query for each fruit, one judgment of which names no document."""
    queries = [
        {
            "query_key": fruit,
            "query_text": fruit,
            "relevant_docs": [
                {"doc_ref": {"document_id": key}, "relevance_grade": grade} for key, grade in judged.items()
            ],
        }
        for fruit, judged in JUDGED.items()
    ]
    return {"schema_version": "1.0", "metadata": metadata, "queries": queries}
