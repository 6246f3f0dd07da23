"""Lexical search: BM25 in Lucene's variant, over the words of chunks."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.ranking import top
from benchbench.ir.records import ScoredList, Scores
from benchbench.reading.strict_json import attributes

PARAMETERS: dict[str, Any] = {
    "method": "lucene",
    "k1": 1.5,
    "b": 0.75,
    "stopwords": "en",
    "stemmer": "english",
    "impacts": "float32",
}


@dataclass(frozen=True, slots=True, eq=False)
class Bm25:
    """An inverted index with precomputed impacts: each posting has the contribution of a term to a chunk's score.

    A search only adds them up. Impacts are float32 and their sum is float64, in the order of the query's words. So a
    score has the same bits in every batch and on every machine that loads this index.
    """

    impacts: NDArray[np.float32]  # (postings,): term by term
    positions: NDArray[np.int32]  # (postings,): the chunk of each posting, at most once per term
    starts: NDArray[np.int64]  # (terms + 1,): where each term's postings begin
    terms: dict[str, int]
    count: int  # number of indexed chunks

    @classmethod
    def build(cls, texts: Sequence[str]) -> Self:
        """Index `texts`, whose positions are 0..n-1. About 3,000 abstracts a second."""
        import bm25s

        tokenized = bm25s.tokenize(list(texts), **_build_options())
        # The library numbers terms in the order of a set of strings, which differs between processes.
        terms = {term: number for number, term in enumerate(sorted(tokenized.vocab))}
        if not terms:
            return cls(np.empty(0, np.float32), np.empty(0, np.int32), np.zeros(1, np.int64), terms, len(texts))
        renumbered = np.empty(len(terms), np.int64)
        for term, number in tokenized.vocab.items():
            renumbered[number] = terms[term]
        engine = bm25s.BM25(
            method=PARAMETERS["method"], k1=PARAMETERS["k1"], b=PARAMETERS["b"], dtype=PARAMETERS["impacts"]
        )
        matrix = engine.build_index_from_ids(
            unique_token_ids=list(range(len(terms))),
            corpus_token_ids=[renumbered[ids].tolist() for ids in tokenized.ids],
            show_progress=False,
        )
        starts = np.asarray(matrix["indptr"], np.int64)
        return cls(
            np.asarray(matrix["data"], np.float32), np.asarray(matrix["indices"], np.int32), starts, terms, len(texts)
        )

    def search(self, texts: Sequence[str], depth: int, *, mask: NDArray[np.bool_] | None = None) -> list[ScoredList]:
        """Return the best `depth` chunks that share a word with each text, by descending score, then position.

        A repeated word of a query counts each time. `mask` (n,) admits chunks before they are ranked.
        """
        import bm25s

        queries = bm25s.tokenize(list(texts), return_ids=False, **_build_options())
        return [self._find_best(self._compute_scores(words), depth, mask) for words in queries]

    def explain(self, text: str, positions: Sequence[int]) -> list[list[tuple[str, float]]]:
        """Return for each chunk of `positions` the stems that it shares with a text, each with its part of the score.

        The parts are in the order in which a search adds them, so their sum has the bits of the score.
        """
        import bm25s

        (words,) = bm25s.tokenize([text], return_ids=False, **_build_options())
        terms: dict[int, list[tuple[str, float]]] = {position: [] for position in positions}
        for word in (word for word in words if word in self.terms):
            postings = slice(self.starts[self.terms[word]], self.starts[self.terms[word] + 1])
            for row in np.flatnonzero(np.isin(self.positions[postings], positions)):
                terms[int(self.positions[postings][row])].append((word, float(self.impacts[postings][row])))
        return [terms[position] for position in positions]

    def _compute_scores(self, words: Sequence[str]) -> Scores:
        scores = np.zeros(self.count)
        for term in (self.terms[word] for word in words if word in self.terms):
            postings = slice(self.starts[term], self.starts[term + 1])
            scores[self.positions[postings]] += self.impacts[postings]
        return scores

    def _find_best(self, scores: Scores, depth: int, mask: NDArray[np.bool_] | None) -> ScoredList:
        matches = np.flatnonzero(scores > 0 if mask is None else (scores > 0) & mask)
        return top(scores[matches], depth, ids=matches)

    @property
    def nbytes(self) -> int:
        """Return the bytes of memory, estimating the strings of terms."""
        return self.impacts.nbytes + self.positions.nbytes + self.starts.nbytes + 100 * len(self.terms)

    def to_bytes(self) -> bytes:
        """Serialise to NumPy's .npz, with the terms as JSON. Equal indexes give equal bytes."""
        terms = np.frombuffer(json.dumps(list(self.terms), ensure_ascii=False).encode(), np.uint8)
        buffer = io.BytesIO()
        arrays = attributes(self, "impacts", "positions", "starts")
        np.savez(buffer, **arrays, terms=terms, count=np.int64(self.count))
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            terms = {term: number for number, term in enumerate(json.loads(archive["terms"].tobytes()))}
            return cls(archive["impacts"], archive["positions"], archive["starts"], terms, int(archive["count"]))


def _build_options() -> dict[str, Any]:
    """Return the tokenizer options: lower case, words of two or more characters, no stop words, stems."""
    import Stemmer

    return {
        "stopwords": PARAMETERS["stopwords"],
        "stemmer": Stemmer.Stemmer(PARAMETERS["stemmer"]),
        "show_progress": False,
    }
