"""Encoders: what makes vectors of texts."""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.model_files import ModelError, load_model

Vectors = NDArray[np.float32]

BATCH = 32
BATCH_CHARACTERS = 64_000  # 32 texts of about 500 tokens; models with a longer window get fewer texts at once
CHARACTERS_PER_TOKEN = 4
RESIDENT_ENCODERS = 4


class EncoderError(ModelError):
    """An encoder that cannot make the vectors that are wanted."""

    code = "encoder"


class Encoder(Protocol):
    """Makes vectors of unit length. Equal model name and revision mean equal vectors, but for the last bits."""

    @property
    def model_name(self) -> str: ...

    @property
    def revision(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def embed(self, text: str) -> Vectors:
        """Return the vector of one text, (d,)."""

    def embed_batch(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts in their order, (n, d). A text may be empty; there may be none."""


class SentenceTransformerEncoder:
    """A model of sentence-transformers, by name or local path, on CUDA, MPS or CPU as the machine has it."""

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name
        self._model, self.revision = load_model("SentenceTransformer", model_name)
        self.dimension = len(self._model.encode("", show_progress_bar=False))

    @property
    def device(self) -> str:
        return str(self._model.device)

    def embed(self, text: str) -> Vectors:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for chosen in length_batches(texts, window=self._model.max_seq_length):
            vectors[chosen] = self._model.encode(
                [texts[index] for index in chosen],
                batch_size=BATCH,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        return vectors


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


class KeywordEncoder:
    """Counts named words: an encoder whose rankings a reader can predict. For tests and for trying things out.

    `keyword:apple,pear` makes vectors of three dimensions: how often a text has "apple" and "pear", as words of any
    case, and a small constant, without which a text that has neither would have no direction.
    """

    PREFIX = "keyword:"
    CONSTANT = 0.1
    revision = "1"

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name
        self.keywords = [word.strip().lower() for word in model_name.removeprefix(self.PREFIX).split(",")]
        if not all(self.keywords) or len(set(self.keywords)) < len(self.keywords):
            raise EncoderError(f"{model_name!r} names no distinct keywords; write, for example, keyword:apple,pear.")
        self.dimension = len(self.keywords) + 1

    def embed(self, text: str) -> Vectors:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str]) -> Vectors:
        counts = np.full((len(texts), self.dimension), self.CONSTANT)
        for row, text in zip(counts, texts, strict=True):
            words = Counter(re.findall(r"\w+", text.lower()))
            row[:-1] = [words[keyword] for keyword in self.keywords]
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


# Kinds of encoder by the prefix of their names; a name without one belongs to sentence-transformers.
ENCODERS: dict[str, Callable[[str], Encoder]] = {KeywordEncoder.PREFIX: KeywordEncoder}


def device_name() -> str:
    """Return what models of this process run on: "cuda (NVIDIA …)", "mps", or "cpu", also where none was loaded."""
    torch = sys.modules.get("torch")
    if torch is None:
        return "cpu"
    if torch.cuda.is_available():
        return f"cuda ({torch.cuda.get_device_name()})"
    return "mps" if torch.backends.mps.is_available() else "cpu"


@lru_cache(maxsize=RESIDENT_ENCODERS)
def load_encoder(name: str) -> Encoder:
    """Return the encoder called `name`, resident in this process. Raises ModelError, EncoderError."""
    for prefix, make in ENCODERS.items():
        if name.startswith(prefix):
            return make(name)
    return SentenceTransformerEncoder(name)
