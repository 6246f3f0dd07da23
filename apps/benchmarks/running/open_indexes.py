"""The indexes of a batch, opened when a stage first needs them; and encoding for one of them, timed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.encoders.base import Kind, flawed_vector, vector_flaws
from apps.retrieval.encoders.encoding import embed_queries, encoder_for
from apps.retrieval.search.open_indexes import OpenIndex, open_index
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.stages import DenseStage, LexicalStage


class OpenIndexes(dict[str | None, Any]):
    """Indexes by the name that configurations have for them, opened when they are asked for.

    One that cannot be opened raises where it is asked for, in the stages that need it, and harms no other's runs.
    """

    def __getitem__(self, name: str | None) -> OpenIndex:
        return open_index(super().__getitem__(name))


def opened_for(stage: DenseStage | LexicalStage, indexes: Mapping[str | None, OpenIndex]) -> OpenIndex:
    """Return the index that a stage searches, with all that is read of it once: that is no part of a query's cost."""
    index = indexes[stage.index]
    if isinstance(stage, DenseStage):
        index.prepare(stage.dimensions)
    return index


LEAST_COSINE = 0.99999


class StageError(BenchbenchError):
    """A stage whose result would not be what it claims to be."""

    code = "stage"


def time_encoding_afresh(index: OpenIndex, texts: list[str], kept: NDArray[np.float32], kind: Kind) -> float:
    """Encode texts again, and return the milliseconds that each took.

    The kept vectors (n, d) rank, so they must be those of the same model.

    Raises StageError, EncoderError.
    """
    encoder = encoder_for(index.index)
    vectors, ms = embed_queries(encoder, texts, kind)
    for row, flaw in vector_flaws(encoder, vectors, len(texts)).items():
        raise flawed_vector(encoder.model_name, f"the query {texts[row][:80]!r}", flaw)
    if not index.index.vector_source and (np.einsum("qd,qd->q", vectors, kept) < LEAST_COSINE).any():
        raise StageError(
            f"Encoding a query again gave another vector than the one kept for {index.index.encoder}: the model's "
            "files have changed. Make a new version of the index."
        )
    return ms / len(texts)
