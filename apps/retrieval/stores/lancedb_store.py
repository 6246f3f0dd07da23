"""LanceDB: exact search and product quantisation (IVF-PQ) on disk."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from apps.retrieval.stores.base import Mask, Nominate, Vectors
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import Positions

NAME = "vectors"
CODES = 256  # vectors to learn the codes from, and the minimum per list


class LanceCollection:
    """A table of LanceDB."""

    def __init__(self, folder: Path) -> None:
        import lancedb

        self._table: Any = lancedb.connect(folder).open_table(NAME)
        self._dimension = self._table.schema.field("vector").type.list_size

    @property
    def shape(self) -> tuple[int, int]:
        return self._table.count_rows(), self._dimension

    def build_nominator(self, setting: Ann, mask: Mask | None) -> Nominate:
        among = None if mask is None else ", ".join(map(str, np.flatnonzero(mask)))
        if among == "":
            return lambda query, depth: np.empty(0, np.int64)

        def nominate(query: Vectors, depth: int) -> Positions:
            search = self._table.search(query).distance_type("dot").limit(depth).select(["id", "_distance"])
            if setting.method == "ivfpq":
                search = search.nprobes(setting["probes"])
            if among is not None:
                search = search.where(f"id IN ({among})", prefilter=True)
            return search.to_arrow()["id"].to_numpy()

        return nominate

    def read_back(self, setting: Ann) -> Mapping[str, object]:
        indexes = self._table.list_indices()
        if not indexes:
            return {"index": None}
        facts = self._table.index_stats(indexes[0].name)
        return {"index": facts.index_type, "indexed": facts.num_indexed_rows, "distance": facts.distance_type}

    def close(self) -> None:
        """Do nothing: its client closes the files when garbage collected."""


class LanceStore:
    """The store LanceDB. Its lists are random: another machine with the same vectors may find other chunks."""

    name = "lancedb"
    packages = {"lancedb": "lancedb"}
    fixed = True

    def describe_obstacle(self, setting: Ann, count: int, dimension: int) -> str:
        if setting.method != "ivfpq":
            return ""
        if dimension % setting["m"]:
            return f"its m, {setting['m']}, must divide the {dimension:,} dimensions"
        if count < CODES * setting["lists"]:
            return f"it needs more than one list of {CODES} chunks, but the index has {count:,}"
        return ""

    def fill(self, folder: Path, vectors: Vectors, setting: Ann) -> None:
        import lancedb
        import pyarrow as pa
        from lancedb.index import IvfPq

        rows = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
        columns = {"id": pa.array(np.arange(len(vectors))), "vector": rows}
        table = lancedb.connect(folder).create_table(NAME, pa.table(columns))
        if setting.method == "ivfpq":
            options = {"num_partitions": setting["lists"], "num_sub_vectors": setting["m"]}
            table.create_index("vector", config=IvfPq(distance_type="dot", **options))

    def open(self, folder: Path, setting: Ann) -> LanceCollection:
        return LanceCollection(folder)
