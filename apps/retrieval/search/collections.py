"""The collections that stores have made of the vectors of one index, on this machine."""

from pathlib import Path
from socket import gethostname

import numpy as np
from numpy.typing import NDArray

from apps.operations.leasing import UnfitWorkerError
from apps.retrieval.availability import lack
from apps.retrieval.models import Index
from apps.retrieval.search.vectors import vectors_file
from apps.retrieval.stores import STORES
from apps.retrieval.stores.base import Collection
from apps.retrieval.stores.filling import Kept, collection_name, kept_collection
from benchbench.ir.planning.ann import Ann


def collections_folder(index: Index) -> Path:
    """Where they lie, a folder each."""
    return vectors_file(index).with_suffix(".stores")


class Collections:
    """The collections of an open index, opened when they are first asked for, and then kept open."""

    def __init__(self, index: Index, vectors: NDArray[np.float32] | None) -> None:
        self._index = index
        self._vectors = vectors
        self._kept: dict[str, Kept] = {}

    @property
    def nbytes(self) -> int:
        return sum(kept.bytes for kept in self._kept.values())

    def of(self, setting: Ann) -> Collection | None:
        """Return what a setting searches; None where that is in PostgreSQL, or there are no vectors."""
        if setting.store not in STORES or self._vectors is None or not len(self._vectors):
            return None
        return self.filled(setting).collection

    def filled(self, setting: Ann) -> Kept:
        """Return the collection that a setting of a store searches, filled first where it is not: that takes a while.

        Raises StoreError, OutputError; UnfitWorkerError where the store is not installed.
        """
        assert self._vectors is not None
        if lacking := lack({"store": setting.store}):
            raise UnfitWorkerError(f"{setting} cannot be searched on {gethostname()}: {lacking}.")
        name = collection_name(setting)
        if name not in self._kept:
            folder, store = collections_folder(self._index) / name, STORES[setting.store]
            self._kept[name] = kept_collection(folder, store, setting, self._vectors, holds=self._index.fingerprint)
        return self._kept[name]
