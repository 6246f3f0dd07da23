"""Rerankers: what scores pairs of a query and a text."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np

from apps.retrieval.encoders import BATCH, length_batches
from apps.retrieval.model_files import ModelError, load_model
from benchbench.ir.ranking import UnitKind
from benchbench.ir.records import Scores

RESIDENT_RERANKERS = 2


class Reranker(Protocol):
    """Scores how well texts answer a query. A pair's score does not depend on the pairs it is scored with."""

    @property
    def name(self) -> str: ...

    @property
    def revision(self) -> str: ...

    @property
    def kind(self) -> UnitKind:
        """How its scores come to the scale on which thresholds compare (`benchbench.ir.ranking.unit_scores`)."""

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        """Return the raw score of each text, (n,), in the order of the texts."""


class CrossEncoderReranker:
    """A cross-encoder of sentence-transformers, by name or local path; its scores are raw logits.

    The library would put them through the activation that the model's configuration names, which is a sigmoid in some
    and nothing in others; here none is applied.
    """

    kind: Literal["cross_encoder"] = "cross_encoder"

    def __init__(self, name: str) -> None:
        self.name = name
        self._model, self.revision = load_model("CrossEncoder", name)
        if self._model.num_labels != 1:
            raise ModelError(
                f"The model {name!r} gives {self._model.num_labels} numbers for a pair; a reranker gives one.",
                field="reranker",
            )

    @property
    def device(self) -> str:
        return str(self._model.device)

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        import torch

        scores = np.empty(len(texts))
        for chosen in length_batches(texts, window=self._model.max_seq_length):
            scores[chosen] = self._model.predict(
                [(query, texts[index]) for index in chosen],
                batch_size=BATCH,
                activation_fn=torch.nn.Identity(),
                show_progress_bar=False,
            )
        return scores


@lru_cache(maxsize=RESIDENT_RERANKERS)
def load_reranker(name: str) -> Reranker:
    """Return the reranker called `name`, resident in this process. Raises ModelError."""
    return CrossEncoderReranker(name)
