"""Frequencies of tokens in the chunks of a set, from which their idf is computed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.retrieval.encoders.base import TokenEncoder
from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.models import ChunkSet
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
        weights: Scores = np.log1p((self.chunks - counts + 0.5) / (counts + 0.5))
        return weights


def _count(chunk_set: ChunkSet, encoder: TokenEncoder) -> NDArray[np.int64]:
    counts = np.zeros(1, np.int64)
    for start in range(0, chunk_set.chunk_count, CHUNKS_AT_ONCE):
        part = chunk_set.chunks.filter(position__range=(start, start + CHUNKS_AT_ONCE - 1))
        occurring = [np.unique(ids) for ids in encoder.token_ids(list(part.values_list("text", flat=True)))]
        occurrences = np.bincount(np.concatenate(occurring), minlength=len(counts))
        occurrences[: len(counts)] += counts
        counts = occurrences
    return counts
