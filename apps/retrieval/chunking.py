"""Chunk sets: the chunks of one state of a collection, made once and shared by the indexes that chunk alike."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from apps.collections.fingerprints import live
from apps.collections.models import Collection
from apps.retrieval.fingerprints import fingerprint, text_hash
from apps.retrieval.models import ChunkSet
from apps.retrieval.strategies import get_strategy

DOCUMENTS_AT_ONCE = 1000
COPY_CHUNKS = (
    "COPY retrieval_chunk "
    '(chunk_set_id, document_id, level, ordinal, position, text, text_hash, start, "end") FROM STDIN'
)


@transaction.atomic
def make_chunk_set(
    collection: Collection,
    *,
    strategy: str,
    parameters: Mapping[str, Any],
    on_part: Callable[[], None] = lambda: None,
) -> ChunkSet:
    """Return the chunk set of the collection's documents as they are now, made if there is none yet.

    It is there whole or not at all. Positions number the chunks by external_id in code point order, then place in the
    document: the order in which equal scores rank. The collection is locked meanwhile, so that an import waits.
    `on_part` is called between parts and may raise. Raises StrategyError, ChunkingError.
    """
    parameters = get_strategy(strategy).check(parameters)
    locked = Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
    key = fingerprint(
        collection=str(locked.pk), state=locked.fingerprint, strategy=strategy, parameters=dict(parameters)
    )
    existing = ChunkSet.objects.filter(fingerprint=key).first()
    if existing:
        return existing
    made = ChunkSet.objects.create(
        collection=locked,
        collection_fingerprint=locked.fingerprint,
        strategy=strategy,
        parameters=parameters,
        fingerprint=key,
    )
    rows = _rows(made)
    count = 0
    while part := list(islice(rows, DOCUMENTS_AT_ONCE)):
        on_part()
        with connection.cursor() as cursor, cursor.cursor.copy(COPY_CHUNKS) as copy:
            for position, row in enumerate(part, start=count):
                copy.write_row((made.pk, *row[:3], position, *row[3:]))
        count += len(part)
    made.chunk_count = count
    made.completed_at = timezone.now()
    made.save(update_fields=["chunk_count", "completed_at", "updated_at"])
    return made


def _rows(chunk_set: ChunkSet) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a set's chunks in the order of their positions."""
    strategy = get_strategy(chunk_set.strategy)
    documents = live(chunk_set.collection).order_by("external_id").values_list("pk", "title", "text")
    for pk, title, text in documents.iterator(chunk_size=DOCUMENTS_AT_ONCE):
        for ordinal, piece in enumerate(strategy.chunks(title, text, chunk_set.parameters)):
            yield pk, 0, ordinal, piece.text, text_hash(piece.text), piece.start, piece.end
