"""Fusing lists into one: those of the engines of hybrid search, and those of the variants of a query."""

import time
from collections.abc import Sequence

from apps.benchmarks.running.outcomes import Outcome
from benchbench.ir.planning.stages import FuseStage, MergeStage
from benchbench.ir.ranking import rrf, weighted
from benchbench.ir.records import ScoredList

VARIANTS_RRF_K = 60  # the constant of Cormack, Clarke and Büttcher


def fuse(stage: FuseStage | MergeStage, lists: Sequence[ScoredList]) -> Outcome:
    """Fuse the lists of one query, in the order of the stage's needs."""
    started = time.perf_counter()
    if isinstance(stage, MergeStage):
        fused = rrf(lists, k=VARIANTS_RRF_K, depth=stage.candidates)
    elif stage.weights is None:
        fused = rrf(lists, k=stage.constant, depth=stage.candidates)
    else:
        fused = weighted(lists, weights=stage.weights, depth=stage.candidates)
    return Outcome(fused.head(stage.candidates), (time.perf_counter() - started) * 1000)
