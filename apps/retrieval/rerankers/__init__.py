"""Rerankers: they score pairs of a query and a text."""

from apps.retrieval.rerankers.base import PairScores, Reranker, RerankerError
from apps.retrieval.rerankers.registry import load_reranker

__all__ = ["PairScores", "Reranker", "RerankerError", "load_reranker"]
