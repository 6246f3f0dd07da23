"""Import of vectors from an .npz file, instead of encoding."""

import time
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from apps.retrieval.building import assign_chunk_set, finish, insert_vectors, prepare_table
from apps.retrieval.chunking import make_chunk_set
from apps.retrieval.encoders.vector_cache import decode_vectors, load_query_space
from apps.retrieval.fingerprints import hash_text
from apps.retrieval.models import CachedVector, Index, VectorSpace
from apps.retrieval.search.lexical_indexes import make_lexical_index
from benchbench.database.failures import refresh
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.ir.ranking import find_flaws
from benchbench.ir.records import Vectors
from benchbench.reading.strict_json import decode_chunk

REQUIRED = ("document_ids", "document_vectors", "query_ids", "query_vectors")
OPTIONAL = ("model", "revision")
EXAMPLES = 3
ROWS_AT_ONCE = 10_000
SAME_TEXT = 1e-6  # of cosine: how far apart an encoder may put two occurrences of a text, in different batches


class VectorFileError(BenchbenchError):
    """A file of vectors is invalid. The message names file and array."""

    code = "vector_file"


@dataclass(frozen=True, slots=True)
class VectorFile:
    """The content of a file of vectors: distinct ids and unit vectors (n, d) of documents and of queries."""

    name: str
    sha256: str
    document_ids: list[str]
    document_vectors: Vectors
    query_ids: list[str]
    query_vectors: Vectors
    model: str
    revision: str


def read_vector_file(file: Path) -> VectorFile:
    """Read and check a file, and scale its vectors to unit length. Never unpickles. Raises VectorFileError."""
    arrays = _load_arrays(file)
    readers = {
        "document_ids": _parse_ids,
        "query_ids": _parse_ids,
        "document_vectors": _parse_vectors,
        "query_vectors": _parse_vectors,
    }
    read: dict[str, Any] = {name: reader(file.name, name, arrays[name]) for name, reader in readers.items()}
    for noun in ("document", "query"):
        if (rows := len(read[f"{noun}_vectors"])) != (count := len(read[f"{noun}_ids"])):
            raise _build_error(file.name, f"{noun}_vectors", f"has {rows:,} rows for {count:,} {noun}_ids")
    document_dimension, query_dimension = read["document_vectors"].shape[1], read["query_vectors"].shape[1]
    if read["query_ids"] and document_dimension != query_dimension:
        problem = f"has {query_dimension} dimensions, document_vectors {document_dimension}"
        raise _build_error(file.name, "query_vectors", problem)
    with file.open("rb") as content:
        digest = file_digest(content, "sha256").hexdigest()
    words: dict[str, Any] = {
        name: _parse_text(file.name, name, arrays[name]) if name in arrays else "" for name in OPTIONAL
    }
    return VectorFile(file.name, digest, **read, **words)


def describe_ids(ids: Sequence[str]) -> str:
    """Return the number of ids and some of them: 12 ids ('a', 'b', 'c' …)."""
    examples = ", ".join(map(repr, ids[:EXAMPLES]))
    return f"{counted(len(ids), 'id')} ({examples}{' …' if len(ids) > EXAMPLES else ''})"


def _load_arrays(file: Path) -> Mapping[str, NDArray[Any]]:
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except OSError as error:
        raise VectorFileError(f"{file.name} cannot be read: {error.strerror or error}.") from None
    except (ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile):  # pickled, .npy, or another format
        raise VectorFileError(
            f"{file.name} is not an .npz file of plain arrays; write it with numpy.savez, with ids as arrays of "
            "strings."
        ) from None
    for name in REQUIRED:
        if name not in arrays:
            raise VectorFileError(f"{file.name} has no array {name!r}; it needs {', '.join(REQUIRED)}.", field=name)
    for name in arrays.keys() - {*REQUIRED, *OPTIONAL}:
        raise VectorFileError(
            f"{file.name} has an unknown array {name!r}; choose from {', '.join(REQUIRED + OPTIONAL)}.",
            field=name,
        )
    return arrays


def _build_error(file_name: str, name: str, problem: str) -> VectorFileError:
    return VectorFileError(f"{file_name}: {name} {problem}.", field=name)


