"""Holding a chunk set, so that nobody deletes it before an index has it."""

from uuid import UUID

from django.db import connection

from apps.retrieval.models import ChunkSet

# The lock that foreign keys take: it keeps out who deletes the row, and nobody else. Django has no word for it.
HOLD = f"SELECT id FROM {ChunkSet._meta.db_table} WHERE fingerprint = %s FOR KEY SHARE"  # nosec # of constants
ALONE = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def be_alone(name: str) -> None:
    """Wait until no other transaction is at what has this name; others wait until this one ends."""
    with connection.cursor() as cursor:
        cursor.execute(ALONE, [name])


def held_chunk_set(fingerprint: str) -> ChunkSet | None:
    """Return the chunk set of a fingerprint, which stays until the transaction ends; None where there is none.

    Waits for whoever is deleting it.
    """
    with connection.cursor() as cursor:
        cursor.execute(HOLD, [fingerprint])
        row = cursor.fetchone()
    return ChunkSet.objects.get(pk=row[0]) if row else None


def hold_to_index(chunk_set: ChunkSet, engine: str) -> None:
    """Hold a chunk set, and be the only one who makes a lexical index of it by this engine; others wait.

    Raises ChunkSet.DoesNotExist where it was deleted.
    """
    be_alone(f"{engine} {chunk_set.pk}")
    if held_chunk_set(chunk_set.fingerprint) is None:
        raise ChunkSet.DoesNotExist


def lock_chunk_set(key: UUID | None) -> None:
    """Lock a chunk set that may be deleted, once nobody holds it."""
    list(ChunkSet.objects.select_for_update().filter(pk__in=[key] if key else []).values_list("pk"))
