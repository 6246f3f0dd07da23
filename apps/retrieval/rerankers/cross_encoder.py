"""Cross-encoders of sentence-transformers, which read a query and a text together."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal

import numpy as np

from apps.retrieval.encoders.base import make_budget, one_thread, run_batches
from apps.retrieval.encoders.model_files import ModelError, load_model
from apps.retrieval.rerankers.base import PairScores
from benchbench.ir.records import Scores


class CrossEncoderReranker:
    """A cross-encoder of sentence-transformers, by name or local path; its scores are raw logits.

    The activation in the model's configuration, a sigmoid for some models, is not applied.

    On a CPU each pair is scored alone on one thread, with as many pairs at once as torch has threads. In a batch the
    last bits of a score would depend on the other pairs and the number of threads. It takes .85 of the time of batches
    of 32, since it needs no padding. On a GPU, pairs are batched by length up to a budget of tokens, and last bits
    depend on the batch; there a benchmark's pair lists ensure that a pair has one score.
    """

    kind: Literal["cross_encoder"] = "cross_encoder"

    def __init__(self, name: str, *, device: str | None = None) -> None:
        """Load the model. `device` defaults to the best available. Raises ModelError."""
        self.name = self.model_name = name
        self._model, self.revision = load_model("CrossEncoder", name, device=device)
        if self._model.num_labels != 1:
            raise ModelError(
                f"The model {name!r} gives {self._model.num_labels} numbers for a pair; a reranker must give one.",
                field="reranker",
            )
        self.budget = make_budget(name, self.device)

    @property
    def device(self) -> str:
        return str(self._model.device)

    def prepare(self, texts: Sequence[str], *, on_part: Callable[[], None] = lambda: None) -> None:
        """Do nothing: each text is read again with each query."""

    def score(self, query: str, texts: Sequence[str]) -> PairScores:
        scores = np.empty(len(texts))
        if self.budget is None:
            scores[:] = self._score_each([(query, text) for text in texts])
        else:
            joined, window = [f"{query} {text}" for text in texts], self._model.max_seq_length
            predict = partial(self._predict_some, query, texts)
            for chosen, some in run_batches(joined, predict, window=window, budget=self.budget):
                scores[chosen] = some
        return PairScores(scores, scores)

    def find_cut(self, query: str, texts: Sequence[str]) -> list[int]:
        """Return the texts that are too long with the query. A token has a byte at least, so short ones are not."""
        window, tokenizer = self._model.max_seq_length, self._model.tokenizer
        if window is None or not callable(tokenizer):
            return []
        room = window - tokenizer.num_special_tokens_to_add(pair=True)
        perhaps = [n for n, text in enumerate(texts) if len(query.encode()) + len(text.encode()) > room]
        if not perhaps:
            return []
        read = [query, *(texts[number] for number in perhaps)]
        options = {"add_special_tokens": False, "truncation": False, "verbose": False}
        of_query, *lengths = map(len, tokenizer(read, **options)["input_ids"])
        return [number for number, length in zip(perhaps, lengths, strict=True) if of_query + length > room]

    def _predict_some(self, query: str, texts: Sequence[str], chosen: Sequence[int]) -> Scores:
        return self._predict([(query, texts[index]) for index in chosen], len(chosen))

    def _score_each(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """Score each pair by itself on one thread, several pairs at once, so that the bits depend only on the pair."""
        scores = np.empty(len(pairs))
        with one_thread() as threads, ThreadPoolExecutor(threads) as pool:
            shares = [pairs[start::threads] for start in range(min(threads, len(pairs)))]
            for start, share in enumerate(pool.map(self._predict, shares)):
                scores[start::threads] = share
        return scores

    def _predict(self, pairs: Sequence[tuple[str, str]], batch_size: int = 1) -> Scores:
        import torch

        scores: Scores = self._model.predict(
            list(pairs), batch_size=batch_size, activation_fn=torch.nn.Identity(), show_progress_bar=False
        )
        return scores

    def combine(self, first: Scores, scores: Scores) -> Scores:
        """Return the reranker's own scores."""
        return scores
