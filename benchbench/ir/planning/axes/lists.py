"""Axes of the lists that a search makes: their fusion, the documents among which they are made, and their depth."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchbench.ir.planning.axes.axis import METHODS, Axis, declare, in_another
from benchbench.ir.planning.axes.kinds import ADMITTED, DEPTH, WEIGHTS, choice
from benchbench.ir.planning.configuration import EQUAL_WEIGHTS, FUSIONS, INDEX_MODES, Configuration
from benchbench.ir.planning.labels import render_share


def scale_weights(weights: Sequence[float] | None) -> tuple[float, float] | None:
    """Return the weights scaled to sum to 1, because only their ratio matters."""
    if weights is None:
        return None
    dense, lexical = weights
    total = dense + lexical
    if math.isinf(total):  # more than a float holds
        return scale_weights((dense / 4, lexical / 4))
    return (float(dense), float(lexical)) if math.isclose(total, 1) else (dense / total, lexical / total)


def render_weights(weights: Sequence[float] | None) -> str:
    return " + ".join(f"{weight:.3g}" for weight in weights or ())


def _render_fusion(run: Configuration) -> str:
    if run.fusion == "rrf":
        return f"rrf {run.rrf_k}" if run.is_fused else ""
    return f"{run.fusion} {render_weights(run.weights)}".rstrip()


def _render_filter(share: float) -> str:
    return "all documents" if share == 1 else f"filter admits about {render_share(share)}"


def _find_candidates(run: Configuration) -> int | None:
    """Return `candidates`, or None if `top_k` gives the same result.

    Exact lists that are not fused are only read from the top, so entries beyond those kept or reranked make no
    difference. An approximate search finds other chunks at another depth.
    """
    candidates = run.effective_candidates
    if run.search_mode == "sparse" or (run.search_mode == "dense" and run.ann == "exact"):
        reranked = (run.rerank_depth or 0) if run.use_reranker else 0
        candidates = min(candidates, max(run.top_k, reranked))
    return None if candidates == run.top_k else candidates


AXES = declare(
    fusion=Axis(
        section=METHODS,
        kind=choice(*FUSIONS),
        touches=lambda run: run.search_mode == "hybrid",
        help="How hybrid search merges its two lists.",
        choices={"rrf": "by rank: RRF", "weighted": "by score: weighted sum of normalised scores"},
        summary=_render_fusion,
        phrase=lambda value: "weighted fusion" if value == "weighted" else f"{value} fusion",
    ),
    weights=Axis(
        section=METHODS,
        kind=WEIGHTS.or_null,
        canonical=scale_weights,
        touches=lambda run: run.search_mode == "hybrid" and run.fusion == "weighted",
        plain=lambda run: run.weights or EQUAL_WEIGHTS,
        help="Weights of dense and lexical in weighted fusion: “0.5:0.5, 0.7:0.3”. Empty: equal weights.",
        phrase=lambda value: f"weights {render_weights(value)}",
        summary=in_another,
    ),
    rrf_k=Axis(
        section=METHODS,
        key="rrf_k_values",
        kind=DEPTH,
        touches=lambda run: run.is_fused and (run.fusion == "rrf" or run.asks_engine),
        help="Hybrid only: reciprocal rank fusion sums 1 / (k + rank). A small k trusts the first ranks more.",
        phrase=lambda value: f"RRF k {value}",
        name="RRF k",
        summary=in_another,
    ),
    filter_share=Axis(
        key="filter_shares",
        kind=ADMITTED.or_null,
        canonical=lambda share: share and float(share),  # 1 must hash as 1.0
        touches=lambda run: run.search_mode in INDEX_MODES,
        help="“none, 0.1, 0.01” adds to every query a filter that admits this share of the documents, always the "
        "same ones, to see how filters affect recall and time. Not for modes that ask an engine. Empty: none.",
        phrase=_render_filter,
        unstated="only the queries' own filters",
    ),
    candidates=Axis(
        kind=DEPTH.or_null,
        plain=_find_candidates,
        help="Number of chunks that the first stage retrieves before fusion and reranking. Empty: top k.",
        phrase=lambda value: f"{value} candidates",
        unstated="as many candidates as top k",
    ),
)
