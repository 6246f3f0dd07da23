"""A configuration of a benchmark: its fields, what follows from them, and its serialised form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from benchbench.ir.planning.query_text import AS_ASKED, HYDE

INDEX_MODES = ("dense", "sparse", "hybrid")  # modes that search an index alone
ENGINE_MODES = ("engine", "engine+dense", "engine+sparse")  # modes that ask a search engine
SEARCH_MODES = INDEX_MODES + ENGINE_MODES
LEXICAL = ("bm25", "fts")
FUSIONS = ("rrf", "weighted")
LATE_INTERACTION = "late-interaction"  # the reranker of a run that names none
EQUAL_WEIGHTS = (0.5, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One way to search.

    Every list that a run uses, of a first stage or fused, is cut to its first `effective_candidates` chunks. A reranker
    scores the first `effective_rerank_depth` of them; the rest, whose scores do not compare with its, are dropped.

    `None` means: the only index, no threshold, late interaction, all dimensions, no engine, only a query's own
    filter, one query at a time, and for depths `top_k`.
    `ann` is the text of an `Ann`, `engine` that of an `EngineSetting`; `weights` are those of the dense and the lexical
    list. The axis of each field says what it means.

    A new field goes last: runs are numbered in the order of the fields, the last varying fastest.
    """

    index: str | None = None
    search_mode: str = "dense"
    use_reranker: bool = False
    reranker: str | None = None
    rerank_depth: int | None = None
    top_k: int = 100
    candidates: int | None = None
    ann: str = "exact"
    lexical: str = "bm25"
    fusion: str = "rrf"
    weights: tuple[float, float] | None = None
    rrf_k: int = 60
    score_threshold: float | None = None
    dimensions: int | None = None
    query: str = AS_ASKED
    llm: str | None = None
    engine: str | None = None
    filter_share: float | None = None
    rate: float | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Configuration:
        """Return the configuration that `as_dict` wrote."""
        weights = data.get("weights")
        return cls(**{**data, "weights": None if weights is None else tuple(weights)})

    def as_dict(self) -> dict[str, object]:
        """Return the `config` of the API: index, the five classic keys, and other keys not at their default."""
        written = ("index", *CLASSIC, *self._list_special())
        return {key: value for key, value in asdict(self).items() if key in written}

    @property
    def rewrites(self) -> bool:
        """Return whether a language model writes the searched text. Lexical search does not use a passage."""
        if self.asks_engine:
            return False
        return self.query != AS_ASKED and not (self.query == HYDE and self.search_mode == "sparse")

    @property
    def asks_engine(self) -> bool:
        return self.search_mode in ENGINE_MODES

    @property
    def uses_vectors(self) -> bool:
        """Return whether it compares vectors of an index. A search engine may compare vectors of its own."""
        return self.search_mode in ("dense", "hybrid", "engine+dense")

    @property
    def is_exact(self) -> bool:
        """Return whether it compares all vectors in all dimensions."""
        return self.ann == "exact" and self.dimensions is None

    @property
    def uses_words(self) -> bool:
        """Return whether it searches the words of an index."""
        return self.search_mode in ("sparse", "hybrid", "engine+sparse")

    @property
    def interacts_late(self) -> bool:
        """Return whether it reranks by token vectors of the index's encoder."""
        return self.use_reranker and self.effective_reranker == LATE_INTERACTION

    @property
    def uses_bm25(self) -> bool:
        """Return whether it searches a BM25 index."""
        return self.uses_words and self.lexical.startswith(LEXICAL[0])

    @property
    def is_fused(self) -> bool:
        """Return whether it fuses two lists. Scores of search engines are not fused, only their ranks."""
        return self.search_mode in ("hybrid", "engine+dense", "engine+sparse")

    @property
    def needs_index(self) -> bool:
        """Return whether it reads an index; a search engine alone ranks documents of any collection."""
        return self.search_mode != "engine" or self.use_reranker

    @property
    def effective_candidates(self) -> int:
        return self.candidates or self.top_k

    @property
    def effective_rerank_depth(self) -> int:
        return self.rerank_depth or min(self.top_k, self.effective_candidates)

    @property
    def effective_reranker(self) -> str:
        """Return the name of the reranker of a run that uses one."""
        return self.reranker or LATE_INTERACTION

    @property
    def hash(self) -> str:
        """Return 16 hex digits, equal for equal configurations on any machine. Keys at their default are left out."""
        entering = {key: getattr(self, key) for key in (*CLASSIC, *self._list_special())}
        return hashlib.sha256(json.dumps(entering, sort_keys=True).encode()).hexdigest()[:16]

    def _list_special(self) -> list[str]:
        """Return the keys beyond the classic ones that differ from their default."""
        return [key for key, default in DEFAULTS.items() if key not in CLASSIC and getattr(self, key) != default]


DEFAULTS: dict[str, Any] = {each.name: each.default for each in fields(Configuration)}
CLASSIC = ("search_mode", "use_reranker", "top_k", "rrf_k", "score_threshold")
