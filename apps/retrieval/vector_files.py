"""Files of vectors that were made elsewhere: .npz with ids and vectors of documents and queries."""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.ir.ranking import flaws

Vectors = NDArray[np.float32]

REQUIRED = ("document_ids", "document_vectors", "query_ids", "query_vectors")
OPTIONAL = ("model", "revision")
EXAMPLES = 3
ROWS_AT_ONCE = 10_000


class VectorFileError(BenchbenchError):
    """A file of vectors that does not hold what it should; the sentence names file and array."""

    code = "vector_file"


@dataclass(frozen=True, slots=True)
class VectorFile:
    """What a file of vectors states: for documents and queries, distinct ids with as many unit vectors (n, d)."""

    name: str
    sha256: str
    document_ids: list[str]
    document_vectors: Vectors
    query_ids: list[str]
    query_vectors: Vectors
    model: str
    revision: str


def read_vector_file(file: Path) -> VectorFile:
    """Read and check a file, its vectors scaled to unit length. Raises VectorFileError. Never unpickles."""
    arrays = _arrays(file)
    read = _Reader(file.name, arrays)
    vector_file = VectorFile(
        name=file.name,
        sha256=_sha256(file),
        document_ids=read.ids("document_ids"),
        document_vectors=read.vectors("document_vectors"),
        query_ids=read.ids("query_ids"),
        query_vectors=read.vectors("query_vectors"),
        model=read.text("model"),
        revision=read.text("revision"),
    )
    for ids, vectors, noun in (
        (vector_file.document_ids, vector_file.document_vectors, "document"),
        (vector_file.query_ids, vector_file.query_vectors, "query"),
    ):
        if len(ids) != len(vectors):
            raise read.error(f"{noun}_vectors", f"has {len(vectors):,} rows for {len(ids):,} {noun}_ids")
    dimensions = vector_file.document_vectors.shape[1], vector_file.query_vectors.shape[1]
    if len(vector_file.query_ids) and dimensions[0] != dimensions[1]:
        raise read.error("query_vectors", f"has {dimensions[1]} dimensions, document_vectors {dimensions[0]}")
    return vector_file


def some(ids: Sequence[str]) -> str:
    """How many, and a few of them: 12 ids ('a', 'b', 'c' …)."""
    shown = ", ".join(map(repr, ids[:EXAMPLES]))
    return f"{counted(len(ids), 'id')} ({shown}{' …' if len(ids) > EXAMPLES else ''})"


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return file_digest(content, "sha256").hexdigest()


def _arrays(file: Path) -> Mapping[str, NDArray[Any]]:
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except OSError as error:
        raise VectorFileError(f"{file.name} cannot be read: {error.strerror or error}.") from None
    except (ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile):  # pickled, .npy, or something else
        raise VectorFileError(
            f"{file.name} is not an .npz file of plain arrays; write one with numpy.savez, ids as arrays of strings."
        ) from None
    for name in REQUIRED:
        if name not in arrays:
            raise VectorFileError(f"{file.name} has no array {name!r}; it needs {', '.join(REQUIRED)}.", field=name)
    for name in arrays.keys() - {*REQUIRED, *OPTIONAL}:
        raise VectorFileError(
            f"{file.name} has an array {name!r} of unknown meaning; it holds {', '.join(REQUIRED + OPTIONAL)}.",
            field=name,
        )
    return arrays


class _Reader:
    """Takes the arrays of one file for what they should be."""

    def __init__(self, file_name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.file_name = file_name
        self.arrays = arrays

    def error(self, name: str, what: str) -> VectorFileError:
        return VectorFileError(f"{self.file_name}: {name} {what}.", field=name)

    def ids(self, name: str) -> list[str]:
        array = self.arrays[name]
        if array.ndim != 1 or array.dtype.kind not in "USiu":
            raise self.error(name, f"must be a row of strings or whole numbers, not {array.dtype} of {array.shape}")
        ids = [value.decode() if isinstance(value, bytes) else str(value) for value in array.tolist()]
        seen: set[str] = set()
        if repeated := [value for value in ids if value in seen or seen.add(value)]:  # type: ignore[func-returns-value]
            raise self.error(name, f"repeats {some(repeated)}")
        return ids

    def vectors(self, name: str) -> Vectors:
        array = self.arrays[name]
        if array.ndim != 2 or array.dtype.kind != "f":
            raise self.error(name, f"must be a matrix of floats, a row for each id, not {array.dtype} of {array.shape}")
        unit = np.empty(array.shape, np.float32)
        for start in range(0, len(array), ROWS_AT_ONCE):
            rows = array[start : start + ROWS_AT_ONCE].astype(np.float64)
            for row, flaw in flaws(rows, unit=False).items():
                raise self.error(name, f"has a vector that is {flaw}, in row {start + row:,} (from 0)")
            unit[start : start + ROWS_AT_ONCE] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def text(self, name: str) -> str:
        if name not in self.arrays:
            return ""
        array = self.arrays[name]
        if array.size != 1 or array.dtype.kind != "U":
            raise self.error(name, "must be one string")
        return str(array.item())
