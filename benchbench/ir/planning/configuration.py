"""A configuration of a benchmark: its fields with the axes that set them, its serialised and its normal form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from benchbench.ir.planning import axes
from benchbench.ir.planning.axes import Axis, axis
from benchbench.ir.planning.query_text import AS_ASKED, HYDE, query_text
from benchbench.reading.kinds import split_calls

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
    list. `labels` says what each field means.

    A new field goes last: runs are numbered in the order of the fields, the last varying fastest.
    """

    index: str | None = axis(None, "indexes", axes.NAME.or_null, touches=lambda run: run.needs_index)
    search_mode: str = axis("dense", "search_modes", axes.choice(*SEARCH_MODES))
    use_reranker: bool = axis(False, "use_reranker", axes.SWITCH, reader=axes.ON_OR_OFF, split=axes.parse_switch)
    reranker: str | None = axis(None, "rerankers", axes.NAME.or_null, touches=lambda run: run.use_reranker)
    rerank_depth: int | None = axis(
        None, "rerank_depths", axes.DEPTH.or_null, reader=axes.INTEGER, touches=lambda run: run.use_reranker
    )
    top_k: int = axis(100, "top_k_values", axes.CUTOFF, reader=axes.INTEGER)
    candidates: int | None = axis(None, "candidates", axes.DEPTH.or_null, reader=axes.INTEGER)
    ann: str = axis(
        "exact",
        "ann",
        axes.ANN,
        split=split_calls,
        expand=axes.expand_ann,
        touches=lambda run: run.uses_vectors,
    )
    lexical: str = axis("bm25", "lexical", axes.choice(*LEXICAL), touches=lambda run: run.uses_words)
    fusion: str = axis("rrf", "fusion", axes.choice(*FUSIONS), touches=lambda run: run.search_mode == "hybrid")
    weights: tuple[float, float] | None = axis(
        None,
        "weights",
        axes.WEIGHTS.or_null,
        reader=axes.PAIR,
        canonical=axes.scale_weights,
        touches=lambda run: run.search_mode == "hybrid" and run.fusion == "weighted",
    )
    rrf_k: int = axis(
        60,
        "rrf_k_values",
        axes.DEPTH,
        reader=axes.INTEGER,
        touches=lambda run: run.is_fused and (run.fusion == "rrf" or run.asks_engine),
    )
    score_threshold: float | None = axis(
        None,
        "score_thresholds",
        axes.SHARE.or_null,
        reader=axes.NUMBER,
        touches=lambda run: run.search_mode != "engine" or run.use_reranker,
    )
    dimensions: int | None = axis(
        None, "dimensions", axes.DEPTH.or_null, reader=axes.INTEGER, touches=lambda run: run.uses_vectors
    )
    query: str = axis(AS_ASKED, "query", axes.QUERY_TEXT, canonical=query_text, touches=lambda run: run.rewrites)
    llm: str | None = axis(None, "llms", axes.LLM.or_null, touches=lambda run: run.rewrites)
    engine: str | None = axis(
        None,
        "engines",
        axes.ENGINE.or_null,
        split=split_calls,
        expand=axes.expand_engine,
        touches=lambda run: run.asks_engine,
    )
    filter_share: float | None = axis(
        None,
        "filter_shares",
        axes.ADMITTED.or_null,
        reader=axes.NUMBER,
        canonical=lambda share: share and float(share),  # 1 must hash as 1.0
        touches=lambda run: run.search_mode in INDEX_MODES,
    )
    rate: float | None = axis(
        None,
        "rates",
        axes.RATE.or_null,
        reader=axes.RATES,
        canonical=lambda rate: None if rate is None else float(rate),
    )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Configuration:
        """Return the configuration that `as_dict` wrote."""
        weights = data.get("weights")
        return cls(**{**data, "weights": None if weights is None else tuple(weights)})

    def as_dict(self) -> dict[str, Any]:
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

    def normalize(self) -> Configuration:
        """Return the same search in normal form: keys that do not affect it are at their default."""
        plain = {name: DEFAULTS[name] for name, axis in AXES.items() if not axis.touches(self)}
        if self.reranker == LATE_INTERACTION:
            plain["reranker"] = None
        if self.rerank_depth == min(self.top_k, self.effective_candidates):
            plain["rerank_depth"] = None
        if AXES["weights"].touches(self) and self.weights is None:
            plain["weights"] = EQUAL_WEIGHTS
        if self.score_threshold is not None:
            plain.setdefault("score_threshold", float(self.score_threshold))  # 1 must hash as 1.0
        return replace(self, **plain, candidates=self._find_candidates())

    def _find_candidates(self) -> int | None:
        """Return `candidates`, or None if `top_k` gives the same result.

        Exact lists that are not fused are only read from the top, so entries beyond those kept or reranked make no
        difference. An approximate search finds other chunks at another depth.
        """
        candidates = self.effective_candidates
        if self.search_mode == "sparse" or (self.search_mode == "dense" and self.ann == "exact"):
            reranked = (self.rerank_depth or 0) if self.use_reranker else 0
            candidates = min(candidates, max(self.top_k, reranked))
        return None if candidates == self.top_k else candidates

    def _list_special(self) -> list[str]:
        """Return the keys beyond the classic ones that differ from their default."""
        return [key for key, default in DEFAULTS.items() if key not in CLASSIC and getattr(self, key) != default]


AXES: dict[str, Axis] = {  # by field
    each.name: replace(each.metadata["axis"], field=each.name, default=each.default) for each in fields(Configuration)
}
DEFAULTS: dict[str, Any] = {each.name: each.default for each in fields(Configuration)}
CLASSIC = ("search_mode", "use_reranker", "top_k", "rrf_k", "score_threshold")
