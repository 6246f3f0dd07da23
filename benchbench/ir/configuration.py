"""One configuration of a benchmark: its fields, its names, its normal form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

LATE_INTERACTION = "late-interaction"  # the reranker of a run that names none


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One way to search. `None` stands for: the only index, no threshold, late interaction, and for depths `top_k`.

    `ann` is the text of a `benchbench.ir.ann.Ann`; `weights` are those of the dense and the lexical list.

    Every list that a run uses, of a first stage or fused, is cut to its first `effective_candidates` chunks. A reranker
    scores the first `effective_rerank_depth` of them; the rest, whose scores do not compare with its, are dropped.
    """

    index: str | None = None
    search_mode: str = "dense"
    use_reranker: bool = False
    top_k: int = 100
    rrf_k: int = 60
    score_threshold: float | None = None
    candidates: int | None = None
    rerank_depth: int | None = None
    ann: str = "exact"
    lexical: str = "bm25"
    fusion: str = "rrf"
    weights: tuple[float, float] | None = None
    reranker: str | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Configuration:
        """The configuration that `as_dict` wrote."""
        weights = data.get("weights")
        return cls(**{**data, "weights": None if weights is None else tuple(weights)})

    def as_dict(self) -> dict[str, Any]:
        """The `config` of the API: index and the five classic keys, and further keys where they differ from default."""
        kept = ("index", *CLASSIC, *self._special())
        return {key: value for key, value in asdict(self).items() if key in kept}

    @property
    def effective_candidates(self) -> int:
        return self.candidates or self.top_k

    @property
    def effective_rerank_depth(self) -> int:
        return self.rerank_depth or min(self.top_k, self.effective_candidates)

    @property
    def effective_reranker(self) -> str:
        """The name of the reranker of a run that uses one."""
        return self.reranker or LATE_INTERACTION

    @property
    def hash(self) -> str:
        """16 hex digits, equal for equal configurations, on any machine. A key at its default does not enter it."""
        entering = {key: getattr(self, key) for key in (*CLASSIC, *self._special())}
        return hashlib.sha256(json.dumps(entering, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """What the run does in a few words, such as "hybrid · rrf 60 · top 100 · ≥ 0.5"."""
        reranker = self.effective_reranker.rstrip("/").rpartition("/")[2]
        phrases = [
            (self.index, self.index is not None),
            ("lexical" if self.search_mode == "sparse" else self.search_mode, True),
            (self.ann, self.ann != "exact"),
            (self.lexical, self.lexical != "bm25"),
            (f"rrf {self.rrf_k}", self.search_mode == "hybrid" and self.fusion == "rrf"),
            (f"{self.fusion} {_weights_text(self.weights)}".rstrip(), self.fusion != "rrf"),
            (f"{self.candidates} candidates", self.candidates is not None),
            (f"rerank {reranker}", self.use_reranker),
            (f"rerank depth {self.rerank_depth}", self.rerank_depth is not None),
            (f"top {self.top_k}", True),
            (f"≥ {self.score_threshold}", self.score_threshold is not None),
        ]
        return " · ".join(str(phrase) for phrase, said in phrases if said)

    def normal(self) -> Configuration:
        """The same search in its plainest words: keys that do not touch it, or repeat a default, at their default."""
        hybrid = self.search_mode == "hybrid"
        touching = {
            "ann": self.search_mode != "sparse",
            "lexical": self.search_mode != "dense",
            "fusion": hybrid,
            "rrf_k": hybrid and self.fusion == "rrf",
            "weights": hybrid and self.fusion == "weighted",
            "reranker": self.use_reranker and self.reranker != LATE_INTERACTION,
            "rerank_depth": self.use_reranker and self.rerank_depth != min(self.top_k, self.effective_candidates),
        }
        plain = {key: DEFAULTS[key] for key, touches in touching.items() if not touches}
        if touching["weights"] and self.weights is None:
            plain["weights"] = EQUAL_WEIGHTS
        threshold = None if self.score_threshold is None else float(self.score_threshold)  # 1 must hash as 1.0
        return replace(self, **plain, candidates=self._needed_candidates(), score_threshold=threshold)

    def _needed_candidates(self) -> int | None:
        """`candidates`, or None where `top_k` would do as well: exact lists that are not fused are only ever read from
        the top, so more than is kept or reranked of them makes no difference. An approximate search finds other chunks
        when it is asked for more."""
        candidates = self.effective_candidates
        if self.search_mode == "sparse" or (self.search_mode == "dense" and self.ann == "exact"):
            reranked = (self.rerank_depth or 0) if self.use_reranker else 0
            candidates = min(candidates, max(self.top_k, reranked))
        return None if candidates == self.top_k else candidates

    def _special(self) -> list[str]:
        """The keys beyond the classic ones that differ from their default."""
        return [key for key, default in DEFAULTS.items() if key not in CLASSIC and getattr(self, key) != default]


def _weights_text(weights: tuple[float, float] | None) -> str:
    return " + ".join(f"{weight:.3g}" for weight in weights or ())


EQUAL_WEIGHTS = (0.5, 0.5)
CLASSIC = ("search_mode", "use_reranker", "top_k", "rrf_k", "score_threshold")
DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Configuration)}
