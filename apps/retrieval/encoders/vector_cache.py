"""The bounded cache of vectors, by model, revision, kind of text and the text's hash.

Indexes have their own copies of document vectors, so the least recently used ones are deleted above
BENCHBENCH_VECTOR_CACHE_BYTES. Query vectors are few and determine stored rankings, so they stay until the cache is
cleared. Imported vectors cannot be computed again and always stay.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from django.conf import settings
from django.db import connection
from django.db.models import Count, F, Max, QuerySet

from apps.retrieval.encoders.base import Encoder, EncoderError, Kind, Vectors
from apps.retrieval.models import ChunkSet, Index, VectorSpace
from benchbench.database.binary import binary_cursor
from benchbench.database.ordered import delete_in_order, retry_deadlocks
from benchbench.ir.ranking import find_flaws
from benchbench.ir.records import Positions

ROWS_AT_ONCE = 10_000  # 15 MB of a small model's vectors; for as many, PostgreSQL may scan the table

FIND = """
    SELECT text_hash, vector, encode_ms, is_cut FROM retrieval_cachedvector
    WHERE space_id = %s AND text_hash = ANY(%s)
"""
TOUCH = """
    UPDATE retrieval_cachedvector SET used_at = now() WHERE id = ANY(ARRAY(
        SELECT id FROM retrieval_cachedvector
        WHERE space_id = %s AND text_hash = ANY(%s) AND used_at < now() - interval '1 day'
        ORDER BY text_hash FOR NO KEY UPDATE SKIP LOCKED
    ))
"""
ADD = """
    INSERT INTO retrieval_cachedvector (space_id, text_hash, vector, encode_ms, is_cut, pinned, used_at)
    SELECT %s, text_hash, vector, encode_ms, is_cut, false, now()
    FROM unnest(%b::text[], %b::bytea[], %b::float8[], %b::boolean[]) AS made (text_hash, vector, encode_ms, is_cut)
    ON CONFLICT DO NOTHING
"""
FIND_POSITIONS = """
    SELECT position FROM retrieval_chunk chunk JOIN retrieval_cachedvector cached USING (text_hash)
    WHERE cached.space_id = %s AND chunk.chunk_set_id = %s
"""
# An array: PostgreSQL may evaluate an IN (…) again for each row, and would then delete more than the limit.
TRIM = """
    DELETE FROM retrieval_cachedvector WHERE id = ANY(ARRAY(
        SELECT id FROM retrieval_cachedvector WHERE space_id = ANY(%s) AND NOT pinned
        ORDER BY used_at LIMIT %s FOR UPDATE SKIP LOCKED
    ))
"""


def load_space(encoder: str, revision: str, kind: Kind, dimension: int) -> VectorSpace:
    """Return the space of a model, revision and kind of text. Raises EncoderError if its dimension differs."""
    space, _ = VectorSpace.objects.get_or_create(
        encoder=encoder, revision=revision, kind=kind, defaults={"dimension": dimension}
    )
    if space.dimension != dimension:
        raise EncoderError(
            f"The cache holds vectors of {encoder} in revision {revision} with {space.dimension} dimensions, but it "
            f"now makes {dimension}: the model's files have changed. Clear its vectors under Vector cache in the "
            "admin, or give the model another name."
        )
    return space


def load_document_space(encoder: Encoder) -> VectorSpace:
    return load_space(encoder.model_name, encoder.revision, "document", encoder.dimension)


def load_query_space(index: Index, kind: Kind = "query") -> VectorSpace:
    """Return the space of an index's queries. With kind "document", of texts encoded as documents."""
    assert index.dimension is not None
    return load_space(index.encoder, index.encoder_revision, kind, index.dimension)


class TextVector(NamedTuple):
    """A text's vector (d,), and the milliseconds that encoding it took, None if it was imported.

    If it was encoded just now (`is_new`) in a batch with others, `together_ms` is the time of the whole batch. `is_cut`
    if the model does not read the end of the text; None if that is not known, as of a document, which its index counts.
    """

    vector: Vectors
    encode_ms: float | None = None
    is_new: bool = False
    together_ms: float | None = None
    is_cut: bool | None = None


