"""Vectors that were made elsewhere, instead of encoding."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from django.db import transaction

from apps.retrieval.building import finish, insert_vectors, prepare_table, take_chunks
from apps.retrieval.chunking import make_chunk_set
from apps.retrieval.encoders.encoding import cached_vector
from apps.retrieval.encoders.vector_cache import space_of
from apps.retrieval.fingerprints import text_hash
from apps.retrieval.models import CachedVector, ChunkSet, Index
from apps.retrieval.search.lexical_indexes import make_lexical_index
from apps.retrieval.vector_files import VectorFile, VectorFileError, Vectors, read_vector_file, some
from benchbench.database.rereading import refresh
from benchbench.errors import ConflictError


@dataclass(frozen=True, slots=True)
class VectorImport:
    """What was imported. `unknown_queries` are in the file only; `missing_queries` will be encoded by the model."""

    documents: int
    queries: int
    unknown_queries: int
    missing_queries: int


@transaction.atomic
def import_vectors(
    index: Index, file: Path, *, queries: Mapping[str, str] | None = None, model: str = ""
) -> VectorImport:
    """Make a declared index ready with the vectors of an .npz file, all of it or nothing.

    The file holds `document_ids`, `document_vectors`, `query_ids`, `query_vectors`, optionally `model` and `revision`.
    Each live document needs a vector, of the document as a whole; `queries` gives the text of each query id. A query
    without a vector is encoded when it is searched for, by `model`, or else the one that the index or the file names.
    Raises VectorFileError, and ConflictError where the index is not one that waits for its vectors.
    """
    started = time.perf_counter()
    refresh(index, Index.objects.select_for_update(no_key=True))  # whoever deletes it waits
    _check_index(index)
    vector_file = read_vector_file(file)
    index.encoder = model or index.encoder or vector_file.model
    index.vector_source = vector_file.sha256
    index.save(update_fields=["encoder", "vector_source", "updated_at"])
    chunk_set = make_chunk_set(index.collection, strategy=index.strategy, parameters=index.chunk_parameters)
    vectors = _in_order(vector_file, _external_ids(chunk_set))
    # Never the stated revision alone: vectors of the same name that were made here are others, if only in last bits.
    revision = f"imported:{vector_file.sha256[:16]}" + (f" ({vector_file.revision})" if vector_file.revision else "")
    take_chunks(index, chunk_set)
    index.dimension = None  # so that a table which an earlier build has begun goes
    prepare_table(index, chunk_set, revision=revision, dimension=vectors.shape[1])
    insert_vectors(index, np.arange(len(vectors)), vectors)
    report = _keep_queries(index, vector_file, queries or {})
    if index.lexical:
        index.lexical_index = make_lexical_index(chunk_set)
        index.save(update_fields=["lexical_index"])
    finish(index, duration_sec=time.perf_counter() - started)
    return report


def _check_index(index: Index) -> None:
    if index.status in (Index.Status.READY, Index.Status.INDEXING):
        raise ConflictError(
            f'The index "{index}" is {index.status}: vectors are imported into one that was only declared.'
        )
    if index.chunk_parameters:
        raise ConflictError(
            f'The index "{index}" cuts its documents into chunks: vectors are imported for whole documents only.'
        )


def _external_ids(chunk_set: ChunkSet) -> list[str]:
    return list(chunk_set.leaves.order_by("position").values_list("document__external_id", flat=True))


def _in_order(vector_file: VectorFile, external_ids: Sequence[str]) -> Vectors:
    """Return the documents' vectors by position. Raises VectorFileError unless both know the same documents."""
    rows = {external_id: row for row, external_id in enumerate(vector_file.document_ids)}
    if unknown := sorted(rows.keys() - set(external_ids)):
        raise VectorFileError(
            f"{vector_file.name} has vectors of {some(unknown)} that the collection does not have: import the "
            "documents first, or leave their vectors out.",
            field="document_ids",
        )
    if missing := [external_id for external_id in external_ids if external_id not in rows]:
        raise VectorFileError(
            f"{vector_file.name} has no vectors of {some(missing)} of the collection: every document needs one.",
            field="document_ids",
        )
    return vector_file.document_vectors[[rows[external_id] for external_id in external_ids]]


def _keep_queries(index: Index, vector_file: VectorFile, queries: Mapping[str, str]) -> VectorImport:
    """Store the vectors of known queries for good, in the place of any that were encoded before."""
    known = [row for row, query_id in enumerate(vector_file.query_ids) if query_id in queries]
    assert index.dimension is not None
    space = space_of(index.encoder, index.encoder_revision, "query", index.dimension)
    by_text = {text_hash(queries[vector_file.query_ids[row]]): vector_file.query_vectors[row] for row in known}
    CachedVector.objects.bulk_create(
        [cached_vector(space, key, vector, pinned=True) for key, vector in by_text.items()],
        update_conflicts=True,
        unique_fields=["space", "text_hash"],
        update_fields=["vector", "pinned"],
        batch_size=1000,
    )
    return VectorImport(
        documents=len(vector_file.document_ids),
        queries=len(known),
        unknown_queries=len(vector_file.query_ids) - len(known),
        missing_queries=len(queries) - len(known),
    )
