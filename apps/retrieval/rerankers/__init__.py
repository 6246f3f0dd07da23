"""Rerankers: they score pairs of a query and a text. `registry` has those that are made for an index.

How thresholds read their scores is decided by name, in `benchbench.ir.planning.plan`.
"""

from apps.retrieval.rerankers.base import PairScores, Reranker, RerankerError
from apps.retrieval.rerankers.registry import load_reranker

__all__ = ["PairScores", "Reranker", "RerankerError", "load_reranker"]
