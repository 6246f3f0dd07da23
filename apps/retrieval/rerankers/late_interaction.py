"""Late interaction: a reranker using the token vectors of an index's encoder, without another model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.retrieval.encoders.base import TokenEncoder, one_thread
from apps.retrieval.encoders.encoding import load_index_encoder
from apps.retrieval.encoders.token_store import TokenStore
from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.models import ChunkSet, Index
from apps.retrieval.rerankers.base import PairScores, RerankerError
from benchbench.ir.planning.configuration import LATE_INTERACTION
from benchbench.ir.ranking import RESCORE_BAND
from benchbench.ir.records import Scores
from benchbench.local_files.sealed import load_array

CHUNKS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class TokenFrequencies:
    """Document frequencies of tokens: `counts[token]` of `chunks` chunks have it, within the encoder's window.

    Counts are exact and the same on every machine. Counting tokenizes the set once, thousands of chunks a second. The
    result is stored on this machine in a sealed file next to the vectors.
    """

    chunks: int
    counts: NDArray[np.int64]

    @classmethod
    def load(cls, chunk_set: ChunkSet, encoder: TokenEncoder) -> Self:
        key = fingerprint(chunk_set=chunk_set.fingerprint, encoder=encoder.model_name, revision=encoder.revision)
        file = Path(settings.BENCHBENCH_VECTOR_DIR) / f"tokens-{key[:32]}.counts"
        counts = load_array(file, np.int64, (-1,), holds=key, make=lambda: [_count(chunk_set, encoder)])
        return cls(chunk_set.chunk_count, np.array(counts))

    def idf(self, tokens: NDArray[np.int32]) -> Scores:
        """Return ln(1 + (N − n + ½) / (n + ½)) for each token in n of N chunks, as (t,): BM25's in Lucene's form.

        Positive even for a token in every chunk.
        """
        seen = tokens < len(self.counts)
        counts = np.where(seen, self.counts[np.where(seen, tokens, 0)], 0)
        return np.log1p((self.chunks - counts + 0.5) / (counts + 0.5))


def _count(chunk_set: ChunkSet, encoder: TokenEncoder) -> NDArray[np.int64]:
    counts = np.zeros(1, np.int64)
    for start in range(0, chunk_set.chunk_count, CHUNKS_AT_ONCE):
        chunks = chunk_set.chunks.filter(position__range=(start, start + CHUNKS_AT_ONCE - 1))
        occurring = [np.unique(ids) for ids in encoder.tokenize(list(chunks.values_list("text", flat=True)))]
        occurrences = np.bincount(np.concatenate(occurring), minlength=len(counts))
        occurrences[: len(counts)] += counts
        counts = occurrences
    return counts


# The weight of a standard deviation of its score relative to one of the first stage's; see docs/decisions.md for the
# measurements.
WEIGHT = 2.0


class LateInteractionReranker:
    """A reranker that compares each token of a query with the most similar token of a text, by contextual vectors.

    A pair's score is Σ_t idf(t) · max_d cos(q_t, d_t) / Σ_t idf(t), over the query's tokens t and the text's tokens d:
    MaxSim of ColBERT (Khattab and Zaharia, SIGIR 2020), with a mean weighted by idf in the chunk set instead of a sum.
    A list is ordered by WEIGHT times the z-score of that over its candidates, plus the z-score of the first stage: the
    encoder was not trained for this, and the two correct each other. Thresholds compare the unweighted mean of the
    greatest similarities.

    Costs one encoding per query, and per pair a product of (query tokens × dimension × text tokens): half a millisecond
    for 256 tokens of 384 dimensions.
    """

    name = LATE_INTERACTION
    kind: Literal["late_interaction"] = "late_interaction"

    def __init__(self, index: Index) -> None:
        """Load the index's encoder. Raises ModelError, EncoderError, and RerankerError if it has no token vectors."""
        if not index.encoder:
            raise RerankerError(
                f'The reranker "{LATE_INTERACTION}" needs token vectors, but the index "{index}" has no encoder: make '
                "a version of it with an encoder, or choose a cross-encoder."
            )
        encoder = load_index_encoder(index)
        if not isinstance(encoder, TokenEncoder):
            raise RerankerError(
                f'The reranker "{LATE_INTERACTION}" needs token vectors, which the encoder {index.encoder} does not '
                "make: use an index with another encoder, or choose a cross-encoder."
            )
        assert index.chunk_set is not None
        self.model_name = encoder.model_name
        self.revision = f"{encoder.model_name} {encoder.revision}"
        self._frequencies = TokenFrequencies.load(index.chunk_set, encoder)
        self._queries = TokenStore(encoder, "query")
        self._documents = TokenStore(encoder, "document")

    def prepare(self, texts: Sequence[str], *, on_part: Callable[[], None] = lambda: None) -> None:
        """Store the missing token vectors of texts, such as those of an index with imported vectors."""
        self._documents.load_tokens(self._documents.find_missing(texts), on_part=on_part)

    def score(self, query: str, texts: Sequence[str]) -> PairScores:
        scores, means = np.zeros(len(texts)), np.zeros(len(texts))
        (query_tokens,) = self._queries.load_tokens([query])
        if len(query_tokens.ids) and texts:
            weights = self._frequencies.idf(query_tokens.ids)
            vectors = query_tokens.vectors.astype(np.float32)
            text_tokens = self._documents.load_tokens(texts)
            with one_thread():
                for number, text in enumerate(text_tokens):
                    best = find_max_similarities(vectors, text.vectors.astype(np.float32))
                    scores[number] = (weights * best).sum() / weights.sum()
                    means[number] = best.mean()
        return PairScores(scores, means)

    def find_cut(self, query: str, texts: Sequence[str]) -> list[int]:
        """Return all texts if the encoder does not read the end of the query."""
        return list(range(len(texts))) if self._queries.encoder.count_cut([query], kind="query") else []

    def combine(self, first: Scores, scores: Scores) -> Scores:
        return WEIGHT * _standardise(scores) + _standardise(first)


def find_max_similarities(query: NDArray[np.float32], text: NDArray[np.float32]) -> Scores:
    """Return for each token vector of `query` (q, d) its greatest inner product with one of `text` (t, d), as (q,).

    The bits do not depend on batches or threads: float32 products only nominate. Those within RESCORE_BAND of the
    greatest are computed again in float64, row by row, as `search.exact.find_nearest` does for chunks. A text without
    tokens gives 0.
    """
    if not len(text):
        return np.zeros(len(query))
    import torch

    similarities = (torch.from_numpy(query) @ torch.from_numpy(text).T).numpy()
    rows, columns = np.nonzero(similarities >= similarities.max(axis=1, keepdims=True) - RESCORE_BAND)
    products = np.multiply(query[rows], text[columns], dtype=np.float64, order="C").sum(axis=1)
    return np.maximum.reduceat(products, np.searchsorted(rows, np.arange(len(query))))


def _standardise(scores: Scores) -> Scores:
    """Return the z-scores of a list; all 0 if the scores are equal."""
    spread = scores.std() if len(scores) else 0.0
    return (scores - scores.mean()) / spread if spread > 0 else np.zeros_like(scores)
