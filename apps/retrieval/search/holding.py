"""Locks on chunk sets, so that they are not deleted before an index uses them."""

from uuid import UUID

from django.db import connection

from apps.retrieval.models import ChunkSet

# The lock of foreign keys: it blocks only deletions of the row. Django has no method for it.
HOLD = f"SELECT id FROM {ChunkSet._meta.db_table} WHERE fingerprint = %s FOR KEY SHARE"  # nosec # of constants
ALONE = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def take_lock(name: str) -> None:
    """Take the advisory lock of a name until the transaction ends, waiting for other holders."""
    with connection.cursor() as cursor:
        cursor.execute(ALONE, [name])


def find_locked_set(fingerprint: str) -> ChunkSet | None:
    """Return the chunk set of a fingerprint, locked against deletion until the transaction ends, or None.

    Waits for a deletion in progress.
    """
    with connection.cursor() as cursor:
        cursor.execute(HOLD, [fingerprint])
        row = cursor.fetchone()
    return ChunkSet.objects.get(pk=row[0]) if row else None


def lock_for_index(chunk_set: ChunkSet, engine: str) -> None:
    """Lock a chunk set against deletion, and against concurrent builds of its lexical index by this engine.

    Raises ChunkSet.DoesNotExist if it was deleted.
    """
    take_lock(f"{engine} {chunk_set.pk}")
    if find_locked_set(chunk_set.fingerprint) is None:
        raise ChunkSet.DoesNotExist


def lock_chunk_set(key: UUID | None) -> None:
    """Lock a chunk set for deletion, waiting for other locks on it."""
    list(ChunkSet.objects.select_for_update().filter(pk__in=[key] if key else []).values_list("pk"))
