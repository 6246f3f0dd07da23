"""Encoders by name and parameters. A prefix selects a kind; other names are models of sentence-transformers."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.retrieval import process
from apps.retrieval.encoders import base
from apps.retrieval.encoders.base import Cut, Encoder, EncoderError, Kind, TokenVectors, Vectors
from apps.retrieval.encoders.model_files import load_model
from benchbench.ir.encoding import DEFAULT, EncoderParameters

SPECIAL_TOKENS = 4  # at most, around a text


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
        self.prompts: dict[Kind, str] = {"query": "", "document": ""}

    def embed_batch(self, texts: Sequence[str], *, kind: Kind = "document") -> Vectors:
        counts = np.full((len(texts), self.dimension), self.CONSTANT)
        for row, text in zip(counts, texts, strict=True):
            words = Counter(re.findall(r"\w+", text.lower()))
            row[:-1] = [words[keyword] for keyword in self.keywords]
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)

    def count_cut(self, texts: Sequence[str], *, kind: Kind = "document") -> Cut | None:
        return None

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

    def __init__(self, model_name: str, model: Any, revision: str, parameters: EncoderParameters = DEFAULT) -> None:
        """Wrap `model`, the SentenceTransformer that `load_model` returned with this revision."""
        self.model_name = model_name
        self._model = model
        model_prompts = _find_prompt(model, "query"), _find_prompt(model, "document", "passage", "corpus")
        query_prompt, document_prompt = parameters.choose_prompts(model_prompts)
        self.prompts: dict[Kind, str] = {"query": query_prompt, "document": document_prompt}
        self.precision = parameters.precision
        self.revision = parameters.name_space(revision, model_prompts)
        self.dimension = len(self._model.encode("", show_progress_bar=False))
        self.budget = base.make_budget(model_name, self.device)

    @property
    def device(self) -> str:
        return str(self._model.device)

    def embed_batch(self, texts: Sequence[str], *, kind: Kind = "document") -> Vectors:
        vectors = np.empty((len(texts), self.dimension), np.float32)
        encode = partial(self._encode, texts, kind=kind, normalize_embeddings=self.precision == "float32")
        for chosen, encoded in self._run_batches(texts, encode):
            vectors[chosen] = encoded
        return vectors if self.precision == "float32" else _scale_rows(vectors)

    def count_cut(self, texts: Sequence[str], *, kind: Kind = "document") -> Cut | None:
        """Return what the model does not read of texts; None without a window or a tokenizer."""
        window, tokenizer = self._model.max_seq_length, getattr(self._model, "tokenizer", None)
        if window is None or not callable(tokenizer):
            return None
        prompt = self.prompts[kind]
        # A token has a byte at least, so a short text is read wholly. Some tokenizers divide a letter.
        perhaps = [n for n, text in enumerate(texts) if len((prompt + text).encode()) + SPECIAL_TOKENS > window]
        complete = tokenizer([prompt + texts[n] for n in perhaps], truncation=False, verbose=False) if perhaps else {}
        lengths = {
            n: len(ids) for n, ids in zip(perhaps, complete.get("input_ids", ()), strict=True) if len(ids) > window
        }
        if not lengths:
            return None
        ends = dict.fromkeys(lengths, 0)
        if tokenizer.is_fast:
            options = {"truncation": True, "max_length": window, "return_offsets_mapping": True}
            read = tokenizer([prompt + texts[number] for number in lengths], **options)["offset_mapping"]
            ends = {n: max(0, max(end for _, end in one) - len(prompt)) for n, one in zip(lengths, read, strict=True)}
        total = sum(lengths.values())
        return Cut(window, ends, total, total - window * len(lengths))

    def _run_batches(self, texts: Sequence[str], encode: Callable[[Sequence[int]], object]) -> Any:
        return base.run_batches(texts, encode, window=self._model.max_seq_length, budget=self.budget)

    def _encode(self, texts: Sequence[str], chosen: Sequence[int], *, kind: Kind, **options: Any) -> Any:
        """Encode some of the texts with the prompt of their kind, in the encoder's precision."""
        encode = self._model.encode_query if kind == "query" else self._model.encode_document
        read = [texts[index] for index in chosen]
        with _autocast(self.device) if self.precision == "mixed" else nullcontext():
            return encode(read, prompt=self.prompts[kind], batch_size=len(read), show_progress_bar=False, **options)


