"""The steps of building an index: size limits, its table of vectors, missing positions, and finishing."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection
from django.utils import timezone
from numpy.typing import NDArray

from apps.collections.models import Collection, Section, list_live
from apps.retrieval.availability import require_available
from apps.retrieval.deleting import delete_unused_parts
from apps.retrieval.encoders import Cut
from apps.retrieval.filters import PLACES, find_place
from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.models import ChunkSet, CutChunk, Index
from apps.retrieval.search.holding import lock_chunk_set
from apps.retrieval.search.vectors import count_rows, create_table, insert_rows, load_ids
from apps.retrieval.strategies import TREES, get_strategy, select_search_parameters
from benchbench.database.bin import drop_table
from benchbench.errors import BenchbenchError
from benchbench.ir.records import Positions

WINDOWS = "COALESCE(SUM(GREATEST(1, CEIL(({length}(text) - {overlap})::numeric / {step}))), 0)"
MAX_BATCH_CHUNKS = 10_000  # chunks that one batch stores, encoded or cached


class IndexingError(BenchbenchError):
    """An index cannot be created or built as specified."""

    code = "indexing"


def count_max_pieces(collection: Collection, strategy: str, parameters: Mapping[str, Any], *, limit: int = 0) -> int:
    """Return an upper bound of the number of pieces (chunks and the summaries above them) of the documents.

    `parameters` are complete. The bound is computed from the texts' lengths in bytes, which are stored. If it exceeds
    `limit`, it is computed from their lengths in characters, which must be counted.
    """
    if "size" not in parameters:
        return collection.document_count
    at_sections = "sections" in parameters or "sections" not in get_strategy(strategy).declared.parameters
    sections = Section.objects.filter(document__in=list_live(collection)).count() if at_sections else 0
    # A section adds up to two windows; the text between two sections is a piece of the section level too.
    above = 2 * (collection.document_count + sections) if get_strategy(strategy).levels > 1 else 0
    for length in ("octet_length", "char_length"):
        bound = _count_windows(collection, length, parameters["size"], parameters["overlap"]) + 2 * sections + above
        if bound <= limit:
            break
    return bound


def require_chunk_limit(collection: Collection, strategy: str, parameters: Mapping[str, object]) -> None:
    """Check that an index would have at most BENCHBENCH_MAX_CHUNKS pieces. Raises IndexingError.

    Indexes of whole documents have no limit. `parameters` are complete.
    """
    limit = settings.BENCHBENCH_MAX_CHUNKS
    if "size" not in parameters or (bound := count_max_pieces(collection, strategy, parameters, limit=limit)) <= limit:
        return
    raise IndexingError(
        f'A chunk size of {parameters["size"]} cuts the {collection.document_count:,} documents of "{collection}" '
        f"into up to {bound:,} chunks; an index must have at most {limit:,} (BENCHBENCH_MAX_CHUNKS). Choose larger "
        "chunks, or a smaller overlap.",
        field="chunk_parameters",
    )


def require_fitted_limit(collection: Collection, count: int) -> None:
    """Check the number of chunks so far that fit an encoder, which only dividing them shows. Raises IndexingError."""
    limit = max(settings.BENCHBENCH_MAX_CHUNKS, collection.document_count)
    if count > limit:
        raise IndexingError(
            f'The documents of "{collection}" divide into more than {limit:,} chunks that the encoder reads to their '
            "end (BENCHBENCH_MAX_CHUNKS): leave fit_encoder out, or choose an encoder that reads more.",
            field="chunk_parameters",
        )


def _count_windows(collection: Collection, length: str, size: int, overlap: int) -> int:
    documents, arguments = list_live(collection).values("text").query.sql_with_params()
    counted = WINDOWS.format(length=length, overlap=int(overlap), step=int(size - overlap))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {counted} FROM ({documents}) AS document", arguments)  # nosec # whole numbers, and a query of Django's
        return int(cursor.fetchone()[0])


def assign_chunk_set(index: Index, chunk_set: ChunkSet) -> None:
    """Assign a chunk set to an index. Delete its previous one unless another index uses it.

    Call it in the transaction that creates the set, so that an interrupted build leaves no orphans.
    """
    if index.chunk_set_id == chunk_set.pk:
        return
    lock_chunk_set(index.chunk_set_id)
    index.chunk_set, index.lexical_index = chunk_set, None
    index.dimension = None  # existing vectors belong to other chunks: `prepare_table` drops them
    index.stats = {}
    index.save(update_fields=["chunk_set", "lexical_index", "dimension", "stats", "updated_at"])
    delete_unused_parts(index.collection)


def find_missing_positions(index: Index, chunk_set: ChunkSet, *, revision: str) -> Positions:
    """Return the positions without a vector, ascending. Vectors of an interrupted build are kept.

    All positions are missing if the chunk set or the model revision has changed since.
    """
    positions = np.arange(chunk_set.vector_count)
    if not _can_continue(index, chunk_set, revision):
        return positions
    return np.setdiff1d(positions, load_ids(index.vector_table), assume_unique=True)


def prepare_table(index: Index, chunk_set: ChunkSet, *, revision: str, dimension: int) -> None:
    """Create the table for the vectors of the index's chunks, and store the model's revision, prompts and dimension.

    Drops the table of a build with another chunk set or revision.
    """
    if not _can_continue(index, chunk_set, revision):
        drop_table(index.vector_table)
        create_table(index.vector_table, dimension)
        index.stats = {}
    index.encoder_revision, index.dimension = revision, dimension
    index.save(update_fields=["encoder_revision", "prompts", "dimension", "stats", "updated_at"])


def _can_continue(index: Index, chunk_set: ChunkSet, revision: str) -> bool:
    return index.dimension is not None and (index.chunk_set_id, index.encoder_revision) == (chunk_set.pk, revision)


def insert_vectors(index: Index, positions: Positions, vectors: NDArray[np.float32]) -> None:
    """Store vectors (n, d) of chunks by ascending positions, with what filters need of their documents.

    Most documents have no metadata, and parsing it for each row would take longer than storing the vectors.
    """
    assert index.chunk_set is not None
    if not len(positions):
        return
    span = index.chunk_set.chunks.filter(position__range=(int(positions[0]), int(positions[-1])))
    with_metadata = span.filter(document__isnull=False).exclude(document__metadata={})
    metadata_of = dict(with_metadata.values_list("position", "document__metadata"))
    metadata = [metadata_of.get(position, {}) for position in positions.tolist()] if metadata_of else None
    ids = dict(span.filter(document__isnull=False).values_list("position", "document__external_id"))
    places = [find_place(ids[position]) if position in ids else PLACES - 1 for position in positions.tolist()]
    insert_rows(index.vector_table, positions, vectors, metadata, np.array(places))


def add_vectors_cost(index: Index, positions: Positions, *, seconds: float, hits: int, cut: Cut | None) -> None:
    """Add to the seconds, cache hits and cut chunks of an index's vectors, in the transaction that stores them."""
    locked = Index.objects.select_for_update(no_key=True).only("stats").get(pk=index.pk)
    locked.stats["vectors_sec"] = locked.stats.get("vectors_sec", 0.0) + seconds
    locked.stats["cache_hits"] = locked.stats.get("cache_hits", 0) + hits
    if cut is not None:
        before = locked.stats.get("cut", {})
        locked.stats["cut"] = {
            "window": cut.window,
            "chunks": before.get("chunks", 0) + len(cut.ends),
            "tokens": before.get("tokens", 0) + cut.tokens,
            "cut_tokens": before.get("cut_tokens", 0) + cut.cut_tokens,
        }
        rows = [CutChunk(index=index, position=positions[row], read=end) for row, end in cut.ends.items()]
        CutChunk.objects.bulk_create(rows, ignore_conflicts=True)
    locked.save(update_fields=["stats"])


