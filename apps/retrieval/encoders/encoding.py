"""Encoding with the model of an index: chunks when it is built, queries when it is searched."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from apps.retrieval.encoders import base
from apps.retrieval.encoders.base import Cut, Encoder, EncoderError, Kind, TokenEncoder, Vectors
from apps.retrieval.encoders.registry import load_encoder
from apps.retrieval.encoders.token_store import TokenStore
from apps.retrieval.encoders.vector_cache import (
    TextVector,
    add_vectors,
    find_vectors,
    load_document_space,
    load_query_space,
)
from apps.retrieval.fingerprints import hash_text
from apps.retrieval.models import ChunkSet, Index
from benchbench.decimals import counted
from benchbench.errors import UnfitWorkerError
from benchbench.ir.records import Positions
from benchbench.process import calling

TEXTS_BETWEEN_CHECKS = 4 * base.BATCH


class RevisionError(EncoderError, UnfitWorkerError):
    """The local encoder has another revision than the vectors of the index."""


def load_index_encoder(index: Index) -> Encoder:
    """Return the encoder of an index, after checking that it has the revision of the index's vectors.

    For imported vectors only the dimension can be checked. Raises ModelError, EncoderError and RevisionError.
    """
    if not index.encoder:
        raise EncoderError(
            f'The index "{index}" has no model name: import its vectors again with the name of their model.',
            field="model",
        )
    encoder = load_encoder(index.encoder, index.encoder_parameters)
    if index.dimension is not None and encoder.dimension != index.dimension:
        raise EncoderError(
            f'{index.encoder} makes vectors of {encoder.dimension} dimensions, the index "{index}" has '
            f"{index.dimension}: choose the model of its vectors, or make a new version of the index."
        )
    if not index.vector_source and index.encoder_revision not in ("", encoder.revision):
        raise RevisionError(
            f'The index "{index}" was encoded by {index.encoder} in revision {index.encoder_revision}, but revision '
            f"{encoder.revision} is installed. Install that revision, or make a new version of the index."
        )
    return encoder


class ChunkVectors(NamedTuple):
    """The vectors of chunks (n, d), and the newly encoded ones by the hashes of their texts.

    `cached` is the number of chunks with a cached vector, `cached_ms` the total time that encoding those vectors took.
    `cut` is what the encoder does not read of all chunks.
    """

    vectors: Vectors
    new_vectors: dict[str, TextVector]
    cached: int
    cached_ms: float
    cut: Cut | None


def compute_chunk_vectors(
    chunk_set: ChunkSet,
    positions: Positions,
    encoder: Encoder,
    *,
    on_part: Callable[[int], None] = lambda count: None,
) -> ChunkVectors:
    """Return the vectors of chunks in the order of ascending `positions`, from the cache or encoded.

    Chunks with equal texts are encoded once. `on_part` is called with the count so far every few seconds. Raises
    EncoderError naming the chunk if its vector is invalid.
    """
    rows = chunk_set.chunks.filter(position__in=positions.tolist()).order_by("position")
    hashes = list(rows.values_list("text_hash", flat=True))
    cached_vectors = find_vectors(load_document_space(encoder), list(dict.fromkeys(hashes)))
    cached = sum(key in cached_vectors for key in hashes)
    on_part(cached)
    missing = dict(rows.exclude(text_hash__in=cached_vectors).values_list("text_hash", "text"))

    def name(number: int) -> str:
        chunk = rows.filter(text_hash=list(missing)[number]).select_related("document").first()
        assert chunk is not None
        return f"chunk {chunk.position:,}" + (f" (document {chunk.document.external_id!r})" if chunk.document else "")

    started = time.perf_counter()
    encoded = encode_texts(encoder, list(missing.values()), on_part=lambda count: on_part(cached + count), name=name)
    ms_by_length = 1000 * (time.perf_counter() - started) / sum(len(text) + 1 for text in missing.values() or [""])
    fresh = {
        key: TextVector(vector, ms_by_length * (len(text) + 1))
        for (key, text), vector in zip(missing.items(), encoded, strict=True)
    }
    vectors = np.empty((len(hashes), encoder.dimension), np.float32)
    for row, key in zip(vectors, hashes, strict=True):
        row[:] = (fresh.get(key) or cached_vectors[key]).vector
    cut = encoder.count_cut(list(rows.values_list("text", flat=True)))
    return ChunkVectors(vectors, fresh, cached, sum(one.encode_ms or 0.0 for one in cached_vectors.values()), cut)


def encode_texts(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    on_part: Callable[[int], None] = lambda count: None,
    name: Callable[[int], str] = "text {}".format,
) -> Vectors:
    """Return the vectors of many documents' texts, (n, d), calling `on_part` with the count so far every few seconds.

    Texts are sorted by length, since padding costs as much as text. Token vectors, which come from the same pass, are
    stored for reranking while there is room. Raises EncoderError for an invalid vector; `name` describes a text by its
    number.
    """
    vectors = np.empty((len(texts), encoder.dimension), np.float32)
    order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
    store = TokenStore(encoder, "document") if isinstance(encoder, TokenEncoder) else None
    at_once = base.scale_call(encoder, TEXTS_BETWEEN_CHECKS)
    for start in range(0, len(order), at_once):
        indices = order[start : start + at_once]
        read = [texts[index] for index in indices]
        with calling(f"The encoder {encoder.model_name}"):
            encoded, tokens = (encoder.embed_batch(read), []) if store is None else store.encoder.embed_tokens(read)
        for row, flaw in base.find_vector_flaws(encoder, encoded, len(read)).items():
            raise base.build_vector_error(encoder.model_name, name(indices[row]), flaw)
        vectors[indices] = encoded
        if store is not None and not store.store_tokens(read, tokens, make_room=False):
            store = None
        on_part(start + len(indices))
    return vectors


def compute_query_vectors(index: Index, texts: Sequence[str], *, kind: Kind = "query") -> list[TextVector]:
    """Return the vector of each query text, encoded once per model and revision.

    Encoding a text again may change its last bits. So a new vector is stored before use, and if two workers store one
    at once, both use the row in the database. Only valid vectors are stored; EncoderError names the first query with
    an invalid one. `kind` selects the model's prompt. Raises ModelError, EncoderError.
    """
    if not texts:
        return []
    space = load_query_space(index, kind)
    hashes = [hash_text(text) for text in texts]
    texts_by_hash = dict(zip(hashes, texts, strict=True))
    vectors_by_hash = find_vectors(space, list(texts_by_hash))
    if missing := sorted(texts_by_hash.keys() - vectors_by_hash.keys()):
        encoded, wrong = _encode_queries(index, [texts_by_hash[key] for key in missing], kind)
        fresh = dict(zip(missing, encoded, strict=True))
        add_vectors(space, {key: one for row, (key, one) in enumerate(fresh.items()) if row not in wrong})
        stored = find_vectors(space, missing)
        for row, key in enumerate(missing):
            if key not in stored:
                raise _build_query_error(index, texts_by_hash[key], wrong.get(row))
            vectors_by_hash[key] = stored[key]._replace(is_new=True, together_ms=fresh[key].together_ms)
    return [vectors_by_hash[key] for key in hashes]


def time_encoding(index: Index, text: str, *, kind: Kind = "query") -> float:
    """Encode a query again by itself and store the time as its cost. Return the milliseconds.

    The stored vector does not change.
    """
    ms = embed_queries(load_index_encoder(index), [text], kind)[1]
    load_query_space(index, kind).vectors.filter(text_hash=hash_text(text), encode_ms__isnull=False).update(
        encode_ms=ms
    )
    return ms


def compute_uncached_share(index: Index, texts: Sequence[str]) -> float:
    """Return the share of the query texts, in [0, 1], without a cached vector of the index's model."""
    hashes = {hash_text(text) for text in texts}
    if not hashes or index.dimension is None:
        return 0.0
    return 1 - load_query_space(index).vectors.filter(text_hash__in=hashes).count() / len(hashes)


