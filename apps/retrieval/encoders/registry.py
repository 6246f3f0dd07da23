"""Encoders by name. A prefix selects a kind; other names are models of sentence-transformers."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.encoders import base
from apps.retrieval.encoders.base import Encoder, EncoderError, Kind, TokenVectors, Vectors
from apps.retrieval.encoders.model_files import load_model


class KeywordEncoder:
    """An encoder that counts given words, so that its rankings are predictable. For tests and experiments.

    `keyword:apple,pear` gives vectors of three dimensions: the counts of the words "apple" and "pear" in any case, and
    a small constant, so that a text without them still has a direction.
    """

    PREFIX = "keyword:"
    CONSTANT = 0.1
    revision = "1"

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name
        self.keywords = [word.strip().lower() for word in model_name.removeprefix(self.PREFIX).split(",")]
        if not all(self.keywords) or len(set(self.keywords)) < len(self.keywords):
            raise EncoderError(f"{model_name!r} must have distinct keywords, such as keyword:apple,pear.")
        self.dimension = self.token_dimension = len(self.keywords) + 1

    def embed_batch(self, texts: Sequence[str], *, kind: Kind = "document") -> Vectors:
        counts = np.full((len(texts), self.dimension), self.CONSTANT)
        for row, text in zip(counts, texts, strict=True):
            words = Counter(re.findall(r"\w+", text.lower()))
            row[:-1] = [words[keyword] for keyword in self.keywords]
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)

    def embed_tokens(self, texts: Sequence[str], *, kind: Kind = "document") -> tuple[Vectors, list[TokenVectors]]:
        """Return the vectors, and the keywords as tokens, each with its own direction. Other words are skipped."""
        one_hot = np.eye(self.dimension, dtype=np.float16)
        return self.embed_batch(texts), [TokenVectors(ids, one_hot[ids]) for ids in self.tokenize(texts)]

    def tokenize(self, texts: Sequence[str], *, kind: Kind = "document") -> list[NDArray[np.int32]]:
        numbers = {keyword: number for number, keyword in enumerate(self.keywords)}
        words = (re.findall(r"\w+", text.lower()) for text in texts)
        return [np.array([numbers[word] for word in text_words if word in numbers], np.int32) for text_words in words]


class SentenceTransformerEncoder:
    """A model of sentence-transformers by name or local path, on CUDA, MPS or CPU."""

    def __init__(self, model_name: str, model: Any, revision: str) -> None:
        """Wrap `model`, the SentenceTransformer that `load_model` returned with this revision."""
        self.model_name = model_name
        self.revision = revision
        self._model = model
        self.dimension = len(self._model.encode("", show_progress_bar=False))
        self.budget = base.make_budget(model_name, self.device)

    @property
    def device(self) -> str:
        return str(self._model.device)

    def embed_batch(self, texts: Sequence[str], *, kind: Kind = "document") -> Vectors:
        vectors = np.empty((len(texts), self.dimension), np.float32)
        encode = partial(self._encode, texts, kind=kind, normalize_embeddings=True)
        for chosen, encoded in self._run_batches(texts, encode):
            vectors[chosen] = encoded
        return vectors

    def _run_batches(self, texts: Sequence[str], encode: Callable[[Sequence[int]], Any]) -> Any:
        return base.run_batches(texts, encode, window=self._model.max_seq_length, budget=self.budget)

    def _encode(self, texts: Sequence[str], chosen: Sequence[int], *, kind: Kind, **options: Any) -> Any:
        """Encode some of the texts with the prompt that the model's configuration has for their kind."""
        encode = self._model.encode_query if kind == "query" else self._model.encode_document
        return encode([texts[index] for index in chosen], batch_size=len(chosen), show_progress_bar=False, **options)


