"""Late interaction: a reranker of the vectors that an index's encoder makes of single tokens. Needs no other model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.retrieval.encoders.base import TokenEncoder, one_thread
from apps.retrieval.encoders.encoding import encoder_for
from apps.retrieval.encoders.token_store import TokenStore
from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.models import ChunkSet, Index
from apps.retrieval.rerankers.base import PairScores, RerankerError
from benchbench.ir.planning.configuration import LATE_INTERACTION
from benchbench.ir.ranking import RESCORE_BAND
from benchbench.ir.records import Scores
from benchbench.local_files.sealed import kept_array

CHUNKS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class TokenFrequencies:
    """`counts[token]` of `chunks` chunks hold a token, among what the encoder reads of them: exact, the same anywhere.

    Counting tokenizes the set once, thousands of chunks a second; this machine keeps the result, in a sealed
    file beside the vectors.
    """

    chunks: int
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, chunk_set: ChunkSet, encoder: TokenEncoder) -> Self:
        key = fingerprint(chunk_set=chunk_set.fingerprint, encoder=encoder.model_name, revision=encoder.revision)
        file = Path(settings.BENCHBENCH_VECTOR_DIR) / f"tokens-{key[:32]}.counts"
        counts = kept_array(file, np.int64, (-1,), holds=key, make=lambda: [_count(chunk_set, encoder)])
        return cls(chunk_set.chunk_count, np.array(counts))

    def idf(self, tokens: NDArray[np.int32]) -> Scores:
        """Return ln(1 + (N − n + ½) / (n + ½)) for each token in n of N chunks, as (t,): BM25's in Lucene's form.

        More than 0 even for a token that every chunk has.
        """
        seen = tokens < len(self.counts)
        counts = np.where(seen, self.counts[np.where(seen, tokens, 0)], 0)
        return np.log1p((self.chunks - counts + 0.5) / (counts + 0.5))


def _count(chunk_set: ChunkSet, encoder: TokenEncoder) -> NDArray[np.int64]:
    counts = np.zeros(1, np.int64)
    for start in range(0, chunk_set.chunk_count, CHUNKS_AT_ONCE):
        part = chunk_set.chunks.filter(position__range=(start, start + CHUNKS_AT_ONCE - 1))
        occurring = [np.unique(ids) for ids in encoder.token_ids(list(part.values_list("text", flat=True)))]
        occurrences = np.bincount(np.concatenate(occurring), minlength=len(counts))
        occurrences[: len(counts)] += counts
        counts = occurrences
    return counts


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
    return np.maximum.reduceat(products, np.searchsorted(rows, np.arange(len(query))))


def _standardised(scores: Scores) -> Scores:
    """Return the z-scores of a list: how many standard deviations each lies above the mean. All equal: all 0."""
    spread = scores.std() if len(scores) else 0.0
    return (scores - scores.mean()) / spread if spread > 0 else np.zeros_like(scores)
