"""ChromaDB: a graph (HNSW) in the folder of an embedded client."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from apps.retrieval.stores.base import Mask, Nominate, Vectors
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import Positions

NAME = "vectors"
ROWS_AT_ONCE = 1000


class ChromaCollection:
    """A collection of ChromaDB."""

    def __init__(self, folder: Path) -> None:
        self._client = _open_client(folder)
        try:
            self._collection = self._client.get_collection(NAME, embedding_function=None)
            (first,) = self._collection.get(limit=1, include=["embeddings"])["embeddings"]
        except BaseException:
            self.close()
            raise
        self._dimension = len(first)

    @property
    def shape(self) -> tuple[int, int]:
        return self._collection.count(), self._dimension

    def build_nominator(self, setting: Ann, mask: Mask | None) -> Nominate:
        admitted = {} if mask is None else {"ids": [str(position) for position in np.flatnonzero(mask)]}
        if mask is not None and not admitted["ids"]:
            return lambda query, depth: np.empty(0, np.int64)

        def nominate(query: Vectors, depth: int) -> Positions:
            answer = self._collection.query(query_embeddings=query[None], n_results=depth, include=[], **admitted)
            return np.array(answer["ids"][0], np.int64)

        return nominate

    def read_back(self, setting: Ann) -> Mapping[str, object]:
        options = self._collection.configuration_json["hnsw"]
        return {
            "m": options["max_neighbors"],
            "ef_construction": options["ef_construction"],
            "ef_search": options["ef_search"],
            "space": options["space"],
        }

    def close(self) -> None:
        self._client.close()


class ChromaStore:
    """The store ChromaDB. Its graph is random: another machine with the same vectors may find other chunks."""

    name = "chromadb"
    packages = {"chromadb": "chromadb"}
    fixed = False  # its client writes when it opens a folder

    def describe_obstacle(self, setting: Ann, count: int, dimension: int) -> str:
        return ""

    def fill(self, folder: Path, vectors: Vectors, setting: Ann) -> None:
        client = _open_client(folder)
        options = {
            "space": "ip",
            "max_neighbors": setting["m"],
            "ef_construction": setting["ef_construction"],
            "ef_search": setting["ef_search"],
            # Rows outside a saved graph are added to a new, different one whenever the folder is opened.
            "sync_threshold": 2,
        }
        collection = client.create_collection(NAME, configuration={"hnsw": options}, embedding_function=None)
        count = -(-len(vectors) // ROWS_AT_ONCE)
        for positions in np.array_split(np.arange(len(vectors)), count):  # equal parts: none is below the threshold
            collection.add(ids=[str(position) for position in positions], embeddings=vectors[positions])
        client.close()

    def open(self, folder: Path, setting: Ann) -> ChromaCollection:
        return ChromaCollection(folder)


def _open_client(folder: Path) -> Any:
    import chromadb
    from chromadb.config import Settings

    return chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
