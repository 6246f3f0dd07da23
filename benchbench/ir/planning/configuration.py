"""One configuration of a benchmark: how it is named and written, and its normal form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from benchbench.ir.planning import axes
from benchbench.ir.planning.axes import Axis
from benchbench.ir.planning.fields import IN_LABEL, Fields
from benchbench.ir.planning.query_text import AS_ASKED, HYDE

LATE_INTERACTION = "late-interaction"  # the reranker of a run that names none
EQUAL_WEIGHTS = (0.5, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration(Fields):
    """One way to search.

    Every list that a run uses, of a first stage or fused, is cut to its first `effective_candidates` chunks. A reranker
    scores the first `effective_rerank_depth` of them; the rest, whose scores do not compare with its, are dropped.
    """

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
    def rewrites(self) -> bool:
        """Whether a language model makes the text that is searched for. Search by words has no use for a passage."""
        return self.query != AS_ASKED and not (self.query == HYDE and self.search_mode == "sparse")

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
        return " · ".join(text for text in (AXES[name].said(self) for name in IN_LABEL) if text)

    def normal(self) -> Configuration:
        """The same search in its plainest words: keys that do not touch it, or repeat a default, at their default."""
        plain = {name: DEFAULTS[name] for name, axis in AXES.items() if not axis.touches(self)}
        if self.reranker == LATE_INTERACTION:
            plain["reranker"] = None
        if self.rerank_depth == min(self.top_k, self.effective_candidates):
            plain["rerank_depth"] = None
        if AXES["weights"].touches(self) and self.weights is None:
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

    @property
    def _fusion_text(self) -> str:
        if self.fusion == "rrf":
            return f"rrf {self.rrf_k}" if self.search_mode == "hybrid" else ""
        return f"{self.fusion} {axes.weights_text(self.weights)}".rstrip()

    def _special(self) -> list[str]:
        """The keys beyond the classic ones that differ from their default."""
        return [key for key, default in DEFAULTS.items() if key not in CLASSIC and getattr(self, key) != default]


AXES: dict[str, Axis] = {  # by field
    each.name: replace(each.metadata["axis"], field=each.name, default=each.default) for each in fields(Configuration)
}
DEFAULTS: dict[str, Any] = {each.name: each.default for each in fields(Configuration)}
CLASSIC = ("search_mode", "use_reranker", "top_k", "rrf_k", "score_threshold")
