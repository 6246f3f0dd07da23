"""BM25 indexes in PostgreSQL: one per chunk set, in pieces, so that any worker on any machine can load it."""

import time
from hashlib import sha256

from django.db import transaction
from django.utils import timezone

from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.models import ChunkSet, LexicalIndex, LexicalPiece
from apps.retrieval.search.holding import lock_for_index
from apps.retrieval.search.lexical import PARAMETERS, Bm25
from benchbench.errors import BenchbenchError

ENGINE = "bm25"
PIECE_BYTES = 8 * 2**20


class LexicalIndexError(BenchbenchError):
    """A lexical index is damaged or cannot be built."""

    code = "lexical_index"


@transaction.atomic
def make_lexical_index(chunk_set: ChunkSet) -> LexicalIndex:
    """Return the BM25 index of a chunk set, built in one transaction if missing."""
    lock_for_index(chunk_set, ENGINE)
    key = fingerprint(chunk_set=chunk_set.fingerprint, engine=ENGINE, parameters=PARAMETERS)
    existing = LexicalIndex.objects.filter(fingerprint=key).first()
    if existing:
        return existing
    started = time.perf_counter()
    data = Bm25.build(list(chunk_set.leaves.order_by("position").values_list("text", flat=True))).to_bytes()
    index = LexicalIndex.objects.create(
        chunk_set=chunk_set,
        engine=ENGINE,
        parameters=PARAMETERS,
        fingerprint=key,
        size_bytes=len(data),
        completed_at=timezone.now(),
        build_seconds=time.perf_counter() - started,
    )
    for ordinal, start in enumerate(range(0, len(data), PIECE_BYTES)):
        piece = data[start : start + PIECE_BYTES]
        LexicalPiece.objects.create(lexical_index=index, ordinal=ordinal, data=piece, sha256=sha256(piece).hexdigest())
    return index


def load_lexical_index(lexical_index: LexicalIndex) -> Bm25:
    """Return a stored index, ready to search. Raises LexicalIndexError naming the damaged piece."""
    data = bytearray()
    pieces = lexical_index.pieces.order_by("ordinal").values_list("ordinal", "data", "sha256")
    for expected, (ordinal, piece, digest) in enumerate(pieces):
        if ordinal != expected or sha256(piece).hexdigest() != digest:
            raise _build_error(lexical_index, f"piece {expected} is {'missing' if ordinal != expected else 'damaged'}")
        data += piece
    if len(data) != lexical_index.size_bytes:
        raise _build_error(lexical_index, f"{len(data):,} of its {lexical_index.size_bytes:,} bytes were found")
    return Bm25.from_bytes(bytes(data))


def _build_error(lexical_index: LexicalIndex, problem: str) -> LexicalIndexError:
    return LexicalIndexError(
        f"The lexical index {lexical_index.pk} cannot be read: {problem}. Restore the database, or delete the indexes "
        "that use it and build them again."
    )