def compute_cost(index: Index) -> float:
    """Return the seconds of work of an index, summed over workers: its chunks, summaries, vectors and lexical index.

    Parts shared with other indexes and cached vectors count the time that computing them took. Loading models and
    waiting do not count. So the cost does not depend on earlier builds.
    """
    seconds = [structure.build_seconds for structure in (index.chunk_set, index.lexical_index) if structure is not None]
    return sum(seconds) + float(index.stats.get("vectors_sec", 0.0))


def cut_ranges(positions: Positions, new: NDArray[np.bool_], size: int) -> Sequence[tuple[int, int]]:
    """Cut ascending positions into ranges (start, end) without gaps, with at most `size` positions `new` (n,)."""
    if not len(positions):
        return []
    new_groups = np.maximum(np.cumsum(new) - 1, 0) // size
    size_groups = np.arange(len(positions)) // MAX_BATCH_CHUNKS
    ends = (np.diff(positions) > 1) | (np.diff(new_groups) > 0) | (np.diff(size_groups) > 0)
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(positions, np.flatnonzero(ends) + 1)]


def _count_empty(chunk_set: ChunkSet) -> dict[str, object]:
    empty = chunk_set.leaves.filter(text="")
    first = empty.order_by("position").values_list("document__external_id", flat=True).first()
    return {} if first is None else {"empty": {"chunks": empty.count(), "document": first}}


def finish(index: Index, *, duration_sec: float) -> None:
    """Mark an index as ready, with its fingerprint and stats, once all its parts are stored.

    `duration_sec` is the time of the work. Raises IndexingError if parts are missing, UnavailableError for parts that
    are not available here.
    """
    require_available(index)
    assert index.chunk_set is not None
    chunk_set = index.chunk_set
    vector_count = count_rows(index.vector_table) if index.has_vectors else 0
    if index.has_vectors and vector_count != chunk_set.vector_count:
        raise IndexingError(
            f'The index "{index}" has {vector_count:,} vectors for {chunk_set.vector_count:,} chunks; build it again.'
        )
    if chunk_set.completed_at is None:
        raise IndexingError(f'The index "{index}" has an incomplete tree of summaries; build it again.')
    lexical = index.lexical_index
    searching = select_search_parameters(get_strategy(index.strategy), index.chunk_parameters)
    asks_for_summaries = index.strategy in TREES and TREES[index.strategy].requires_llm
    index.fingerprint = fingerprint(
        chunk_set=chunk_set.fingerprint,
        encoder=index.encoder,
        revision=index.encoder_revision,
        vector_source=index.vector_source,
        lexical=lexical.fingerprint if lexical else None,
        **({"search_parameters": searching} if searching else {}),
    )
    index.stats = {
        "duration_sec": round(duration_sec, 3),
        "num_documents": chunk_set.leaves.values("document").distinct().count(),
        "num_chunks": chunk_set.chunk_count,
        "num_vectors": vector_count,
        "embed_calls": 0 if index.vector_source else vector_count,
        "cache_hits": index.stats.get("cache_hits", 0),
        "llm_calls": chunk_set.summary_count if asks_for_summaries else 0,
        "bytes": 4 * (index.dimension or 0) * vector_count + (lexical.size_bytes if lexical else 0),
        **({"vectors_sec": round(index.stats["vectors_sec"], 3)} if "vectors_sec" in index.stats else {}),
        **({"cut": index.stats["cut"]} if "cut" in index.stats else {}),
        **_count_empty(chunk_set),
    }
    index.status, index.error, index.ready_at = Index.Status.READY, "", timezone.now()
    index.save(update_fields=["fingerprint", "stats", "status", "error", "ready_at", "updated_at"])
