"""Encoding queries again, for the time it takes."""

import time

import numpy as np
from numpy.typing import NDArray

from apps.operations.workers.watchdog import calling
from apps.retrieval.encoders.base import Kind, flawed_vector, vector_flaws
from apps.retrieval.search.open_indexes import OpenIndex
from benchbench.errors import BenchbenchError

LEAST_COSINE = 0.99999


class StageError(BenchbenchError):
    """A stage whose result would not be what it claims to be."""

    code = "stage"


def time_encoding_afresh(index: OpenIndex, texts: list[str], kept: NDArray[np.float32], kind: Kind) -> float:
    """Encode texts again, and return the milliseconds that each took.

    The kept vectors (n, d) rank, so they must be those of the same model.

    Raises StageError, EncoderError.
    """
    encoder = index.encoder
    started = time.perf_counter()
    with calling(f"The encoder {encoder.model_name}"):
        vectors = encoder.embed_batch(texts, kind=kind)
    ms = (time.perf_counter() - started) * 1000 / len(texts)
    for row, flaw in vector_flaws(encoder, vectors, len(texts)).items():
        raise flawed_vector(encoder.model_name, f"the query {texts[row][:80]!r}", flaw)
    if not index.index.vector_source and (np.einsum("qd,qd->q", vectors, kept) < LEAST_COSINE).any():
        raise StageError(
            f"Encoding a query again gave another vector than the one kept for {index.index.encoder}: the model's "
            "files have changed. Make a new version of the index."
        )
    return ms
