"""Late interaction: a reranker of the vectors that an index's encoder makes of single tokens. Needs no other model."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.encoders import TokenEncoder
from apps.retrieval.encoders.encoding import encoder_for
from apps.retrieval.encoders.threads import one_thread
from apps.retrieval.encoders.token_frequencies import TokenFrequencies
from apps.retrieval.encoders.token_store import TokenStore
from apps.retrieval.models import Index
from apps.retrieval.rerankers.base import PairScores, RerankerError
from benchbench.ir.planning.configuration import LATE_INTERACTION
from benchbench.ir.ranking import RESCORE_BAND
from benchbench.ir.records import Scores

# How much a standard deviation of its score counts against one of the first stage's; see docs/decisions.md for what was
# measured.
WEIGHT = 2.0


class LateInteractionReranker:
    """Compares each token of a query with the token of a text that is nearest to it in its context.

    A pair's score is Σ_t idf(t) · max_d cos(q_t, d_t) / Σ_t idf(t), over the query's tokens t and the text's tokens d:
    MaxSim of ColBERT (Khattab and Zaharia, SIGIR 2020), whose sum here is a mean weighted by how rare a token is in the
    chunk set. A list is ordered by the z-score of that over its candidates, times WEIGHT, plus the z-score of its
    first stage: the encoder was not trained for this, and each corrects the other. Thresholds compare the plain mean of
    the greatest similarities.

    Costs one encoding per query, and per pair a product of (query tokens × dimension × text tokens): half a millisecond
    for 256 tokens of 384 dimensions.
    """

    name = LATE_INTERACTION
    kind: Literal["late_interaction"] = "late_interaction"

    def __init__(self, index: Index) -> None:
        """Raises ModelError, EncoderError, and RerankerError where the index has no encoder with token vectors."""
        if not index.encoder:
            raise RerankerError(
                f'The reranker "{LATE_INTERACTION}" compares token vectors, and the index "{index}" names no encoder '
                "that could make them: make a version of it with one, or name a cross-encoder."
            )
        encoder = encoder_for(index)
        if not isinstance(encoder, TokenEncoder):
            raise RerankerError(
                f'The reranker "{LATE_INTERACTION}" compares token vectors, and the encoder {index.encoder} makes '
                "none: make an index with another encoder, or name a cross-encoder."
            )
        assert index.chunk_set is not None
        self.model_name = encoder.model_name
        self.revision = f"{encoder.model_name} {encoder.revision}"
        self._frequencies = TokenFrequencies.of(index.chunk_set, encoder)
        self._queries = TokenStore(encoder, "query")
        self._documents = TokenStore(encoder, "document")

    def prepare(self, texts: Sequence[str], *, on_part: Callable[[], None] = lambda: None) -> None:
        """Keep the token vectors of texts, which an index with imported vectors has not made yet."""
        self._documents.tokens(self._documents.missing(texts), on_part=on_part)

    def score(self, query: str, texts: Sequence[str]) -> PairScores:
        scores, means = np.zeros(len(texts)), np.zeros(len(texts))
        (asked,) = self._queries.tokens([query])
        if len(asked.ids) and texts:
            weights = self._frequencies.idf(asked.ids)
            vectors = asked.vectors.astype(np.float32)
            kept = self._documents.tokens(texts)
            with one_thread():
                for number, text in enumerate(kept):
                    best = greatest_similarities(vectors, text.vectors.astype(np.float32))
                    scores[number] = (weights * best).sum() / weights.sum()
                    means[number] = best.mean()
        return PairScores(scores, means)

    def combine(self, first: Scores, scores: Scores) -> Scores:
        return WEIGHT * _standardised(scores) + _standardised(first)


def greatest_similarities(query: NDArray[np.float32], text: NDArray[np.float32]) -> Scores:
    """Return for each token vector of `query` (q, d) its greatest inner product with one of `text` (t, d), as (q,).

    The same bits in any batch and with any number of threads: float32 products only nominate, those within
    RESCORE_BAND of the greatest are made again in float64, row by row, as `benchbench.ir.ranking.exact_top` does for
    whole chunks. A text without tokens is like nothing: 0.
    """
    if not len(text):
        return np.zeros(len(query))
    import torch

    similarities = (torch.from_numpy(query) @ torch.from_numpy(text).T).numpy()
    rows, columns = np.nonzero(similarities >= similarities.max(axis=1, keepdims=True) - RESCORE_BAND)
    products = np.multiply(query[rows], text[columns], dtype=np.float64, order="C").sum(axis=1)
    greatest: Scores = np.maximum.reduceat(products, np.searchsorted(rows, np.arange(len(query))))
    return greatest


def _standardised(scores: Scores) -> Scores:
    """Return the z-scores of a list: how many standard deviations each lies above the mean. All equal: all 0."""
    spread = scores.std() if len(scores) else 0.0
    return (scores - scores.mean()) / spread if spread > 0 else np.zeros_like(scores)
