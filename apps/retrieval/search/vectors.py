"""The vectors of an index: kept in its table in PostgreSQL, and on each machine that searches in one mapped file."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.models import Index
from apps.retrieval.search.vector_table import VectorTables
from benchbench.errors import BenchbenchError
from benchbench.ir.ranking import flaws
from benchbench.local_files.sealed import kept_array


class VectorsError(BenchbenchError):
    """The vectors of an index are not all there."""

    code = "vectors"


def table_store() -> VectorTables:
    """The tables that keep the vectors of every index, whatever store searches them."""
    return VectorTables()


def vectors_file(index: Index) -> Path:
    """Where this machine keeps the vectors of an index. A ready index never changes, so its id names its content."""
    return Path(settings.BENCHBENCH_VECTOR_DIR) / f"{index.pk.hex}.vectors"


def local_vectors(index: Index) -> NDArray[np.float32]:
    """Return the vectors of a ready index by position, (n, d), mapped read-only from a file of this machine.

    Processes share its pages. It is written from PostgreSQL where it is missing or is not what was written for this
    index, by `benchbench.local_files.sealed`. Raises VectorsError and OutputError.
    """
    assert index.chunk_set is not None
    assert index.dimension is not None
    file = vectors_file(index)
    shape = (index.chunk_set.vector_count, index.dimension)
    if not shape[0]:
        return np.empty(shape, np.float32)
    file.with_suffix(".npy").unlink(missing_ok=True)  # as it was called before it was sealed
    holds = fingerprint(index=index.pk.hex, content=index.fingerprint)
    return kept_array(file, np.float32, shape, holds=holds, make=lambda: _rows(index, *shape))


def _rows(index: Index, count: int, dimension: int) -> Iterator[NDArray[np.float32]]:
    """The vectors in the table of an index, each looked at."""
    read = 0
    for positions, rows in table_store().read(index.vector_table, dimension):
        if not np.array_equal(positions, np.arange(read, read + len(rows))) or read + len(rows) > count:
            raise incomplete_table(index)
        if wrong := flaws(rows):
            row, flaw = next(iter(wrong.items()))
            raise VectorsError(
                f'The table of the index "{index}" holds for chunk {read + row:,} a vector that is {flaw}: delete the '
                "index and build it again."
            )
        yield rows
        read += len(rows)
    if read != count:
        raise incomplete_table(index)


def incomplete_table(index: Index) -> VectorsError:
    """The error of a table that does not hold what its index says."""
    return VectorsError(
        f'The table of the index "{index}" does not hold one vector for each of its chunks: restore the database, or '
        "delete the index and build it again."
    )
