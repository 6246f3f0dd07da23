"""Rerankers by name. They score pairs of a query and a text. Names not listed here are cross-encoders."""

from collections.abc import Callable
from functools import lru_cache

from apps.retrieval import process
from apps.retrieval.models import Index
from apps.retrieval.rerankers.base import PairScores, Reranker, RerankerError
from apps.retrieval.rerankers.cross_encoder import CrossEncoderReranker
from apps.retrieval.rerankers.late_interaction import LateInteractionReranker
from benchbench.ir.planning.configuration import LATE_INTERACTION

__all__ = ["PairScores", "Reranker", "RerankerError", "load_reranker"]


RESIDENT_RERANKERS = 2

# Rerankers bound to an index, using its encoder and chunks.
RERANKERS: dict[str, Callable[[Index], Reranker]] = {LATE_INTERACTION: LateInteractionReranker}


def load_reranker(name: str, index: Index) -> Reranker:
    """Return the reranker called `name` for the chunks of a ready index, resident in this process.

    Raises ModelError, EncoderError, RerankerError.
    """
    return _build_reranker(name, index) if name in RERANKERS else _cross_encoder(name)


@lru_cache(maxsize=2 * RESIDENT_RERANKERS)
def _build_reranker(name: str, index: Index) -> Reranker:
    return RERANKERS[name](index)


process.add(_build_reranker.cache_clear)
_cross_encoder = lru_cache(maxsize=RESIDENT_RERANKERS)(CrossEncoderReranker)
process.add(_cross_encoder.cache_clear)
