"""Common parts of encoders: protocols, batches of texts, one thread of torch, the error for invalid vectors."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.encoders.model_files import ModelError
from benchbench.ir.ranking import flaws, shape_flaw
from benchbench.ir.records import Vectors

Kind = Literal["query", "document"]


class EncoderError(ModelError):
    """An encoder that cannot make the vectors that are wanted."""

    code = "encoder"


class Encoder(Protocol):
    """Makes vectors of unit length. Equal model name, revision and kind mean equal vectors, but for the last bits.

    The kind says what a text is for: a model may put one prompt before queries and another before documents.
    """

    model_name: str
    revision: str
    dimension: int

    def embed_batch(self, texts: Sequence[str], *, kind: Kind = "document") -> Vectors:
        """Return the vectors of texts in their order, (n, d). A text may be empty; there may be none."""


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """The tokens that a model read of a text, as ids (t,), and a vector of unit length for each, (t, d), float16.

    Without the tokens that it adds to every text, and without those of its prompt: a text may have none left.
    """

    ids: NDArray[np.int32]
    vectors: NDArray[np.float16]


NO_TOKENS = TokenVectors(np.empty(0, np.int32), np.empty((0, 0), np.float16))


@runtime_checkable
class TokenEncoder(Encoder, Protocol):
    """An encoder that has a vector for each token of a text too, in its context."""

    token_dimension: int

    def embed_tokens(self, texts: Sequence[str], *, kind: Kind = "document") -> tuple[Vectors, list[TokenVectors]]:
        """Return what `embed_batch` does, and the tokens of each text, from one pass through the model."""

    def token_ids(self, texts: Sequence[str], *, kind: Kind = "document") -> list[NDArray[np.int32]]:
        """Return the ids that `embed_tokens` would, without encoding: thousands of texts a second."""


def vector_flaws(encoder: Encoder, vectors: Vectors, count: int) -> dict[int, str]:
    """Return what is wrong with each of the vectors that `encoder` made of `count` texts and that is not sound, by row.

    Raises EncoderError where they are not one for each text, of its dimension.
    """
    if wrong := shape_flaw(vectors, count, encoder.dimension):
        raise EncoderError(f"{encoder.model_name} made vectors of the shape {wrong}: look at the model's files.")
    return flaws(vectors)


def flawed_vector(encoder: str, of: str, flaw: str) -> EncoderError:
    """The error of a model whose vector `of` something is what `flaws` says."""
    return EncoderError(
        f"{encoder} made a vector of {of} that is {flaw}: look at the text, at the model's files, and at the precision "
        "and the device that it runs on."
    )


BATCH = 32
BATCH_CHARACTERS = 64_000  # 32 texts of about 500 tokens; models with a longer window get fewer texts at once
CHARACTERS_PER_TOKEN = 4


def length_batches(texts: Sequence[str], *, window: int | None = None) -> Iterator[list[int]]:
    """Cut `texts` into batches of like length, longest first, as lists of their indices.

    A batch is padded to its longest text, so equal lengths waste nothing: on a CPU that is worth a factor of two. It
    holds at most BATCH texts, and fewer where they are long. `window` is how many tokens a model reads of a text; the
    longest batch comes first, so that a machine with too little memory fails at once.
    """
    longest = (window or 10**9) * CHARACTERS_PER_TOKEN
    order = sorted(range(len(texts)), key=lambda index: (-len(texts[index]), index))
    start = 0
    while start < len(order):
        room = BATCH_CHARACTERS // max(1, min(len(texts[order[start]]), longest))
        end = start + min(BATCH, max(1, room))
        yield order[start:end]
        start = end


@contextmanager
def one_thread() -> Iterator[int]:
    """Let torch compute on one thread meanwhile; give how many it had.

    Small products gain nothing by a second thread, wait long for it on a busy machine, and differ by it in last bits.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)
