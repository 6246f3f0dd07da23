"""The keyword encoder: rankings that a reader can predict."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.encoders.base import EncoderError, Kind, TokenVectors, Vectors


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
        self.dimension = self.token_dimension = len(self.keywords) + 1

    def embed_batch(self, texts: Sequence[str], *, kind: Kind = "document") -> Vectors:
        counts = np.full((len(texts), self.dimension), self.CONSTANT)
        for row, text in zip(counts, texts, strict=True):
            words = Counter(re.findall(r"\w+", text.lower()))
            row[:-1] = [words[keyword] for keyword in self.keywords]
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)

    def embed_tokens(self, texts: Sequence[str], *, kind: Kind = "document") -> tuple[Vectors, list[TokenVectors]]:
        """Each keyword has a direction of its own; other words are no tokens."""
        one_hot = np.eye(self.dimension, dtype=np.float16)
        return self.embed_batch(texts), [TokenVectors(ids, one_hot[ids]) for ids in self.token_ids(texts)]

    def token_ids(self, texts: Sequence[str], *, kind: Kind = "document") -> list[NDArray[np.int32]]:
        numbers = {keyword: number for number, keyword in enumerate(self.keywords)}
        words = (re.findall(r"\w+", text.lower()) for text in texts)
        return [np.array([numbers[word] for word in text_words if word in numbers], np.int32) for text_words in words]
