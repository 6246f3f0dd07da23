"""The cache of vectors: by model, revision, kind of text and the text's hash, and bounded.

Vectors of documents are a cache: an index has its own copy, so the longest unused go when they take more than
BENCHBENCH_VECTOR_CACHE_BYTES. Vectors of queries are what stored results were ranked with, and few: they stay until
someone clears them. Imported ones cannot be made again, and stay for good.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from django.conf import settings
from django.db import connection
from django.db.models import Count, F, Max, QuerySet

from apps.retrieval.encoders.base import Encoder, EncoderError, Kind, Vectors
from apps.retrieval.models import ChunkSet, Index, VectorSpace
from benchbench.database.binary import binary_cursor
from benchbench.ir.ranking import flaws
from benchbench.ir.records import Positions

ROWS_AT_ONCE = 10_000  # fifteen megabytes of a small model's vectors; for so many a table may be read as a whole

FIND = "SELECT text_hash, vector, encode_ms FROM retrieval_cachedvector WHERE space_id = %s AND text_hash = ANY(%s)"
TOUCH = """
    UPDATE retrieval_cachedvector SET used_at = now()
    WHERE space_id = %s AND text_hash = ANY(%s) AND used_at < now() - interval '1 day'
"""
ADD = """
    INSERT INTO retrieval_cachedvector (space_id, text_hash, vector, encode_ms, pinned, used_at)
    SELECT %s, text_hash, vector, encode_ms, false, now()
    FROM unnest(%b::text[], %b::bytea[], %b::float8[]) AS made (text_hash, vector, encode_ms)
    ON CONFLICT DO NOTHING
"""
KNOWN = """
    SELECT position FROM retrieval_chunk chunk JOIN retrieval_cachedvector cached USING (text_hash)
    WHERE cached.space_id = %s AND chunk.chunk_set_id = %s
"""
# An array: the rows of an IN (…) may be chosen anew for every row that is looked at, and more would go than the limit.
TRIM = """
    DELETE FROM retrieval_cachedvector WHERE id = ANY(ARRAY(
        SELECT id FROM retrieval_cachedvector WHERE space_id = ANY(%s) AND NOT pinned
        ORDER BY used_at LIMIT %s FOR UPDATE SKIP LOCKED
    ))
"""


def space_of(encoder: str, revision: str, kind: Kind, dimension: int) -> VectorSpace:
    """Return the space of a model, its revision and a kind of text. Raises EncoderError if it has another dimension."""
    space, _ = VectorSpace.objects.get_or_create(
        encoder=encoder, revision=revision, kind=kind, defaults={"dimension": dimension}
    )
    if space.dimension != dimension:
        raise EncoderError(
            f"The cache holds vectors of {encoder} in revision {revision} that have {space.dimension} dimensions, and "
            f"here it makes {dimension}: the model's files have changed under one revision. Clear its vectors "
            "under Vector cache in the admin, or give the model another name."
        )
    return space


def document_space(encoder: Encoder) -> VectorSpace:
    return space_of(encoder.model_name, encoder.revision, "document", encoder.dimension)


def query_space(index: Index, kind: Kind = "query") -> VectorSpace:
    """Return the space of the queries of an index, or of texts that are compared as if they were documents."""
    assert index.dimension is not None
    return space_of(index.encoder, index.encoder_revision, kind, index.dimension)


class TextVector(NamedTuple):
    """A text's vector (d,), and the milliseconds that encoding it took; None where it was imported.

    Of one that was encoded just now (`is_new`) `together_ms` is what all took that it was encoded with, where there
    were others.
    """

    vector: Vectors
    encode_ms: float | None = None
    is_new: bool = False
    together_ms: float | None = None


def find_vectors(space: VectorSpace, hashes: Sequence[str]) -> dict[str, TextVector]:
    """Return the vectors that the cache has of these texts, by their hashes; note that those of documents were used.

    The time of use is right to a day, so that using them often does not write them often.
    """
    cached: dict[str, TextVector] = {}
    with binary_cursor() as cursor:
        for start in range(0, len(hashes), ROWS_AT_ONCE):
            cursor.execute(FIND, [space.pk, list(hashes[start : start + ROWS_AT_ONCE])], binary=True)
            rows = {key: (vector, ms) for key, vector, ms in cursor.fetchall()}
            sound = sound_vectors(space, {key: vector for key, (vector, _) in rows.items()})
            cached |= {key: TextVector(vector, rows[key][1]) for key, vector in sound.items()}
            if rows and space.kind == "document":
                cursor.execute(TOUCH, [space.pk, list(rows)])
    return cached


def sound_vectors(space: VectorSpace, stored: Mapping[str, bytes]) -> dict[str, Vectors]:
    """Return the vectors (d,) of what is stored in a space, by the hashes of their texts.

    Those that are none, whoever stored them, are deleted, to be made anew; imported ones, which cannot be, are left
    out.
    """
    whole = {key: value for key, value in stored.items() if len(value) == 4 * space.dimension}
    vectors = np.frombuffer(b"".join(whole.values()), "<f4").astype(np.float32, copy=False)
    vectors = vectors.reshape(-1, space.dimension)
    wrong = flaws(vectors)
    sound = {key: vectors[row] for row, key in enumerate(whole) if row not in wrong}
    if lost := stored.keys() - sound.keys():
        bad = [stored[key] for key in lost]  # and not what another worker has made anew meanwhile
        space.vectors.filter(text_hash__in=lost, vector__in=bad, pinned=False).delete()
    return sound


def add_vectors(space: VectorSpace, vectors: Mapping[str, TextVector]) -> None:
    """Keep vectors that were encoded here, by the hashes of their texts; of those that are there already, the old ones
    stay.
    """
    hashes = sorted(vectors)  # in one order everywhere, or two workers might wait for each other
    with binary_cursor() as cursor:
        for start in range(0, len(hashes), ROWS_AT_ONCE):
            part = hashes[start : start + ROWS_AT_ONCE]
            stored = [vectors[key].vector.astype("<f4").tobytes() for key in part]
            cursor.execute(ADD, [space.pk, part, stored, [vectors[key].encode_ms for key in part]])


def known_positions(space: VectorSpace, chunk_set: ChunkSet) -> Positions:
    """Return the positions of the chunks whose texts the cache has vectors of, in any order."""
    with connection.cursor() as cursor:
        cursor.execute(KNOWN, [space.pk, chunk_set.pk])
        return np.fromiter((position for (position,) in cursor.fetchall()), np.int64)


def with_sizes(spaces: QuerySet[VectorSpace]) -> QuerySet[VectorSpace]:
    """Add to each space how many vectors it has (`entries`), their `bytes`, and when one was `last_used`."""
    counted = spaces.annotate(entries=Count("vectors"), last_used=Max("vectors__used_at"))
    return counted.annotate(bytes=F("entries") * F("dimension") * 4)


def trim_cache() -> int:
    """Delete the document vectors longest unused until BENCHBENCH_VECTOR_CACHE_BYTES hold the rest; return how many.

    Counts the cache, which that bound keeps countable: a hundred milliseconds for the default.
    """
    spaces: list[Any] = list(with_sizes(VectorSpace.objects.filter(kind="document")))
    excess = sum(space.bytes for space in spaces) - settings.BENCHBENCH_VECTOR_CACHE_BYTES
    if excess <= 0:
        return 0
    count = -(-excess // (4 * min(space.dimension for space in spaces)))
    with connection.cursor() as cursor:
        cursor.execute(TRIM, [[space.pk for space in spaces], count])
        return int(cursor.rowcount)