class TransformerEncoder(SentenceTransformerEncoder):
    """A model whose first module is a transformer, so that its tokens have vectors too."""

    def __init__(self, model_name: str, model: Any, revision: str) -> None:
        super().__init__(model_name, model, revision)
        self.token_dimension: int = self._model[0].get_embedding_dimension()
        # The unknown token belongs to the text: it represents a word.
        tokenizer = self._model.tokenizer
        self._special = [token for token in tokenizer.all_special_ids if token != tokenizer.unk_token_id]
        self._prompts = {kind: self._choose_prompt(kind) for kind in ("query", "document")}
        self._prompt_tokens = {
            kind: len(tokenizer(prompt.strip(), add_special_tokens=False)["input_ids"])
            for kind, prompt in self._prompts.items()
        }

    def embed_tokens(self, texts: Sequence[str], *, kind: Kind = "document") -> tuple[Vectors, list[TokenVectors]]:
        vectors = np.empty((len(texts), self.dimension), np.float32)
        tokens: list[TokenVectors] = [base.NO_TOKENS] * len(texts)

        def encode(chosen: Sequence[int]) -> None:
            outputs = self._encode(texts, chosen, kind=kind, output_value=None)
            vectors[chosen] = _scale_to_unit([output["sentence_embedding"] for output in outputs])
            for index, output in zip(chosen, outputs, strict=True):
                ids = output["input_ids"].cpu().numpy()
                mask = self._mask_text_tokens(ids, kind)
                tokens[index] = TokenVectors(
                    ids[mask].astype(np.int32), _scale_to_unit([output["token_embeddings"]])[0, mask].astype(np.float16)
                )

        for _ in self._run_batches(texts, encode):
            pass
        return vectors, tokens

    def tokenize(self, texts: Sequence[str], *, kind: Kind = "document") -> list[NDArray[np.int32]]:
        read = self._model.tokenizer(
            [self._prompts[kind] + text for text in texts], truncation=True, max_length=self._model.max_seq_length
        )
        all_ids = [np.array(ids, np.int32) for ids in read["input_ids"]]
        return [ids[self._mask_text_tokens(ids, kind)] for ids in all_ids]

    def _mask_text_tokens(self, ids: NDArray[Any], kind: Kind) -> NDArray[np.bool_]:
        """Return a mask (t,) of the text's tokens: neither special, such as padding, nor of the prompt."""
        mask: NDArray[np.bool_] = ~np.isin(ids, self._special)
        mask[np.flatnonzero(mask)[: self._prompt_tokens[kind]]] = False
        return mask

    def _choose_prompt(self, kind: str) -> str:
        """Return the prompt that the library chooses for `encode_query` or `encode_document`."""
        names = ("query",) if kind == "query" else ("document", "passage", "corpus")
        prompts = self._model.prompts
        chosen = next((name for name in names if name in prompts), self._model.default_prompt_name)
        return str(prompts.get(chosen) or "")


def _scale_to_unit(tensors: Sequence[Any]) -> Vectors:
    """Return tensors of one shape, stacked as a NumPy array, scaled to unit length along the last axis."""
    import torch

    return torch.nn.functional.normalize(torch.stack(list(tensors)), dim=-1).cpu().numpy()


RESIDENT_ENCODERS = 4

# Kinds of encoder by prefix.
ENCODERS: dict[str, Callable[[str], Encoder]] = {KeywordEncoder.PREFIX: KeywordEncoder}


@lru_cache(maxsize=RESIDENT_ENCODERS)
def load_encoder(name: str) -> Encoder:
    """Return the encoder called `name`, resident in this process. Raises ModelError, EncoderError."""
    for prefix, make in ENCODERS.items():
        if name.startswith(prefix):
            return make(name)
    model, revision = load_model("SentenceTransformer", name)
    kind = TransformerEncoder if hasattr(model[0], "auto_model") else SentenceTransformerEncoder
    encoder = kind(name, model, revision)
    with suppress(Exception):  # an error will recur with the first text
        encoder.embed_batch(["warm-up"])  # the first pass is slower, so keep it out of timings
    return encoder