def _parse_ids(file_name: str, name: str, array: NDArray[Any]) -> list[str]:
    if array.ndim != 1 or array.dtype.kind not in "USiu":
        problem = f"must be a one-dimensional array of strings or whole numbers, not {array.dtype} of {array.shape}"
        raise _build_error(file_name, name, problem)
    location = f"{file_name}: {name} has an id that"
    ids = [
        decode_chunk(value, location=location) if isinstance(value, bytes) else str(value) for value in array.tolist()
    ]
    first = {value: row for row, value in reversed(list(enumerate(ids)))}
    if repeated := [value for row, value in enumerate(ids) if row != first[value]]:
        raise _build_error(file_name, name, f"repeats {describe_ids(repeated)}")
    return ids


def _parse_vectors(file_name: str, name: str, array: NDArray[Any]) -> Vectors:
    if array.ndim != 2 or array.dtype.kind != "f":
        problem = f"must be a matrix of floats with a row for each id, not {array.dtype} of {array.shape}"
        raise _build_error(file_name, name, problem)
    unit = array if array.dtype == np.float32 else np.empty(array.shape, np.float32)  # a copy may not fit into memory
    for start in range(0, len(array), ROWS_AT_ONCE):
        rows = array[start : start + ROWS_AT_ONCE].astype(np.float64)
        for row, flaw in find_flaws(rows, unit=False).items():
            raise _build_error(file_name, name, f"has a vector that is {flaw}, in row {start + row:,} (from 0)")
        unit[start : start + ROWS_AT_ONCE] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _parse_text(file_name: str, name: str, array: NDArray[Any]) -> str:
    if array.size != 1 or array.dtype.kind != "U":
        raise _build_error(file_name, name, "must be one string")
    return str(array.item())


@dataclass(frozen=True, slots=True)
class VectorImport:
    """Counts of an import. `unknown_queries` are in the file only; `missing_queries` will be encoded by the model."""

    documents: int
    queries: int
    unknown_queries: int
    missing_queries: int


@transaction.atomic
def import_vectors(
    index: Index, file: Path, *, queries: Mapping[str, str] | None = None, model: str = ""
) -> VectorImport:
    """Make a declared index ready with the vectors of an .npz file, in one transaction.

    The file has `document_ids`, `document_vectors`, `query_ids`, `query_vectors`, optionally `model` and `revision`.
    Each live document needs one vector, of the whole document; `queries` maps query ids to texts. A query without a
    vector is encoded when searched, by `model`, or else the model that the index or the file names. Raises
    VectorFileError, and ConflictError if the index is ready, being built, or cuts documents into chunks.
    """
    started = time.perf_counter()
    refresh(index, Index.objects.select_for_update(no_key=True))  # a deletion waits
    _check_index(index)
    vector_file = read_vector_file(file)
    index.encoder = model or index.encoder or vector_file.model
    index.vector_source = vector_file.sha256
    index.save(update_fields=["encoder", "vector_source", "updated_at"])
    chunk_set = make_chunk_set(index.collection, strategy=index.strategy, parameters=index.chunk_parameters)
    external_ids = chunk_set.leaves.order_by("position").values_list("document__external_id", flat=True)
    rows = _find_rows(vector_file, list(external_ids))
    # Never the stated revision alone: vectors encoded here under that revision differ, if only in their last bits.
    revision = f"imported:{vector_file.sha256[:16]}" + (f" ({vector_file.revision})" if vector_file.revision else "")
    revision = index.encoder_parameters.name_space(revision, ("", ""))  # of the queries that are encoded here
    assign_chunk_set(index, chunk_set)
    index.dimension = None  # drops the table of an earlier build
    prepare_table(index, chunk_set, revision=revision, dimension=vector_file.document_vectors.shape[1])
    for start in range(0, len(rows), ROWS_AT_ONCE):
        chosen = rows[start : start + ROWS_AT_ONCE]
        insert_vectors(index, np.arange(start, start + len(chosen)), vector_file.document_vectors[chosen])
    report = store_query_vectors(index, vector_file, queries or {})
    del vector_file  # the lexical index needs the memory
    if index.lexical:
        index.lexical_index = make_lexical_index(chunk_set)
        index.save(update_fields=["lexical_index"])
    finish(index, duration_sec=time.perf_counter() - started)
    return report