class TransformerEncoder(SentenceTransformerEncoder):
    """A model whose first module is a transformer, so that its tokens have vectors too."""

    def __init__(self, model_name: str, model: Any, revision: str, parameters: EncoderParameters = DEFAULT) -> None:
        super().__init__(model_name, model, revision, parameters)
        self.token_dimension: int = self._model[0].get_embedding_dimension()
        # The unknown token belongs to the text: it represents a word.
        tokenizer = self._model.tokenizer
        self._special = [token for token in tokenizer.all_special_ids if token != tokenizer.unk_token_id]
        self._prompt_tokens = {
            kind: len(tokenizer(prompt.strip(), add_special_tokens=False)["input_ids"])
            for kind, prompt in self.prompts.items()
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
            [self.prompts[kind] + text for text in texts], truncation=True, max_length=self._model.max_seq_length
        )
        all_ids = [np.array(ids, np.int32) for ids in read["input_ids"]]
        return [ids[self._mask_text_tokens(ids, kind)] for ids in all_ids]

    def _mask_text_tokens(self, ids: NDArray[Any], kind: Kind) -> NDArray[np.bool_]:
        """Return a mask (t,) of the text's tokens: neither special, such as padding, nor of the prompt."""
        mask: NDArray[np.bool_] = ~np.isin(ids, self._special)
        mask[np.flatnonzero(mask)[: self._prompt_tokens[kind]]] = False
        return mask


def _find_prompt(model: Any, *names: str) -> str:
    """Return the prompt that the library chooses for `encode_query` or `encode_document`, by its possible names."""
    chosen = next((name for name in names if name in model.prompts), model.default_prompt_name)
    return str(model.prompts.get(chosen) or "")


CPU = Path("/proc/cpuinfo")
BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}  # flags of a CPU with such products; the last is that of ARM


def has_bfloat16(device: str) -> bool:
    """Return whether a device has instructions for products in bfloat16, without which they take longer."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.is_bf16_supported(including_emulation=False)
    with suppress(OSError):
        return device == "cpu" and not BFLOAT16.isdisjoint(CPU.read_text(encoding="utf-8").split())
    return False


def _autocast(device: str) -> Any:
    import torch

    return torch.autocast(torch.device(device).type, dtype=torch.bfloat16)


def _scale_rows(vectors: Vectors) -> Vectors:
    """Return vectors (n, d) scaled to unit length; a vector of zeros stays one, and is found as a flaw."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _scale_to_unit(tensors: Sequence[Any]) -> Vectors:
    """Return tensors of one shape, stacked as a NumPy array, scaled to unit length along the last axis."""
    import torch

    return torch.nn.functional.normalize(torch.stack(list(tensors)).float(), dim=-1).cpu().numpy()


RESIDENT_ENCODERS = 4

# Kinds of encoder by prefix.
ENCODERS: dict[str, Callable[[str], Encoder]] = {KeywordEncoder.PREFIX: KeywordEncoder}


def load_encoder(name: str, parameters: EncoderParameters = DEFAULT) -> Encoder:
    """Return the encoder called `name`, resident in this process. Raises ModelError, EncoderError."""
    return _load_encoder(name, parameters)


@lru_cache(maxsize=RESIDENT_ENCODERS)
def _load_encoder(name: str, parameters: EncoderParameters) -> Encoder:
    for prefix, make in ENCODERS.items():
        if name.startswith(prefix):
            return make(name)
    dtype = "float32" if parameters.precision == "mixed" else parameters.precision
    model, revision = load_model("SentenceTransformer", name, dtype=dtype)
    kind = TransformerEncoder if hasattr(model[0], "auto_model") else SentenceTransformerEncoder
    encoder = kind(name, model, revision, parameters)
    with suppress(Exception):  # an error will recur with the first text
        encoder.embed_batch(["warm-up"])  # the first pass is slower, so keep it out of timings
    return encoder


process.add(_load_encoder.cache_clear)
