"""Building of indexes on the queue.

The first batch chunks the documents (or reuses an equal chunk set) and measures the model's speed on some chunks. It
adds batches of about BENCHBENCH_BATCH_SECONDS for the rest. Another builds the lexical index. A tree grows level by
level, once all below is encoded (`growing`). Vectors are stored in the transaction that ends their batch, so each is
stored once, and a failed build continues from the stored vectors. The next sweep frees those of a cancelled build.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Sum

from apps.operations.handlers import Handler
from apps.operations.leasing import Lease
from apps.operations.metrics import count_vectors
from apps.operations.models import Batch, BatchSpec, Operation, Status
from apps.operations.progress import build_common_fields, compute_progress
from apps.retrieval import building
from apps.retrieval.chunking import make_chunk_set
from apps.retrieval.deleting import delete_cancelled
from apps.retrieval.encoders import Encoder, load_encoder
from apps.retrieval.encoders.encoding import ChunkVectors, compute_chunk_vectors, load_index_encoder
from apps.retrieval.encoders.vector_cache import add_vectors, load_cached_positions, load_document_space, trim_cache
from apps.retrieval.growing import IndexBatch, describe_models, encode_batches, grow, plan_batches
from apps.retrieval.llms.answers import trim_answers
from apps.retrieval.llms.asking import check_llm
from apps.retrieval.models import ChunkSet, Index
from apps.retrieval.search.lexical_indexes import make_lexical_index
from apps.retrieval.strategies import TREES, get_strategy
from benchbench.ir.encoding import LONGEST_PROMPT
from benchbench.ir.records import Positions
from benchbench.texts.storable import clean_text

TRIAL = 64  # chunks encoded to measure the speed


class IndexHandler(Handler):
    """The work of an `index` operation; its subject is an index."""

    kind = Operation.Kind.INDEX
    subject = Index
    busy = "indexes being built"
    units = ""  # chunks and a few steps: `describe_units` counts the chunks alone
    limit = "BENCHMARK_MAX_INDEXING_PER_USER"

    def perform(self, batch: Batch, lease: Lease) -> None:
        index = Index.objects.select_related("collection", "chunk_set").get(pk=batch.operation.subject_id)
        handlers = {"chunk": chunk, "encode": encode, "grow": grow, "lexical": index_words}
        handlers[IndexBatch.from_batch(batch).step](index, batch, lease)

    def finalise(self, operation: Operation) -> None:
        index = Index.objects.select_related("chunk_set", "lexical_index").get(pk=operation.subject_id)
        building.finish(index, duration_sec=building.compute_cost(index))
        trim_answers()

    def stop(self, operation: Operation) -> None:
        status = Index.Status.CANCELLED if operation.status == Status.CANCELLED else Index.Status.FAILED
        Index.objects.filter(pk=operation.subject_id).update(status=status, error=operation.error)

    def tidy(self) -> None:
        delete_cancelled()

    def find_stage(self, operation: Operation) -> str:
        return find_stage(operation)

    def describe_units(self, operation: Operation) -> str:
        chunks, missing = _count_chunks(operation, _load_index(operation))
        return f"encoded {chunks - missing:,} of {chunks:,} chunks" if missing else ""

    def build_event(self, operation: Operation) -> tuple[str, dict[str, object]]:
        return "index_progress", describe_progress(operation)


def chunk(index: Index, batch: Batch, lease: Lease) -> None:
    """Chunk the documents, encode the first chunks, and add batches for the rest."""
    if get_strategy(index.strategy).requires_llm:
        check_llm(index)  # fails before hours of encoding, not at the first search
    encoder = load_encoder(index.encoder, index.encoder_parameters) if index.encoder else None
    chunk_set = prepare_chunk_set(index, encoder, lease)
    batches: list[BatchSpec] = [({"part": "lexical"}, 1)] if index.lexical else []
    if encoder is None:
        with lease.commit(batches=batches):
            return
    begun = time.perf_counter()
    missing = building.find_missing_positions(index, chunk_set, revision=encoder.revision)
    new = ~np.isin(missing, load_cached_positions(load_document_space(encoder), chunk_set))
    trial_size = min(int(np.searchsorted(np.cumsum(new), TRIAL, side="right")), building.MAX_BATCH_CHUNKS)
    trial, remaining = missing[:trial_size], missing[trial_size:]
    started = time.perf_counter()
    vectors = encode_chunks(chunk_set, trial, encoder, lease)
    rate = len(vectors.new_vectors) / (time.perf_counter() - started)
    size = max(TRIAL, int(rate * settings.BENCHBENCH_BATCH_SECONDS))
    batches += encode_batches(remaining, new[trial_size:], size)
    with lease.commit({"size": size}, batches=batches, then=plan_following(index, batch)):
        index.prompts = {kind: clean_text(prompt, LONGEST_PROMPT) for kind, prompt in encoder.prompts.items()}
        building.prepare_table(index, chunk_set, revision=encoder.revision, dimension=encoder.dimension)
        store_chunks(index, trial, vectors, encoder, begun)
    trim_cache()


@transaction.atomic
def prepare_chunk_set(index: Index, encoder: Encoder | None, lease: Lease) -> ChunkSet:
    """Assign the chunk set to an index, created if missing, and return it."""
    chunk_set = make_chunk_set(
        index.collection,
        strategy=index.strategy,
        parameters=index.chunk_parameters,
        models=describe_models(index, encoder),
        encoder=encoder,
        on_part=lease.check,
    )
    with lease.lock_operation():
        building.assign_chunk_set(index, chunk_set)
    return chunk_set


def encode(index: Index, batch: Batch, lease: Lease) -> None:
    """Encode and store the chunks of one range, with the model revision that the build started with."""
    assert index.chunk_set is not None
    payload = IndexBatch.from_batch(batch)
    positions = np.arange(payload.start, payload.end)
    encoder = load_index_encoder(index)
    begun = time.perf_counter()
    vectors = encode_chunks(index.chunk_set, positions, encoder, lease)
    with lease.commit(then=plan_following(index, batch)):
        store_chunks(index, positions, vectors, encoder, begun)
    trim_cache()


def plan_following(index: Index, batch: Batch) -> Callable[[], list[BatchSpec]] | None:
    """Return a function that returns the following batches of a tree once all is encoded; None without a tree."""
    return partial(plan_batches, index, batch.operation) if index.strategy in TREES else None


def store_chunks(index: Index, positions: Positions, vectors: ChunkVectors, encoder: Encoder, begun: float) -> None:
    """Store the vectors of chunks in the index, and new ones in the cache.

    The cost of the index counts the time since `begun` (performance counter), plus that of encoding the cached vectors.
    """
    building.insert_vectors(index, positions, vectors.vectors)
    add_vectors(load_document_space(encoder), vectors.new_vectors)
    seconds = time.perf_counter() - begun + vectors.cached_ms / 1000
    building.add_vectors_cost(
        index, positions, seconds=seconds, hits=len(positions) - len(vectors.new_vectors), cut=vectors.cut
    )


def encode_chunks(chunk_set: ChunkSet, positions: Positions, encoder: Encoder, lease: Lease) -> ChunkVectors:
    """Return the vectors of chunks, reporting progress and checking the lease. Count cache hits and misses."""

    def on_part(count: int) -> None:
        lease.check()
        if IndexBatch.from_batch(lease.batch).step == "encode":  # its units are chunks
            lease.report(count)

    vectors = compute_chunk_vectors(chunk_set, positions, encoder, on_part=on_part)
    count_vectors("documents", cached=vectors.cached, encoded=len(positions) - vectors.cached)
    return vectors


def index_words(index: Index, batch: Batch, lease: Lease) -> None:
    """Build the lexical index, or reuse that of an equal chunk set.

    It is assigned in the transaction that creates it, so no orphan remains.
    """
    assert index.chunk_set is not None
    with transaction.atomic():
        lexical_index = make_lexical_index(index.chunk_set)
        with lease.lock_operation():
            Index.objects.filter(pk=index.pk).update(lexical_index=lexical_index)
    with lease.commit():
        return


def describe_progress(operation: Operation) -> dict[str, object]:
    """Return the data of an `index_progress` event."""
    index = _load_index(operation)
    progress = compute_progress(operation)
    documents = index.collection.document_count if index else 0
    chunks, missing = _count_chunks(operation, index)
    return {
        **build_common_fields(operation),
        "index_id": str(operation.subject_id),
        "collection_id": str(index.collection_id) if index else None,
        "stage": progress.stage,
        "total_documents": documents,
        "processed_documents": documents * (chunks - missing) // chunks if chunks else 0,
        "chunks": chunks,
        "eta_seconds": progress.eta_seconds,
    }


def _load_index(operation: Operation) -> Index | None:
    return Index.objects.select_related("collection", "chunk_set").filter(pk=operation.subject_id).first()


def _count_chunks(operation: Operation, index: Index | None) -> tuple[int, int]:
    """Return how many chunks an index has and how many are not encoded; zeros until all documents are chunked.

    Summaries do not count. They have positions after all chunks, and are created level by level, so that their total is
    unknown.
    """
    done_parts = set(operation.batches.filter(state=Batch.State.DONE).values_list("payload__part", flat=True))
    if index is None or index.chunk_set is None or "chunk" not in done_parts:
        return 0, 0
    chunks = index.chunk_set.chunk_count
    encoding = operation.batches.filter(payload__part="encode", payload__start__lt=chunks)
    counted = encoding.aggregate(units=Sum("units", default=0), done=Sum("done_units", default=0))
    return chunks, min(chunks, counted["units"] - counted["done"])


def find_stage(operation: Operation) -> str:
    """Return the stage of a build, or its final status."""
    if not operation.is_active:
        return operation.status
    if operation.status == Status.PENDING:
        return "starting"
    left = set(operation.batches.exclude(state=Batch.State.DONE).values_list("payload__part", flat=True))
    if "encode" in left and "chunk" not in left:
        return "encoding"
    if left & {"chunk", "grow"}:  # "grow" chunks the level above
        return "chunking"
    # All vectors are stored; the lexical index and finishing remain.
    return "storing" if left else "finalizing"
