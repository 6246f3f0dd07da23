"""Axes of the matrix, declared: the fields of a configuration, each with the axis that sets it."""

from __future__ import annotations

from dataclasses import dataclass

from benchbench.ir.planning import axes
from benchbench.ir.planning.ann_methods import OF_STORES
from benchbench.ir.planning.axes import METHODS, RERANKING, REWRITING, SEARCH, axis
from benchbench.ir.planning.query_text import AS_ASKED, query_text
from benchbench.reading.kinds import split_calls

SEARCH_MODES = ("dense", "sparse", "hybrid")
LEXICAL = ("bm25", "fts")
FUSIONS = ("rrf", "weighted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The fields of a configuration. What each means, its axis says.

    `None` stands for: the only index, no threshold, late interaction, all dimensions, and for depths `top_k`. `ann` is
    the text of an `Ann`; `weights` are those of the dense and the lexical list.

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
        help="The name of a sentence-transformers CrossEncoder. Empty: late-interaction, by the tokens of "
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
    dimensions: int | None = axis(
        None,
        "dimensions",
        axes.DEPTH.or_null,
        option="--dimensions",
        section=METHODS,
        label="Dimensions",
        help="How many of the encoder's first dimensions exact dense search compares, for encoders trained for that "
        "(Matryoshka). “none, 128”: all, and 128. Empty: all.",
        part=axes.WHOLE,
        touches=lambda run: run.search_mode != "sparse",
        said=lambda run: "" if run.dimensions is None else f"{run.dimensions} dimensions",
        phrase=lambda value: f"{value} dimensions",
        unstated="all dimensions",
    )
    query: str = axis(
        AS_ASKED,
        "query",
        axes.QUERY_TEXT,
        option="--query",
        section=REWRITING,
        label="Query",
        help="What is searched for: “as_asked, rewrite, hyde, multi(3)”. A language model rewrites the query; or "
        "writes a passage that answers it, which vectors are compared with (words are searched as asked); or writes 3 "
        "variants, whose lists are fused by rank. A reranker reads the query as asked.",
        canonical=query_text,
        touches=lambda run: run.rewrites,
        said=lambda run: f"query {run.query} by {axes.last_part(run.llm)}" if run.rewrites else "",
        phrase=lambda value: "query as asked" if value == AS_ASKED else f"query {value}",
    )
    llm: str | None = axis(
        None,
        "llms",
        axes.LLM.or_null,
        option="--llm",
        section=REWRITING,
        label="Language models",
        help="That make the text of a query, each after the name of its server, one of those in the settings of this "
        "site: “ollama:llama3.2”.",
        touches=lambda run: run.rewrites,
        unstated="no language model",
        named="language model",
    )


IN_LABEL = (  # in the order in which a search goes
    *("index", "query", "search_mode", "ann", "dimensions", "lexical", "fusion"),
    *("candidates", "use_reranker", "rerank_depth", "top_k", "score_threshold"),
)
