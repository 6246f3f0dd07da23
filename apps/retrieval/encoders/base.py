"""Common parts of encoders: protocols, batches of texts, single-threaded torch, and errors of invalid vectors."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.encoders.gpu_memory import Budget, Result
from apps.retrieval.encoders.model_files import ModelError
from benchbench.ir.ranking import find_flaws, find_shape_flaw
from benchbench.ir.records import Vectors

Kind = Literal["query", "document"]
CUT = "cut"  # the note on queries that are longer than a model reads, or whose texts are with them


class EncoderError(ModelError):
    """An encoder cannot compute the vectors."""

    code = "encoder"


@dataclass(frozen=True, slots=True)
class Cut:
    """The texts that are longer than the window of a model, in tokens, and what it did not read of their tokens.

    Special tokens and those of the prompt count, since they take their place in the window. `ends` has the number of
    characters that it reads of each of these texts, by the number of the text.
    """

    window: int
    ends: Mapping[int, int]
    tokens: int
    cut_tokens: int


class Encoder(Protocol):
    """An encoder of texts as unit vectors. Equal name, revision and kind give equal vectors, except for last bits.

    The kind is that of the texts: a model may use one prompt for queries and another for documents. The revision
    includes the prompts and the precision, if they are not those of the model.
    """

    model_name: str
    revision: str
    dimension: int
    prompts: dict[Kind, str]

    def embed_batch(self, texts: Sequence[str], *, kind: Kind = "document") -> Vectors:
        """Return the vectors of texts in their order, (n, d). Texts may be empty, and so may `texts`."""

    def count_cut(self, texts: Sequence[str], *, kind: Kind = "document") -> Cut | None:
        """Return what the encoder does not read of texts, or None if it reads all."""


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """The tokens of a text as ids (t,), and their unit vectors (t, d), float16.

    Special tokens and those of the prompt are left out, so t may be 0.
    """

    ids: NDArray[np.int32]
    vectors: NDArray[np.float16]


NO_TOKENS = TokenVectors(np.empty(0, np.int32), np.empty((0, 0), np.float16))


@runtime_checkable
class TokenEncoder(Encoder, Protocol):
    """An encoder that also gives a contextual vector for each token of a text."""

    token_dimension: int

    def embed_tokens(self, texts: Sequence[str], *, kind: Kind = "document") -> tuple[Vectors, list[TokenVectors]]:
        """Return the vectors of `embed_batch` and the tokens of each text, from one pass through the model."""

    def tokenize(self, texts: Sequence[str], *, kind: Kind = "document") -> list[NDArray[np.int32]]:
        """Return the token ids of `embed_tokens` without encoding, for thousands of texts a second."""


def find_vector_flaws(encoder: Encoder, vectors: Vectors, count: int) -> dict[int, str]:
    """Return the flaws of the invalid vectors that `encoder` computed for `count` texts, by row.

    Raises EncoderError unless `vectors` has one row per text and the encoder's dimension.
    """
    if wrong := find_shape_flaw(vectors, count, encoder.dimension):
        raise EncoderError(f"{encoder.model_name} made vectors of the shape {wrong}: check the model's files.")
    return find_flaws(vectors)


def build_vector_error(model: str, name: str, flaw: str) -> EncoderError:
    """Return the error for an invalid vector of the text called `name`, with a flaw from `find_flaws`."""
    return EncoderError(
        f"{model} made a vector of {name} that is {flaw}: check the text, the model's files, its precision and its "
        "device."
    )


BATCH = 32
BATCH_CHARACTERS = 64_000  # 32 texts of about 500 tokens; longer texts come in smaller batches
CHARACTERS_PER_TOKEN = 4
GPU_TOKENS = 2**16  # padded tokens of a batch on a GPU
LEAST_CHARACTERS = 16  # counted for any text, since each has special tokens
SIMILAR = 0.75  # least length of a text relative to the longest of its batch, if the batch has more than BATCH texts
GPU_CALL = 8  # times as many texts are given to an encoder at once if it is on a GPU


def batch_by_length(
    texts: Sequence[str], *, window: int | None = None, budget: Budget | None = None
) -> Iterator[list[int]]:
    """Yield batches of `texts` of similar length, longest first, as lists of indices.

    A batch is padded to its longest text, so similar lengths are about twice as fast on a CPU. It has at most BATCH
    texts, fewer if they are long. With a `budget` of padded tokens, estimated by characters, it has as many similar
    texts as that holds. `window` is the number of tokens that the model reads of a text. The longest batch comes first,
    so that a machine with too little memory fails at once.
    """
    longest = (window or 10**9) * CHARACTERS_PER_TOKEN
    order = sorted(range(len(texts)), key=lambda index: (-len(texts[index]), index))
    start = 0
    while start < len(order):
        length = max(LEAST_CHARACTERS, min(len(texts[order[start]]), longest))
        limit, room = BATCH, BATCH_CHARACTERS // length
        if budget is not None:
            similar = bisect_right(
                order, -SIMILAR * length, lo=start, key=lambda index: -max(LEAST_CHARACTERS, len(texts[index]))
            )
            limit, room = max(BATCH, similar - start), budget.size * CHARACTERS_PER_TOKEN // length
        end = start + min(limit, max(1, room))
        yield order[start:end]
        start = end


def run_batches(
    texts: Sequence[str], work: Callable[[Sequence[int]], Result], *, window: int | None, budget: Budget | None
) -> Iterator[tuple[Sequence[int], Result]]:
    """Yield the batches of `batch_by_length` with what `work` returns for each; a `budget` splits those too large."""
    for batch in batch_by_length(texts, window=window, budget=budget):
        yield from budget.run(batch, work, len(batch)) if budget else [(batch, work(batch))]


def make_budget(model: str, device: str) -> Budget | None:
    """Return the budget of a model's batches on a GPU; None on a CPU, where batches have at most BATCH texts."""
    return None if device == "cpu" else Budget(model, GPU_TOKENS)


def scale_call(encoder: Encoder, count: int) -> int:
    """Return how many texts to encode in one call: `count`, or on a GPU GPU_CALL times as many, for full batches."""
    return count * GPU_CALL if getattr(encoder, "budget", None) else count


@contextmanager
def one_thread() -> Iterator[int]:
    """Limit torch to one thread in this block. Yield the previous number of threads.

    A second thread does not speed up small products, waits long on a busy machine, and changes last bits.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)
