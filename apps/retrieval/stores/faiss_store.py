"""FAISS: exact search, graphs (HNSW) and product quantisation (IVF-PQ) in one file, held in memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from apps.retrieval.stores.base import Mask, Nominate, Vectors
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import Positions

FILE = "index.faiss"
QUANTISERS = {"float16": "QT_fp16", "int8": "QT_8bit", "int4": "QT_4bit"}


class FaissCollection:
    """An index of FAISS, read into memory."""

    def __init__(self, folder: Path) -> None:
        import faiss

        self._faiss = faiss
        self._index: Any = faiss.read_index(str(folder / FILE))

    @property
    def shape(self) -> tuple[int, int]:
        return self._index.ntotal, self._index.d

    def build_nominator(self, setting: Ann, mask: Mask | None) -> Nominate:
        parameters = self._build_parameters(setting, mask)

        def nominate(query: Vectors, depth: int) -> Positions:
            _, (ids,) = self._index.search(query[None], depth, params=parameters)
            return ids if ids[-1] >= 0 else ids[ids >= 0]  # missing results are -1

        return nominate

    def read_back(self, setting: Ann) -> Mapping[str, Any]:
        faiss, index = self._faiss, self._index
        match setting.method:
            case "hnsw":
                graph = index.hnsw
                options = {"m": graph.nb_neighbors(1), "ef_construction": graph.efConstruction}
                options |= {"ef_search": self._build_parameters(setting, None).efSearch, "rescore": setting["rescore"]}
                return options | {"storage": _name_storage(faiss, index)}
            case "ivfpq":
                options = {"lists": index.nlist, "probes": self._build_parameters(setting, None).nprobe}
                return options | {"m": index.pq.M, "bits": index.pq.nbits}
        return {"metric": "inner product" if index.metric_type == faiss.METRIC_INNER_PRODUCT else index.metric_type}

    def _build_parameters(self, setting: Ann, mask: Mask | None) -> Any:
        faiss = self._faiss
        # FAISS stores only the address of the bits; the selector keeps NumPy's array alive.
        chosen = {} if mask is None else {"sel": faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))}
        match setting.method:
            case "hnsw":
                return faiss.SearchParametersHNSW(efSearch=setting["ef_search"], **chosen)
            case "ivfpq":
                return faiss.SearchParametersIVF(nprobe=setting["probes"], **chosen)
        return faiss.SearchParameters(**chosen)

    def close(self) -> None:
        """Do nothing: it has no open file."""


class FaissStore:
    """The store FAISS. It builds with one thread, so that a graph is the same on every machine."""

    name = "faiss"
    packages = {"faiss-cpu": "faiss"}
    fixed = True

    def describe_obstacle(self, setting: Ann, count: int, dimension: int) -> str:
        if setting.method != "ivfpq":
            return ""
        if dimension % setting["m"]:
            return f"its m, {setting['m']}, must divide the {dimension:,} dimensions"
        needed = max(setting["lists"], 2 ** setting["bits"])
        if count < needed:
            return (
                f"its {setting['lists']:,} lists and {2 ** setting['bits']} codes ({setting['bits']} bits) need at "
                f"least {needed:,} chunks for training, but the index has {count:,}"
            )
        return ""

    def fill(self, folder: Path, vectors: Vectors, setting: Ann) -> None:
        import faiss

        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            index = _build_empty(faiss, vectors.shape[1], setting)
            if not index.is_trained:
                index.train(vectors)
            index.add(vectors)
        finally:
            faiss.omp_set_num_threads(threads)
        faiss.write_index(index, str(folder / FILE))

    def open(self, folder: Path, setting: Ann) -> FaissCollection:
        return FaissCollection(folder)


def _build_empty(faiss: Any, dimension: int, setting: Ann) -> Any:
    by = faiss.METRIC_INNER_PRODUCT
    match setting.method:
        case "hnsw":
            if quantiser := QUANTISERS.get(setting["storage"]):
                kind = getattr(faiss.ScalarQuantizer, quantiser)
                index = faiss.IndexHNSWSQ(dimension, kind, setting["m"], by)
            else:
                index = faiss.IndexHNSWFlat(dimension, setting["m"], by)
            index.hnsw.efConstruction = setting["ef_construction"]
            return index
        case "ivfpq":
            coarse = faiss.IndexFlatIP(dimension)
            index = faiss.IndexIVFPQ(coarse, dimension, setting["lists"], setting["m"], setting["bits"], by)
            index.cp.min_points_per_centroid = index.pq.cp.min_points_per_centroid = 1  # avoids warnings on stderr
            return index
    return faiss.IndexFlatIP(dimension)


def _name_storage(faiss: Any, index: Any) -> str:
    """Return the form of the vectors in a graph."""
    vectors = faiss.downcast_index(index.storage)
    names = {getattr(faiss.ScalarQuantizer, name): storage for storage, name in QUANTISERS.items()}
    return names[vectors.sq.qtype] if isinstance(vectors, faiss.IndexScalarQuantizer) else "float32"