def find_vectors(space: VectorSpace, hashes: Sequence[str]) -> dict[str, TextVector]:
    """Return the cached vectors of texts by hash, and update the time of use of document vectors.

    The time of use is accurate to a day, to save writes.
    """
    cached: dict[str, TextVector] = {}
    with binary_cursor() as cursor:
        for start in range(0, len(hashes), ROWS_AT_ONCE):
            cursor.execute(FIND, [space.pk, list(hashes[start : start + ROWS_AT_ONCE])], binary=True)
            rows = {key: (vector, ms, is_cut) for key, vector, ms, is_cut in cursor.fetchall()}
            decoded = decode_vectors(space, {key: vector for key, (vector, *_) in rows.items()})
            for key, vector in decoded.items():
                _, ms, is_cut = rows[key]
                cached[key] = TextVector(vector, ms, is_cut=is_cut)
            if rows and space.kind == "document":
                cursor.execute(TOUCH, [space.pk, list(rows)])
    return cached


def decode_vectors(space: VectorSpace, stored: Mapping[str, bytes]) -> dict[str, Vectors]:
    """Decode the vectors (d,) stored in a space, by the hashes of their texts, leaving out invalid ones.

    Invalid vectors are deleted, so that they are computed again, except for imported ones.
    """
    complete = {key: value for key, value in stored.items() if len(value) == 4 * space.dimension}
    vectors = np.frombuffer(b"".join(complete.values()), "<f4").astype(np.float32, copy=False)
    vectors = vectors.reshape(-1, space.dimension)
    wrong = find_flaws(vectors)
    decoded = {key: vectors[row] for row, key in enumerate(complete) if row not in wrong}
    if lost := stored.keys() - decoded.keys():
        bad = [stored[key] for key in lost]  # not one that another worker has replaced meanwhile
        delete_in_order(space.vectors.filter(text_hash__in=lost, vector__in=bad, pinned=False))
    return decoded


def add_vectors(space: VectorSpace, vectors: Mapping[str, TextVector]) -> None:
    """Store newly encoded vectors by the hashes of their texts. Existing ones are not replaced."""
    hashes = sorted(vectors)  # always in the same order, to avoid deadlocks between workers
    for start in range(0, len(hashes), ROWS_AT_ONCE):
        batch_hashes = hashes[start : start + ROWS_AT_ONCE]
        stored = [vectors[key].vector.astype("<f4").tobytes() for key in batch_hashes]
        costs, cut = zip(*((vectors[key].encode_ms, vectors[key].is_cut) for key in batch_hashes), strict=True)
        values = [space.pk, batch_hashes, stored, list(costs), list(cut)]
        retry_deadlocks(partial(_add, values))


def _add(values: Sequence[object]) -> None:
    with binary_cursor() as cursor:
        cursor.execute(ADD, values)


def load_cached_positions(space: VectorSpace, chunk_set: ChunkSet) -> Positions:
    """Return the positions of chunks with a cached vector, in any order."""
    with connection.cursor() as cursor:
        cursor.execute(FIND_POSITIONS, [space.pk, chunk_set.pk])
        return np.fromiter((position for (position,) in cursor.fetchall()), np.int64)


def annotate_sizes(spaces: QuerySet[VectorSpace]) -> QuerySet[VectorSpace]:
    """Annotate spaces with the number of their vectors (`entries`), `bytes`, and `last_used`."""
    counted = spaces.annotate(entries=Count("vectors"), last_used=Max("vectors__used_at"))
    return counted.annotate(bytes=F("entries") * F("dimension") * 4)


def trim_cache() -> int:
    """Delete the least recently used document vectors above BENCHBENCH_VECTOR_CACHE_BYTES. Return their number.

    Counting the cache takes about 100 ms at the default limit.
    """
    spaces: list[Any] = list(annotate_sizes(VectorSpace.objects.filter(kind="document")))
    excess = sum(space.bytes for space in spaces) - settings.BENCHBENCH_VECTOR_CACHE_BYTES
    if excess <= 0:
        return 0
    count = -(-excess // (4 * min(space.dimension for space in spaces)))
    with connection.cursor() as cursor:
        cursor.execute(TRIM, [[space.pk for space in spaces], count])
        return int(cursor.rowcount)
