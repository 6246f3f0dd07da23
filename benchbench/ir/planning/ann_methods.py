"""The methods of dense search: which store offers which, with what options."""

from __future__ import annotations

from typing import NamedTuple

from benchbench.reading.kinds import Kind, one_of, whole

Value = int | str


class Option(NamedTuple):
    """What may be said about a method. `builds`: it shapes the index itself; else only how that is searched."""

    default: Value
    kind: Kind
    builds: bool = False


# Defaults and bounds are the store's own, so that a bare "hnsw" is what pgvector does when it is told nothing. Product
# quantisation has no default of `m`, in FAISS and in LanceDB.
STORAGE = Option("vector", one_of("vector", "halfvec", "binary"), builds=True)
PARTS = Option(16, whole(1, 1024), builds=True)
STORES: dict[str, dict[str, dict[str, Option]]] = {
    "memory": {"exact": {}},
    "pgvector": {
        "exact": {},
        "hnsw": {
            "m": Option(16, whole(2, 100), builds=True),
            "ef_construction": Option(64, whole(4, 1000), builds=True),
            "ef_search": Option(40, whole(1, 1000)),
            "iterative": Option("off", one_of("off", "strict", "relaxed")),
            "storage": STORAGE,
        },
        "ivfflat": {
            "lists": Option(100, whole(1, 32768), builds=True),
            "probes": Option(1, whole(1, 32768)),
            "iterative": Option("off", one_of("off", "relaxed")),
            "storage": STORAGE,
        },
    },
    "sqlite_vec": {"exact": {}},
    "chromadb": {
        "hnsw": {
            "m": Option(16, whole(2, 100), builds=True),
            "ef_construction": Option(100, whole(4, 1000), builds=True),
            # A collection takes another value only when it is next opened: each has a collection of its own.
            "ef_search": Option(100, whole(1, 10_000), builds=True),
        },
    },
    "faiss": {
        "exact": {},
        "hnsw": {
            "m": Option(32, whole(2, 100), builds=True),
            "ef_construction": Option(40, whole(4, 1000), builds=True),
            "ef_search": Option(16, whole(1, 10_000)),
        },
        "ivfpq": {
            "lists": Option(100, whole(1, 32768), builds=True),
            "probes": Option(1, whole(1, 32768)),
            "m": PARTS,
            "bits": Option(8, whole(4, 8), builds=True),
        },
    },
    "lancedb": {
        "exact": {},
        "ivfpq": {
            "lists": Option(1, whole(1, 32768), builds=True),
            "probes": Option(1, whole(1, 32768)),
            "m": PARTS,
        },
    },
}
STORE_OF = {"exact": "memory", "hnsw": "pgvector", "ivfflat": "pgvector"}  # of a method that is named alone


def named(store: str, method: str) -> str:
    """The text of a method without options: "hnsw" is pgvector's, "faiss:hnsw" that of FAISS."""
    return method if STORE_OF.get(method) == store else f"{store}:{method}"


def arm_of(store: str) -> str:
    """The setting of a store that is named alone, as experiments do: its first method."""
    return named(store, next(iter(STORES[store])))


OF_STORES = [
    named(store, method) for store, methods in STORES.items() for method in methods if STORE_OF.get(method) != store
]