def _build_query_error(index: Index, text: str, flaw: str | None) -> EncoderError:
    """Return the error for a query with an invalid vector. Without a `flaw`, the stored vector is damaged."""
    if flaw is not None:
        return base.build_vector_error(index.encoder, f"the query {text[:80]!r}", flaw)
    return EncoderError(
        f"The imported vector of the query {text[:80]!r} is damaged in the database: import the vectors of the index "
        f'"{index}" again.'
    )


def _encode_queries(index: Index, texts: Sequence[str], kind: Kind) -> tuple[list[TextVector], dict[int, str]]:
    """Return the vectors of queries, and the flaws of invalid ones by row."""
    if not index.encoder:
        raise EncoderError(
            f"{counted(len(texts), 'query')} (such as {texts[0][:80]!r}) had no vector in the import file of the "
            f'index "{index}", which names no model. Import it again with these vectors, or with the model.',
            field="model",
        )
    encoder = load_index_encoder(index)  # may load the model, which does not count as a query's cost
    vectors, ms = embed_queries(encoder, texts, kind)
    wrong = base.find_vector_flaws(encoder, vectors, len(texts))
    together = ms if len(texts) > 1 else None
    cut = encoder.count_cut(texts, kind=kind)
    ends = cut.ends if cut else {}
    return [
        TextVector(vector, ms / len(texts), together_ms=together, is_cut=number in ends)
        for number, vector in enumerate(vectors)
    ], wrong


def embed_queries(encoder: Encoder, texts: Sequence[str], kind: Kind) -> tuple[Vectors, float]:
    """Return the vectors of queries, (n, d), and the milliseconds for all of them."""
    started = time.perf_counter()
    with calling(f"The encoder {encoder.model_name}"):
        vectors = encoder.embed_batch(texts, kind=kind)
    return vectors, (time.perf_counter() - started) * 1000
