"""Vector stores, one file each. A new one copies its best sibling, joins here, and passes the contract tests.

Whichever store an index names, its vectors are kept in pgvector, and exact search is in memory (`search.vectors`).
"""

from functools import cache

from apps.retrieval.stores.base import StoreError, VectorStore
from apps.retrieval.stores.memory import MemoryStore
from apps.retrieval.stores.pgvector import PgVectorStore

STORES: dict[str, type[VectorStore]] = {"pgvector": PgVectorStore, "memory": MemoryStore}


@cache
def get_store(name: str) -> VectorStore:
    """Return the store called `name`, one for this process. Raises StoreError."""
    if name not in STORES:
        raise StoreError(f"There is no vector store {name!r}; there are {', '.join(STORES)}.", field="store")
    return STORES[name]()
