"""BM25 indexes, one per chunk set and analyzer: in PostgreSQL in pieces, and in a mapped file on each machine."""

import time
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from numpy.typing import NDArray

from apps.retrieval.analysis.analyzers import WORDS, Analyzer, build_analyzer
from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.models import ChunkSet, LexicalIndex, LexicalPiece
from apps.retrieval.search.holding import lock_for_index
from apps.retrieval.search.lexical import Bm25, describe_index, read_analyzer
from apps.retrieval.search.term_counts import write_bm25
from apps.retrieval.search.word_stats import compute_word_stats, guess_chunk_language
from benchbench.database import binary
from benchbench.errors import BenchbenchError, UnfitWorkerError
from benchbench.ir.planning.lexical import Lexical
from benchbench.local_files.sealed import load_array
from benchbench.texts.languages import DEFAULT

ENGINE = "bm25"
PIECE_BYTES = 8 * 2**20
USUAL = Lexical()
OUTDATED = "another version of BenchBench, or of a package of its analyzer, built it"
FORMAT = 3  # of the archive that `write_bm25` writes
RULES = 3  # of the analyzers, raised when a text gets other terms: those of queries must be those of an index


class LexicalIndexError(BenchbenchError):
    """A lexical index is damaged or cannot be built."""

    code = "lexical_index"


class OutdatedWordsError(LexicalIndexError, UnfitWorkerError):
    """Another version of BenchBench, or of a package of its analyzer, built a lexical index.

    A worker of that version can search it.
    """


def choose_analyzer(chunk_set: ChunkSet, setting: Lexical = USUAL) -> Analyzer:
    """Return the analyzer of a setting, in the language of the collection unless the setting has another."""
    language = setting["language"] or chunk_set.collection.language or DEFAULT
    return build_analyzer(language, setting["words"], setting["stop"], setting["stem"])


def find_lexical_index(chunk_set: ChunkSet, analyzer: Analyzer) -> LexicalIndex | None:
    """Return the BM25 index of a chunk set whose terms an analyzer makes, or None."""
    return LexicalIndex.objects.filter(fingerprint=build_key(chunk_set.fingerprint, analyzer)).first()


def has_outdated_words(chunk_set: ChunkSet, setting: Lexical) -> bool:
    """Return whether a chunk set has words by the analyzer of a setting, perhaps of another version."""
    if setting.engine != ENGINE:
        return False
    parameters = describe_index(choose_analyzer(chunk_set, setting))
    return chunk_set.lexical_indexes.filter(engine=ENGINE, parameters=parameters).exists()


@transaction.atomic
def make_lexical_index(chunk_set: ChunkSet, setting: Lexical = USUAL) -> LexicalIndex:
    """Return the BM25 index of a chunk set by the analyzer of a setting, built in one transaction if missing."""
    lock_for_index(chunk_set, ENGINE)
    analyzer = choose_analyzer(chunk_set, setting)
    if existing := find_lexical_index(chunk_set, analyzer):
        return existing
    started = time.perf_counter()
    with TemporaryFile() as out:
        texts = chunk_set.leaves.order_by("position").values_list("text", flat=True)
        counts = write_bm25(texts.iterator(), out, analyzer)
        guess = guess_chunk_language(chunk_set)
        stats = compute_word_stats(counts.terms, counts.frequencies, counts.lengths, guess)
        index = LexicalIndex.objects.create(
            chunk_set=chunk_set,
            engine=ENGINE,
            parameters=describe_index(analyzer),
            fingerprint=build_key(chunk_set.fingerprint, analyzer),
            size_bytes=out.tell(),
            completed_at=timezone.now(),
            build_seconds=time.perf_counter() - started,
            stats=stats.as_dict(),
        )
        store_pieces(out, index.pk)
    return index


def build_key(chunk_set_fingerprint: str, analyzer: Analyzer) -> str:
    """Return the fingerprint of a BM25 index: terms of other versions of an analyzer or its packages may differ.

    The rule of bm25s has not changed, so that indexes by it stay.
    """
    rules = {} if WORDS[analyzer.words].is_plain else {"rules": RULES}
    return fingerprint(
        chunk_set=chunk_set_fingerprint,
        engine=ENGINE,
        parameters=describe_index(analyzer),
        versions=analyzer.versions,
        format=FORMAT,
        **rules,
    )


def store_pieces(archive: IO[bytes], lexical_index: UUID) -> None:
    """Store the archive of a lexical index in pieces of PIECE_BYTES, as bytes: an INSERT would spell them in text."""
    archive.seek(0)
    pieces = enumerate(iter(partial(archive.read, PIECE_BYTES), b""))
    rows = (
        (binary.uuid(lexical_index), binary.int4(ordinal), binary.field(piece), binary.text(sha256(piece).hexdigest()))
        for ordinal, piece in pieces
    )
    binary.copy_rows(LexicalPiece._meta.db_table, ("lexical_index_id", "ordinal", "data", "sha256"), rows)


def locate_lexical_index(lexical_index: LexicalIndex) -> Path:
    """Return this machine's file of a lexical index."""
    return Path(settings.BENCHBENCH_VECTOR_DIR) / f"{lexical_index.pk.hex}.words"


def describe_outdated(index: object) -> str:
    return f'The words of the index "{index}" cannot be read: {OUTDATED}. Make a new version of the index.'


def read_current_analyzer(lexical_index: LexicalIndex) -> Analyzer | None:
    """Return the analyzer that made the terms of an index; None if another version of it or of its packages did."""
    analyzer = read_analyzer(lexical_index.parameters)
    is_current = lexical_index.fingerprint == build_key(lexical_index.chunk_set.fingerprint, analyzer)
    return analyzer if is_current else None


def load_lexical_index(lexical_index: LexicalIndex) -> Bm25:
    """Return a stored index, mapped from a file of this machine, which is written from the pieces if necessary.

    Raises OutputError, LexicalIndexError naming the damaged piece, and OutdatedWordsError.
    """
    analyzer = read_current_analyzer(lexical_index)
    if analyzer is None:
        raise OutdatedWordsError(describe_outdated(lexical_index.index_set.first()))
    make = partial(_read_pieces, lexical_index)
    file, shape = locate_lexical_index(lexical_index), (lexical_index.size_bytes,)
    archive = load_array(file, np.uint8, shape, holds=lexical_index.fingerprint, make=make)
    return Bm25.from_archive(archive, analyzer)


def _read_pieces(lexical_index: LexicalIndex) -> Iterator[NDArray[np.uint8]]:
    size = 0
    pieces = lexical_index.pieces.order_by("ordinal").values_list("ordinal", "data", "sha256")
    for expected, (ordinal, piece, digest) in enumerate(pieces.iterator(chunk_size=1)):
        if ordinal != expected or sha256(piece).hexdigest() != digest:
            raise _build_error(lexical_index, f"piece {expected} is {'missing' if ordinal != expected else 'damaged'}")
        yield np.frombuffer(piece, np.uint8)
        size += len(piece)
    if size != lexical_index.size_bytes:
        raise _build_error(lexical_index, f"{size:,} of its {lexical_index.size_bytes:,} bytes were found")


def _build_error(lexical_index: LexicalIndex, problem: str) -> LexicalIndexError:
    return LexicalIndexError(
        f"The lexical index {lexical_index.pk} cannot be read: {problem}. Restore the database, or delete the indexes "
        "that use it and build them again."
    )
