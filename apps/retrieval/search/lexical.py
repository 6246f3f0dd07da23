"""Lexical search: BM25 in Lucene's variant, over the words of chunks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.analysis.analyzers import PLAIN, Analyzer, build_analyzer
from benchbench.ir.ranking import top
from benchbench.ir.records import ScoredList, Scores
from benchbench.local_files.npz import view_npz

K1, B = 1.5, 0.75
# Stored of an index of English before there were others; `k1` and `b` are those of a search without its own.
ENGLISH: dict[str, object] = {
    "method": "lucene",
    "k1": K1,
    "b": B,
    "stopwords": "en",
    "stemmer": "english",
    "impacts": "float32",
}


def describe_index(analyzer: Analyzer) -> dict[str, object]:
    """Return the stored parameters of an index whose terms an analyzer makes."""
    if analyzer == build_analyzer("english", PLAIN):
        return ENGLISH
    return {"method": "lucene", "impacts": "float32", "analyzer": asdict(analyzer)}


def read_analyzer(parameters: Mapping[str, Any]) -> Analyzer:
    """Return the analyzer of an index by its stored parameters."""
    return Analyzer(**parameters["analyzer"]) if "analyzer" in parameters else build_analyzer("english", PLAIN)


@dataclass(frozen=True, slots=True, eq=False)
class Bm25:
    """An inverted index. The impact of a posting, what its term adds to the score of its chunk, is idf × saturation.

    A saturation depends only on k1, b, the occurrences of the term and the length of the chunk. Few pairs of these two
    are distinct, so a posting holds the number of its pair, and other values of k1 and b need no other index. Impacts
    are float32 and their sum is float64, in the order of the query's words. So a score has the same bits in every batch
    and on every machine that loads this index.
    """

    codes: NDArray[np.unsignedinteger]  # (postings,): term by term, the row of each posting in `pairs`
    positions: NDArray[np.int32]  # (postings,): the chunk of each posting, at most once per term
    pairs: NDArray[np.int64]  # (codes, 2): occurrences of a term in a chunk, and terms of the chunk
    saturations: NDArray[np.float64]  # (codes,): in (0, 1)
    idfs: NDArray[np.float32]  # (terms,)
    starts: NDArray[np.int64]  # (terms + 1,): where each term's postings begin
    terms: dict[str, int]
    count: int  # number of indexed chunks
    length: int  # their number of terms, repetitions included
    analyzer: Analyzer
    tuned: dict[tuple[float, float], NDArray[np.float64]]  # saturations by k1 and b

    def search(self, texts: Sequence[str], depth: int, *, mask: NDArray[np.bool_] | None = None) -> list[ScoredList]:
        """Return the best `depth` chunks that share a word with each text, by descending score, then position.

        A repeated word of a query counts each time. `mask` (n,) admits chunks before they are ranked.
        """
        return [self._find_best(self._compute_scores(self.analyzer.analyze(text)), depth, mask) for text in texts]

    def explain(self, text: str, positions: Sequence[int]) -> list[list[tuple[str, float]]]:
        """Return for each chunk of `positions` the stems that it shares with a text, each with its part of the score.

        The parts are in the order in which a search adds them, so their sum has the bits of the score.
        """
        terms: dict[int, list[tuple[str, float]]] = {position: [] for position in positions}
        for word in (word for word in self.analyzer.analyze(text) if word in self.terms):
            chunks, impacts = self.read_postings(self.terms[word])
            for row in np.flatnonzero(np.isin(chunks, positions)):
                terms[int(chunks[row])].append((word, float(impacts[row])))
        return [terms[position] for position in positions]

    def _compute_scores(self, words: Sequence[str]) -> Scores:
        scores = np.zeros(self.count)
        for term in (self.terms[word] for word in words if word in self.terms):
            positions, impacts = self.read_postings(term)
            scores[positions] += impacts
        return scores

    def read_postings(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the chunks with a term, ascending, and its impact on each, with the bits that bm25s computes."""
        postings = slice(self.starts[term], self.starts[term + 1])
        impacts = self.saturations.take(self.codes[postings]) * self.idfs[term]
        return self.positions[postings], impacts.astype(np.float32)

    def _find_best(self, scores: Scores, depth: int, mask: NDArray[np.bool_] | None) -> ScoredList:
        matches = np.flatnonzero(scores > 0 if mask is None else (scores > 0) & mask)
        return top(scores[matches], depth, ids=matches)

    @property
    def nbytes(self) -> int:
        """Return the bytes of memory, estimating the strings of terms."""
        arrays = self.codes, self.positions, self.pairs, self.saturations, self.idfs, self.starts
        return sum(array.nbytes for array in arrays) + 100 * len(self.terms)

    def tune(self, k1: float, b: float) -> Self:
        """Return the same index with other values of k1 and b: k / (k + norm) for k occurrences, by Lucene's formula.

        Occurrences are float32, as in bm25s.
        """
        if (k1, b) not in self.tuned:
            norms = k1 * ((1 - b) + b * self.pairs[:, 1] / (self.length / max(1, self.count)))
            occurrences = self.pairs[:, 0].astype(np.float32)
            self.tuned[k1, b] = occurrences / (norms + occurrences)
        return replace(self, saturations=self.tuned[k1, b])

    @classmethod
    def from_archive(cls, archive: NDArray[np.uint8], analyzer: Analyzer) -> Self:
        """Return the index in an .npz archive of its attributes, with the terms as JSON, for the usual k1 and b."""
        arrays = view_npz(archive)
        terms = {term: number for number, term in enumerate(json.loads(arrays["terms"].tobytes()))}
        attributes: dict[str, Any] = {name: arrays[name] for name in ("codes", "positions", "pairs", "idfs", "starts")}
        count, length = int(arrays["count"]), int(arrays["length"])
        attributes |= {"saturations": np.empty(0), "tuned": {}}
        index = cls(**attributes, terms=terms, count=count, length=length, analyzer=analyzer)
        return index.tune(K1, B)
