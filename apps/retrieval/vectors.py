"""The vectors of an index: kept in its table in PostgreSQL, and on each machine that searches in one mapped file."""

from pathlib import Path
from uuid import uuid4

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.retrieval.models import Index
from apps.retrieval.stores import get_store
from apps.retrieval.stores.pgvector import PgVectorStore
from benchbench.errors import BenchbenchError


class VectorsError(BenchbenchError):
    """The vectors of an index are not all there."""

    code = "vectors"


def table_store() -> PgVectorStore:
    """The store that keeps the vectors of every index, whatever store searches them."""
    store = get_store("pgvector")
    assert isinstance(store, PgVectorStore)
    return store


def vectors_file(index: Index) -> Path:
    """Where this machine keeps the vectors of an index. A ready index never changes, so its id names its content."""
    return Path(settings.BENCHBENCH_VECTOR_DIR) / f"{index.pk.hex}.npy"


def local_vectors(index: Index) -> NDArray[np.float32]:
    """Return the vectors of a ready index by position, (n, d), mapped read-only from a file of this machine.

    Processes share its pages. It is written from PostgreSQL where it is missing or not of the right shape: whole,
    under another name first. Raises VectorsError.
    """
    assert index.chunk_set is not None
    assert index.dimension is not None
    file = vectors_file(index)
    shape = (index.chunk_set.chunk_count, index.dimension)
    if not shape[0]:
        return np.empty(shape, np.float32)
    mapped = _mapped(file)
    if mapped is None or mapped.shape != shape:
        _write(index, file, shape)
        mapped = _mapped(file)
        assert mapped is not None
    return mapped


def _mapped(file: Path) -> NDArray[np.float32] | None:
    try:
        return np.asarray(np.load(file, mmap_mode="r"))
    except (FileNotFoundError, ValueError, EOFError):  # absent, or cut short
        return None


def _write(index: Index, file: Path, shape: tuple[int, int]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{uuid4().hex}.part")  # process ids repeat among containers on one volume
    try:
        vectors = np.lib.format.open_memmap(unfinished, mode="w+", dtype=np.float32, shape=shape)
        read = 0
        for positions, rows in table_store().read(index.vector_table, shape[1]):
            if not np.array_equal(positions, np.arange(read, read + len(rows))) or read + len(rows) > shape[0]:
                raise _incomplete(index)
            vectors[positions] = rows
            read += len(rows)
        if read != shape[0]:
            raise _incomplete(index)
        vectors.flush()
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


def _incomplete(index: Index) -> VectorsError:
    return VectorsError(
        f'The table of the index "{index}" does not hold one vector for each of its chunks: restore the database, or '
        "delete the index and build it again."
    )
