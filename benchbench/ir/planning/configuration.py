"""One configuration of a benchmark: its fields, each with the axis that sets it, its names, its normal form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from benchbench.ir.planning import axes, query_axes
from benchbench.ir.planning.ann_methods import OF_STORES
from benchbench.ir.planning.axes import METHODS, RERANKING, SEARCH, Axis, axis
from benchbench.ir.planning.query_text import AS_ASKED, HYDE
from benchbench.reading.calls import split_calls

LATE_INTERACTION = "late-interaction"  # the reranker of a run that names none
SEARCH_MODES = ("dense", "sparse", "hybrid")
LEXICAL = ("bm25", "fts")
FUSIONS = ("rrf", "weighted")
EQUAL_WEIGHTS = (0.5, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One way to search. `None` stands for: the only index, no threshold, late interaction, and for depths `top_k`.

    `ann` is the text of an `Ann`; `weights` are those of the dense and the lexical list; `dimensions` is how many of
    the encoder's the dense search compares, None for all.

    Every list that a run uses, of a first stage or fused, is cut to its first `effective_candidates` chunks. A reranker
    scores the first `effective_rerank_depth` of them; the rest, whose scores do not compare with its, are dropped.

    A new field goes last: runs are numbered in the order of the fields, the last varying fastest.
    """

    index: str | None = axis(
        None,
        "indexes",
        axes.NAME.or_null,
        option="--indexes",
        section=SEARCH,
        label="Indexes",
        help="Names of indexes, the newest of each. None: the one that became ready last.",
        touches=lambda run: run.index is not None,
        said=lambda run: run.index or "",
        phrase=lambda value: f"index {value}",
        unstated="the only index",
    )
    search_mode: str = axis(
        "dense",
        "search_modes",
        axes.choice(*SEARCH_MODES),
        option="--modes",
        section=SEARCH,
        label="Modes",
        help="How the first stage finds chunks.",
        choices=dict(zip(SEARCH_MODES, ("dense: by vectors", "lexical: by words", "hybrid: both, fused"), strict=True)),
        said=lambda run: "lexical" if run.search_mode == "sparse" else run.search_mode,
        phrase=lambda value: "lexical" if value == "sparse" else str(value),
    )
    use_reranker: bool = axis(
        False,
        "use_reranker",
        axes.SWITCH,
        option="--rerank",
        section=RERANKING,
        label="Reranking",
        help="A second look at the first results: slower, often better.",
        part=axes.ON_OR_OFF,
        split=axes.sides,
        said=lambda run: f"rerank {axes.last_part(run.effective_reranker)}" if run.use_reranker else "",
        phrase=lambda value: "reranked" if value else "not reranked",
        named="reranking",
    )
    reranker: str | None = axis(
        None,
        "rerankers",
        axes.NAME.or_null,
        option="--reranker",
        section=RERANKING,
        label="Reranker",
        help="A sentence-transformers CrossEncoder, by name or local path. Empty: late-interaction, by the tokens of "
        "the index's own encoder.",
        touches=lambda run: run.use_reranker,
        phrase=axes.last_part,
    )
    rerank_depth: int | None = axis(
        None,
        "rerank_depths",
        axes.DEPTH.or_null,
        option="--rerank-depth",
        section=RERANKING,
        label="Rerank depth",
        help="How many chunks the reranker reads a query; a reranked run returns no others. Empty: top k.",
        part=axes.WHOLE,
        touches=lambda run: run.use_reranker,
        said=lambda run: "" if run.rerank_depth is None else f"rerank depth {run.rerank_depth}",
        phrase=lambda value: f"reranks {value}",
        unstated="reranks all",
    )
    top_k: int = axis(
        100,
        "top_k_values",
        axes.CUTOFF,
        option="--top-k",
        section=SEARCH,
        label="Top k",
        help="How many chunks a run returns, at least the greatest k measured. “50, 100” makes two runs of each.",
        part=axes.WHOLE,
        said=lambda run: f"top {run.top_k}",
        phrase=lambda value: f"top {value}",
    )
    candidates: int | None = axis(
        None,
        "candidates",
        axes.DEPTH.or_null,
        option="--candidates",
        section=SEARCH,
        label="Candidates",
        help="How many chunks the first stage finds before fusion and reranking. Empty: as many as top k.",
        part=axes.WHOLE,
        said=lambda run: "" if run.candidates is None else f"{run.candidates} candidates",
        phrase=lambda value: f"{value} candidates",
        unstated="as many candidates as top k",
    )
    ann: str = axis(
        "exact",
        "ann",
        axes.ANN,
        option="--ann",
        section=METHODS,
        label="Dense search",
        help="“exact, hnsw(ef_search=100), faiss:hnsw(m=32)”: exactly in memory, or by an index of pgvector, or by a "
        f"store, which is then held against that. Of stores: {', '.join(OF_STORES)}.",
        split=split_calls,
        canonical=axes.ann_text,
        touches=lambda run: run.search_mode != "sparse",
        said=lambda run: "" if run.ann == "exact" else run.ann,
        named="dense search",
    )
    lexical: str = axis(
        "bm25",
        "lexical",
        axes.choice(*LEXICAL),
        option="--lexical",
        section=METHODS,
        label="Lexical search",
        help="The engine that searches by words.",
        choices={"bm25": "BM25", "fts": "PostgreSQL full text"},
        touches=lambda run: run.search_mode != "dense",
        said=lambda run: "" if run.lexical == "bm25" else run.lexical,
        phrase=lambda value: {"fts": "full text", "bm25": "BM25"}.get(value, str(value)),
    )
    fusion: str = axis(
        "rrf",
        "fusion",
        axes.choice(*FUSIONS),
        option="--fusion",
        section=METHODS,
        label="Fusion",
        help="How hybrid search makes one list of two.",
        choices={"rrf": "by rank: RRF", "weighted": "by score: weighted sum of normalised scores"},
        touches=lambda run: run.search_mode == "hybrid",
        said=lambda run: run._fusion_text,
        phrase=lambda value: "weighted fusion" if value == "weighted" else f"{value} fusion",
    )
    weights: tuple[float, float] | None = axis(
        None,
        "weights",
        axes.WEIGHTS.or_null,
        option="--weights",
        section=METHODS,
        label="Weights",
        help="Of dense and lexical in weighted fusion: “0.5:0.5, 0.7:0.3”. Empty: alike.",
        part=axes.PAIR,
        canonical=axes.scaled,
        touches=lambda run: run.search_mode == "hybrid" and run.fusion == "weighted",
        phrase=lambda value: f"weights {axes.weights_text(value)}",
    )
    rrf_k: int = axis(
        60,
        "rrf_k_values",
        axes.DEPTH,
        option="--rrf-k",
        section=METHODS,
        label="RRF k",
        help="Hybrid only: reciprocal rank fusion sums 1 / (k + rank). A small k trusts the first ranks more.",
        part=axes.WHOLE,
        touches=lambda run: run.search_mode == "hybrid" and run.fusion == "rrf",
        phrase=lambda value: f"RRF k {value}",
        named="RRF k",
    )
    score_threshold: float | None = axis(
        None,
        "score_thresholds",
        axes.SHARE.or_null,
        option="--thresholds",
        section=SEARCH,
        label="Score thresholds",
        help="“none, 0.5”: all results, and only those that score at least 0.5 on their mode's scale of 0 to 1.",
        part=axes.NUMBER,
        said=lambda run: "" if run.score_threshold is None else f"≥ {run.score_threshold}",
        phrase=lambda value: f"score ≥ {value:g}",
        unstated="no threshold",
        named="threshold",
    )
    dimensions: int | None = query_axes.DIMENSIONS
    query: str = query_axes.QUERY
    llm: str | None = query_axes.LLM

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
IN_LABEL = (  # in the order in which a search goes
    *("index", "query", "search_mode", "ann", "dimensions", "lexical", "fusion"),
    *("candidates", "use_reranker", "rerank_depth", "top_k", "score_threshold"),
)
