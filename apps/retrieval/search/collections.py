"""The collections that stores have made of the vectors of one index, on this machine."""

import logging
from collections.abc import Callable
from pathlib import Path
from socket import gethostname
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from apps.operations.leasing import UnfitWorkerError
from apps.retrieval.availability import lack
from apps.retrieval.models import Index
from apps.retrieval.search.vectors import vectors_file
from apps.retrieval.stores import STORES
from apps.retrieval.stores.base import Collection, StoreError
from apps.retrieval.stores.filling import OpenCollection, collection_name, open_collection
from benchbench.errors import told
from benchbench.ir.planning.ann import Ann

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class SearchFault(Exception):
    """A search of a collection failed with `error`, and may succeed once its files are verified."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def collections_folder(index: Index) -> Path:
    """Where they lie, a folder each."""
    return vectors_file(index).with_suffix(".stores")


class Collections:
    """The collections of an open index, opened when they are first asked for, and then kept open."""

    def __init__(self, index: Index, vectors: NDArray[np.float32] | None) -> None:
        self._index = index
        self._vectors = vectors
        self._open: dict[str, OpenCollection] = {}

    @property
    def nbytes(self) -> int:
        return sum(opened.bytes for opened in self._open.values())

    def search(self, setting: Ann, run: Callable[[Collection | None], Result]) -> Result:
        """Return what `run` makes of the collection that a setting searches; of None where PostgreSQL has that.

        Where `run` raises SearchFault, or something wrote to the files meanwhile, the collection is closed, verified,
        filled again where it is damaged, and searched once more. Raises the cause of the second SearchFault; StoreError
        where the files changed again; and as `filled`.
        """
        if setting.store not in STORES or self._vectors is None or not len(self._vectors):
            return run(None)
        try:
            return self._once(setting, run)
        except SearchFault as fault:
            log.warning("%s is verified and searched again: %s", setting, told(fault.error))
        self._open.pop(collection_name(setting)).close()
        try:
            return self._once(setting, run)
        except SearchFault as fault:
            raise fault.error from None

    def _once(self, setting: Ann, run: Callable[[Collection], Result]) -> Result:
        opened = self.filled(setting)
        result = run(opened.collection)
        if not opened.is_current:
            raise SearchFault(
                StoreError(
                    f"The files of {setting} changed while they were searched: let nothing but BenchBench write to "
                    "BENCHBENCH_VECTOR_DIR."
                )
            )
        return result

    def filled(self, setting: Ann) -> OpenCollection:
        """Return the collection that a setting of a store searches, filled first where it is not: that takes a while.

        Raises StoreError, OutputError; UnfitWorkerError where the store is not installed.
        """
        assert self._vectors is not None
        if lacking := lack({"store": setting.store}):
            raise UnfitWorkerError(f"{setting} cannot be searched on {gethostname()}: {lacking}.")
        name = collection_name(setting)
        if name in self._open and not self._open[name].is_current:
            self._open.pop(name).close()
        if name not in self._open:
            folder, store = collections_folder(self._index) / name, STORES[setting.store]
            self._open[name] = open_collection(folder, store, setting, self._vectors, holds=self._index.fingerprint)
        return self._open[name]