def _check_index(index: Index) -> None:
    if index.status in (Index.Status.READY, Index.Status.INDEXING):
        raise ConflictError(
            f'The index "{index}" is {index.status}: vectors can be imported only into a declared index.'
        )
    if index.chunk_parameters:
        raise ConflictError(
            f'The index "{index}" splits its documents into chunks: vectors can be imported for whole documents only.'
        )


def _find_rows(vector_file: VectorFile, external_ids: Sequence[str]) -> NDArray[np.int64]:
    """Return the rows of the documents, by position. Raises VectorFileError if file and collection have other ids."""
    rows = {external_id: row for row, external_id in enumerate(vector_file.document_ids)}
    if unknown := sorted(rows.keys() - set(external_ids)):
        raise VectorFileError(
            f"{vector_file.name} has vectors of {describe_ids(unknown)} that are not in the collection: import the "
            "documents first, or leave their vectors out.",
            field="document_ids",
        )
    if missing := [external_id for external_id in external_ids if external_id not in rows]:
        raise VectorFileError(
            f"{vector_file.name} has no vectors of {describe_ids(missing)} of the collection: every document "
            "needs one.",
            field="document_ids",
        )
    return np.array([rows[external_id] for external_id in external_ids], np.int64)


def store_query_vectors(index: Index, vector_file: VectorFile, queries: Mapping[str, str]) -> VectorImport:
    """Store the vectors of known queries permanently, replacing any encoded before; `queries` maps ids to texts.

    A query is searched by its text, so those of one text need one vector. Raises VectorFileError where they have
    several, in the file or after an earlier import of it.
    """
    known_rows = [row for row, query_id in enumerate(vector_file.query_ids) if query_id in queries]
    row_of: dict[str, int] = {}
    for row in known_rows:
        first = row_of.setdefault(hash_text(queries[vector_file.query_ids[row]]), row)
        if _differ(vector_file.query_vectors[first], vector_file.query_vectors[row]):
            raise _build_text_error(vector_file, row, f"query {vector_file.query_ids[first]!r}")
    space = load_query_space(index)
    pinned = decode_vectors(space, _load_pinned(space, row_of))
    for key, vector in pinned.items():
        if _differ(vector, vector_file.query_vectors[row_of[key]]):
            raise _build_text_error(vector_file, row_of[key], "query of an earlier import of the file")
    CachedVector.objects.bulk_create(
        [
            CachedVector(
                space=space,
                text_hash=key,
                vector=vector_file.query_vectors[row_of[key]].astype("<f4").tobytes(),
                pinned=True,
            )
            for key in sorted(row_of.keys() - pinned.keys())
        ],
        update_conflicts=True,
        unique_fields=["space", "text_hash"],
        update_fields=["vector", "pinned"],
        batch_size=1000,
    )
    return VectorImport(
        documents=len(vector_file.document_ids),
        queries=len(known_rows),
        unknown_queries=len(vector_file.query_ids) - len(known_rows),
        missing_queries=sum(hash_text(text) not in row_of for text in queries.values()),
    )


def _load_pinned(space: VectorSpace, hashes: Collection[str]) -> dict[str, bytes]:
    rows = space.vectors.filter(text_hash__in=hashes, pinned=True).values_list("text_hash", "vector")
    return {key: bytes(vector) for key, vector in rows}


def _differ(first: NDArray[np.float32], second: NDArray[np.float32]) -> bool:
    """Return whether two unit vectors differ by more than the rounding of an encoder."""
    return not float(first.astype(np.float64) @ second) >= 1 - SAME_TEXT


def _build_text_error(vector_file: VectorFile, row: int, namesake: str) -> VectorFileError:
    return _build_error(
        vector_file.name,
        "query_vectors",
        f"differ for the query {vector_file.query_ids[row]!r} and the {namesake}, which have the same text. Queries "
        "are searched by their texts: give both one vector, or reword one",
    )
