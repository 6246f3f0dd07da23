"""Encoders of sentence-transformers: models by name or local path."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.encoders.base import NO_TOKENS, Kind, TokenVectors, Vectors
from apps.retrieval.encoders.batching import BATCH, length_batches


class SentenceTransformerEncoder:
    """A model of sentence-transformers, by name or local path, on CUDA, MPS or CPU as the machine has it."""

    def __init__(self, model_name: str, model: Any, revision: str) -> None:
        """`model` is the SentenceTransformer that `load_model` returned under this name and revision."""
        self.model_name = model_name
        self.revision = revision
        self._model = model
        self.dimension = len(self._model.encode("", show_progress_bar=False))

    @property
    def device(self) -> str:
        return str(self._model.device)

    def embed_batch(self, texts: Sequence[str], *, kind: Kind = "document") -> Vectors:
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for chosen in length_batches(texts, window=self._model.max_seq_length):
            vectors[chosen] = self._encode(texts, chosen, kind, normalize_embeddings=True)
        return vectors

    def _encode(self, texts: Sequence[str], chosen: list[int], kind: Kind, **options: Any) -> Any:
        """Encode some of the texts with the prompt that the model's configuration has for such."""
        encode = self._model.encode_query if kind == "query" else self._model.encode_document
        return encode([texts[index] for index in chosen], batch_size=BATCH, show_progress_bar=False, **options)


class TransformerEncoder(SentenceTransformerEncoder):
    """One whose first part is a transformer, so that its tokens have vectors too."""

    def __init__(self, model_name: str, model: Any, revision: str) -> None:
        super().__init__(model_name, model, revision)
        self.token_dimension: int = self._model[0].get_embedding_dimension()
        # The unknown token is one of the text's: it stands for a word.
        tokenizer = self._model.tokenizer
        self._special = [token for token in tokenizer.all_special_ids if token != tokenizer.unk_token_id]
        self._prompts = {kind: self._prompt(kind) for kind in ("query", "document")}
        self._prompt_tokens = {
            kind: len(tokenizer(prompt.strip(), add_special_tokens=False)["input_ids"])
            for kind, prompt in self._prompts.items()
        }

    def embed_tokens(self, texts: Sequence[str], *, kind: Kind = "document") -> tuple[Vectors, list[TokenVectors]]:
        vectors = np.empty((len(texts), self.dimension), np.float32)
        tokens: list[TokenVectors] = [NO_TOKENS] * len(texts)
        for chosen in length_batches(texts, window=self._model.max_seq_length):
            made = self._encode(texts, chosen, kind, output_value=None)
            vectors[chosen] = _unit([output["sentence_embedding"] for output in made])
            for index, output in zip(chosen, made, strict=True):
                ids = output["input_ids"].cpu().numpy()
                own = self._own_tokens(ids, kind)
                tokens[index] = TokenVectors(
                    ids[own].astype(np.int32), _unit([output["token_embeddings"]])[0, own].astype(np.float16)
                )
        return vectors, tokens

    def token_ids(self, texts: Sequence[str], *, kind: Kind = "document") -> list[NDArray[np.int32]]:
        read = self._model.tokenizer(
            [self._prompts[kind] + text for text in texts], truncation=True, max_length=self._model.max_seq_length
        )
        all_ids = [np.array(ids, np.int32) for ids in read["input_ids"]]
        return [ids[self._own_tokens(ids, kind)] for ids in all_ids]

    def _own_tokens(self, ids: NDArray[Any], kind: Kind) -> NDArray[np.bool_]:
        """Which tokens (t,) are the text's own: neither special, as padding is too, nor of the prompt."""
        own: NDArray[np.bool_] = ~np.isin(ids, self._special)
        own[np.flatnonzero(own)[: self._prompt_tokens[kind]]] = False
        return own

    def _prompt(self, kind: str) -> str:
        """The prompt as the library chooses it for `encode_query` and `encode_document`."""
        names = ("query",) if kind == "query" else ("document", "passage", "corpus")
        prompts = self._model.prompts
        chosen = next((name for name in names if name in prompts), self._model.default_prompt_name)
        return str(prompts.get(chosen) or "")


def _unit(tensors: Sequence[Any]) -> Vectors:
    """Tensors of one shape, stacked, as NumPy's, each vector along the last axis scaled to unit length."""
    import torch

    scaled: Vectors = torch.nn.functional.normalize(torch.stack(list(tensors)), dim=-1).cpu().numpy()
    return scaled
