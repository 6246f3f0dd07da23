"""Axes of the results: their reranking, which of them a run returns, and how fast it is asked for them."""

from benchbench.ir.planning.axes.axis import EXECUTION, RERANKING, Axis, declare, in_another
from benchbench.ir.planning.axes.kinds import CUTOFF, DEPTH, NAME, RATE, SHARE, SWITCH
from benchbench.ir.planning.configuration import LATE_INTERACTION
from benchbench.ir.planning.labels import strip_model_path

AXES = declare(
    use_reranker=Axis(
        section=RERANKING,
        kind=SWITCH,
        option="--rerank",
        help="Scores the first results again with a reranker: slower, often better.",
        summary=lambda run: f"rerank {strip_model_path(run.effective_reranker)}" if run.use_reranker else "",
        phrase=lambda value: "reranked" if value else "not reranked",
        name="reranking",
    ),
    reranker=Axis(
        section=RERANKING,
        key="rerankers",
        kind=NAME.or_null,
        touches=lambda run: run.use_reranker,
        plain=lambda run: None if run.reranker == LATE_INTERACTION else run.reranker,
        help="Name of a sentence-transformers CrossEncoder. Empty: late-interaction, on token vectors of "
        "the index's encoder.",
        phrase=strip_model_path,
        summary=in_another,
    ),
    rerank_depth=Axis(
        section=RERANKING,
        key="rerank_depths",
        kind=DEPTH.or_null,
        touches=lambda run: run.use_reranker,
        plain=lambda run: None if run.rerank_depth == min(run.top_k, run.effective_candidates) else run.rerank_depth,
        help="Number of chunks per query that the reranker reads; a reranked run returns only these. Empty: top k.",
        summary=lambda run: "" if run.rerank_depth is None else f"rerank depth {run.rerank_depth}",
        phrase=lambda value: f"reranks {value}",
        unstated="reranks all",
    ),
    top_k=Axis(
        key="top_k_values",
        kind=CUTOFF,
        help="Number of chunks that a run returns, at least the largest k. “50, 100” compares both.",
        summary=lambda run: f"top {run.top_k}",
        phrase=lambda value: f"top {value}",
    ),
    score_threshold=Axis(
        key="score_thresholds",
        kind=SHARE.or_null,
        touches=lambda run: run.search_mode != "engine" or run.use_reranker,
        plain=lambda run: None if run.score_threshold is None else float(run.score_threshold),  # 1 must hash as 1.0
        option="--thresholds",
        label="Score thresholds",
        help="“none, 0.5” compares all results with those that score at least 0.5: as cosine similarity (dense), as a "
        "share of the query’s best score (lexical), as the fused score (hybrid), as a reranker’s probability.",
        summary=lambda run: "" if run.score_threshold is None else f"≥ {run.score_threshold}",
        phrase=lambda value: f"score ≥ {value:g}",
        unstated="no threshold",
        name="threshold",
    ),
    rate=Axis(
        section=EXECUTION,
        key="rates",
        kind=RATE.or_null,
        canonical=lambda rate: None if rate is None else float(rate),
        label="Requests per second",
        help="In isolated execution, “none” waits for each answer before it sends the next query; “20/s” sends one "
        "every 50 ms, answered or not.",
        summary=lambda run: "" if run.rate is None else f"{run.rate:g}/s",
        phrase=lambda value: f"{value:g} requests per second",
        unstated="one query at a time",
    ),
)
