"""Deleting an index, and what only it used; clearing the cache of vectors."""

import logging
import shutil
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from apps.collections.models import Collection
from apps.operations.launching import OperationActiveError
from apps.operations.models import Operation, Status
from apps.operations.workers.limits import HeldError, limited
from apps.retrieval.encoders.token_store import forget_tokens
from apps.retrieval.models import Chunk, ChunkSet, Index, LexicalIndex, VectorSpace
from apps.retrieval.search import full_text
from apps.retrieval.search.approximate import collections_folder
from apps.retrieval.search.holding import lock_chunk_set
from apps.retrieval.search.vectors import drop_table, vectors_file
from benchbench.database.failures import refresh
from benchbench.deleting import delete_rows, delete_unused
from benchbench.errors import ConflictError

log = logging.getLogger(__name__)
BEGUN = Q(chunk_set__isnull=False) | Q(dimension__isnull=False)
FREE_LOCK_SECONDS = 1.0  # for so long what is to be freed is waited for


@transaction.atomic
def delete_index(index: Index) -> None:
    """Delete an index with its vectors, and the chunks and lexical index that no other index uses.

    Raises ConflictError where runs point at it, and OperationActiveError while it is being built.
    """
    refresh(index, Index.objects.select_for_update())  # whoever starts to build it waits
    if Operation.active_on(index):
        raise OperationActiveError(f'The index "{index}" is being built: cancel that first.')
    table, file, collections = index.vector_table, vectors_file(index), collections_folder(index)
    lock_chunk_set(index.chunk_set_id)  # of two that delete its last indexes, one comes after the other
    delete_unused(index)
    drop_table(table)
    delete_unused_parts(index.collection)
    # Other machines keep theirs, unused.
    transaction.on_commit(lambda: file.unlink(missing_ok=True))
    transaction.on_commit(lambda: shutil.rmtree(collections, ignore_errors=True))


def free_cancelled() -> None:
    """Delete what cancelled builds had made: their vectors, and the chunks and words that no other index uses.

    The vectors of their texts stay where all builds find them (`encoders.vector_cache`), so that the next one need not
    encode them again. What somebody holds, such as a worker that stands still, is left to the next time.
    """
    for key in Index.objects.filter(BEGUN, status=Index.Status.CANCELLED).values_list("pk", flat=True):
        try:
            with limited(lock_seconds=FREE_LOCK_SECONDS):
                _free(key)
        except HeldError:
            log.info("What the cancelled build of index %s had made is held by another process.", key)


def _free(key: UUID) -> None:
    index = Index.objects.select_for_update().filter(pk=key, status=Index.Status.CANCELLED).first()
    if index is None or Operation.active_on(index):
        return
    lock_chunk_set(index.chunk_set_id)
    drop_table(index.vector_table)
    index.chunk_set = index.lexical_index = index.dimension = None
    index.encoder_revision, index.stats = "", {}
    index.save(update_fields=["chunk_set", "lexical_index", "dimension", "encoder_revision", "stats", "updated_at"])
    delete_unused_parts(index.collection)


def delete_unused_parts(collection: Collection) -> None:
    """Delete the lexical indexes and chunk sets of a collection that no index uses.

    Whoever takes one for an index holds its chunk set until the index has it. The caller has locked that of its own
    index; others that are held or locked are left to who has them, or to the next.
    """
    sets = ChunkSet.objects.filter(collection=collection)
    of_no_index = LexicalIndex.objects.filter(index=None).exclude(engine=full_text.ENGINE)
    doubtful = sets.filter(Q(index=None) | Q(lexical_indexes__in=of_no_index)).values_list("pk", flat=True)
    locked = ChunkSet.objects.select_for_update(skip_locked=True).filter(pk__in=list(doubtful))
    keys = list(locked.values_list("pk", flat=True))
    unused = LexicalIndex.objects.filter(chunk_set__in=keys, index__isnull=True)
    unused.exclude(engine=full_text.ENGINE).delete()
    for words in unused.filter(engine=full_text.ENGINE, chunk_set__index__isnull=True):  # it belongs to no one index
        full_text.delete_full_text(words)
    chunk_sets = ChunkSet.objects.filter(pk__in=keys, index__isnull=True, lexical_indexes__isnull=True)
    keys = list(chunk_sets.values_list("pk", flat=True))
    delete_rows(Chunk.children.through.objects.filter(from_chunk__chunk_set__in=keys))
    delete_rows(Chunk.objects.filter(chunk_set__in=keys))  # a hundred thousand take about a second
    ChunkSet.objects.filter(pk__in=keys).delete()


def clear_vectors(space: VectorSpace) -> int:
    """Delete the cached vectors of a space, and the token vectors that this machine keeps; return how many vectors.

    Imported ones stay. Raises ConflictError while an index is built or a benchmark runs, which would have to encode
    again.
    """
    kinds = (Operation.Kind.INDEX, Operation.Kind.BENCHMARK)
    active = Operation.objects.filter(kind__in=kinds, status__in=Status.active()).first()
    if active is not None:
        raise ConflictError(f"The cache is in use: wait for the end of the {active}, or cancel it.")
    count, _ = space.vectors.filter(pinned=False).delete()
    forget_tokens(space.encoder, space.revision, space.kind)
    VectorSpace.objects.filter(pk=space.pk, vectors__isnull=True).delete()
    return count
