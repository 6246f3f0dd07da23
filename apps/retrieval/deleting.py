"""Deletion of indexes with the parts that only they use, and clearing of the vector cache."""

import logging
import shutil
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from apps.collections.models import Collection
from apps.operations.launching import OperationActiveError
from apps.operations.models import Operation, Status
from apps.operations.workers.limits import HeldError, limited_transaction
from apps.retrieval.encoders.token_store import delete_tokens
from apps.retrieval.models import Chunk, ChunkSet, Index, LexicalIndex, VectorSpace
from apps.retrieval.search import full_text
from apps.retrieval.search.approximate import locate_collections
from apps.retrieval.search.holding import lock_chunk_set
from apps.retrieval.search.lexical_indexes import locate_lexical_index
from apps.retrieval.search.vectors import locate_vectors
from benchbench.database.bin import drop_table
from benchbench.database.failures import refresh
from benchbench.deleting import delete_all, delete_rows, delete_unused
from benchbench.errors import ConflictError

log = logging.getLogger(__name__)
BEGUN = Q(chunk_set__isnull=False) | Q(dimension__isnull=False)
FREE_LOCK_SECONDS = 1.0  # maximum wait for locked rows


@transaction.atomic
def delete_index(index: Index) -> None:
    """Delete an index with its vectors, and the chunks and lexical index that no other index uses.

    Raises ConflictError if runs use it, and OperationActiveError while it is being built.
    """
    refresh(index, Index.objects.select_for_update())  # a start of its build waits
    if Operation.active_on(index):
        raise OperationActiveError(f'The index "{index}" is being built: cancel the build first.')
    table, file, collections = index.vector_table, locate_vectors(index), locate_collections(index)
    lock_chunk_set(index.chunk_set_id)  # serialises deletions of its last indexes
    delete_unused(index)
    drop_table(table)
    delete_unused_parts(index.collection)
    # Files on other machines remain, unused.
    transaction.on_commit(lambda: file.unlink(missing_ok=True))
    transaction.on_commit(lambda: shutil.rmtree(collections, ignore_errors=True))


def delete_cancelled() -> None:
    """Delete the results of cancelled builds: their vectors, and chunks and lexical indexes that no other index uses.

    The vectors of their texts stay in the cache (`encoders.vector_cache`) for later builds. Rows that another process
    has locked, such as a frozen worker, are left to the next sweep.
    """
    for key in Index.objects.filter(BEGUN, status=Index.Status.CANCELLED).values_list("pk", flat=True):
        try:
            with limited_transaction(lock_seconds=FREE_LOCK_SECONDS):
                _free(key)
        except HeldError:
            log.info("Another process locks the rows of the cancelled build of index %s.", key)


def _free(key: UUID) -> None:
    index = Index.objects.select_for_update().filter(pk=key, status=Index.Status.CANCELLED).first()
    if index is None or Operation.active_on(index):
        return
    lock_chunk_set(index.chunk_set_id)
    drop_table(index.vector_table)
    delete_rows(index.cut_chunks.all())
    index.chunk_set = index.lexical_index = index.dimension = None
    index.encoder_revision, index.stats = "", {}
    index.save(update_fields=["chunk_set", "lexical_index", "dimension", "encoder_revision", "stats", "updated_at"])
    delete_unused_parts(index.collection)


def delete_unused_parts(collection: Collection) -> None:
    """Delete the lexical indexes and chunk sets of a collection that no index uses.

    Full text that a benchmark made stays with the chunk set, and BM25 by other analyzers while an index of the chunk
    set has BM25. A build locks the chunk set that it assigns until the index uses it. The caller has locked that of its
    own index. Other locked sets are skipped, for a later call.
    """
    sets = ChunkSet.objects.filter(collection=collection)
    searched = Exists(Index.objects.filter(chunk_set=OuterRef("chunk_set"), lexical_index__isnull=False))
    unused_indexes = LexicalIndex.objects.filter(~searched, index=None).exclude(engine=full_text.ENGINE)
    candidates = sets.filter(Q(index=None) | Q(lexical_indexes__in=unused_indexes)).values_list("pk", flat=True)
    locked = ChunkSet.objects.select_for_update(skip_locked=True).filter(pk__in=list(candidates))
    keys = list(locked.values_list("pk", flat=True))
    unused = LexicalIndex.objects.filter(chunk_set__in=keys, index__isnull=True)
    for words in unused.filter(~searched).exclude(engine=full_text.ENGINE):
        transaction.on_commit(partial(locate_lexical_index(words).unlink, missing_ok=True))
        delete_all([words])
    for words in unused.filter(engine=full_text.ENGINE, chunk_set__index__isnull=True):  # of all indexes of the set
        full_text.delete_full_text(words)
    chunk_sets = ChunkSet.objects.filter(pk__in=keys, index__isnull=True, lexical_indexes__isnull=True)
    keys = list(chunk_sets.values_list("pk", flat=True))
    delete_rows(Chunk.children.through.objects.filter(from_chunk__chunk_set__in=keys))
    delete_rows(Chunk.objects.filter(chunk_set__in=keys))  # 100,000 take about a second
    delete_all(ChunkSet.objects.filter(pk__in=keys))


def clear_vectors(space: VectorSpace) -> int:
    """Delete the cached vectors of a space and this machine's token vectors of it. Return the number of vectors.

    Imported vectors stay. Raises ConflictError while an index is built or a benchmark runs, which would have to encode
    again.
    """
    kinds = (Operation.Kind.INDEX, Operation.Kind.BENCHMARK)
    active = Operation.objects.filter(kind__in=kinds, status__in=Status.active()).first()
    if active is not None:
        raise ConflictError(f"The cache is in use: wait until the {active} ends, or cancel it.")
    count, _ = space.vectors.filter(pinned=False).delete()
    delete_tokens(space.encoder, space.revision, space.kind)
    VectorSpace.objects.filter(pk=space.pk, vectors__isnull=True).delete()
    return count
