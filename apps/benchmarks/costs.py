"""Costs of stages per query: measured where this site has done them before, rough figures where not."""

from collections.abc import Mapping
from uuid import UUID

from django.db.models import Avg, F, FloatField, Func, QuerySet, Sum
from django.db.models.functions import Cast

from apps.benchmarks.models import Benchmark, ListSource, PairList, StageList
from apps.retrieval.models import CachedVector, Index, LLMAnswer
from benchbench.ir.planning import stages
from benchbench.ir.planning.configuration import LATE_INTERACTION
from benchbench.ir.planning.plan import Plan

# Milliseconds per query, on a small CPU; per million chunks for an exact search, per pair for a reranker.
ROUGH_MS = 1.0
ROUGH_MERGE_MS, ROUGH_ENCODE_MS, ROUGH_REWRITE_MS, ROUGH_ASK_MS = 0.1, 15.0, 1500.0, 3000.0
ROUGH_PAIR_MS, ROUGH_LATE_PAIR_MS = 20.0, 1.0
ROUGH_SCAN_MS_PER_MILLION = 30.0
LATEST = 2000  # rows that a measured cost is the mean of
BENCHMARKS = 3  # benchmarks that they come from


def costs_of(plan: Plan, indexes: Mapping[str | None, Index]) -> dict[str, float]:
    """Return the seconds per query that each stage costs, by stage key, as if its queries were never asked before."""
    latest = {name: _latest(index) for name, index in indexes.items()}

    def ms(stage: stages.Stage) -> float:
        if isinstance(stage, stages.RewriteStage):
            return _rewrite_ms(stage) or ROUGH_REWRITE_MS
        return _ms(stage, indexes[stage.index], latest[stage.index])

    return {stage.key: ms(stage) / 1000 for stage in plan.stages}


def _ms(stage: stages.OfIndex, index: Index, latest: list[UUID]) -> float:
    match stage:
        case stages.EncodeStage():
            return _encode_ms(index) or ROUGH_ENCODE_MS
        case stages.RerankStage():
            rough = ROUGH_LATE_PAIR_MS if stage.reranker == LATE_INTERACTION else ROUGH_PAIR_MS
            return stage.depth * (_pair_ms(stage) or rough)
        case stages.AskStage():
            return _stage_ms(stage, latest) or ROUGH_ASK_MS
        case stages.DenseStage(ann="exact"):
            chunks = index.chunk_set.chunk_count if index.chunk_set else 0
            return _stage_ms(stage, latest) or ROUGH_MS + ROUGH_SCAN_MS_PER_MILLION * chunks / 1e6
        case stages.MergeStage() | stages.FuseStage():
            return _stage_ms(stage, latest) or ROUGH_MERGE_MS
    return _stage_ms(stage, latest) or ROUGH_MS


def _rewrite_ms(stage: stages.RewriteStage) -> float | None:
    """The mean time of the latest answers of its language model that are kept, to whatever prompt."""
    server, _, model = stage.llm.partition(":")
    return _mean(LLMAnswer.objects.filter(provider=server, model=model).order_by("-pk"), "ms")


def _encode_ms(index: Index) -> float | None:
    timed = CachedVector.objects.filter(
        space__encoder=index.encoder, space__kind="query", encode_ms__isnull=False
    ).order_by("-used_at")
    # Results over this index outlive the cache of query vectors.
    sources = ListSource.objects.filter(runs__index=index)
    earlier = StageList.objects.filter(source__in=sources, encode_ms__isnull=False).order_by("-pk")
    return _mean(timed, "encode_ms") or _mean(earlier, "encode_ms")


def _stage_ms(stage: stages.Stage, latest: list[UUID]) -> float | None:
    """The mean cost of the same stage in the latest benchmarks over the same index."""
    lists = StageList.objects.filter(source__key=stage.key, source__benchmark__in=latest)
    return _mean(lists.order_by("-pk"), "duration_ms")


def _pair_ms(stage: stages.RerankStage) -> float | None:
    """The mean cost of one pair for this reranker, whatever it read."""
    latest = PairList.objects.filter(reranker=stage.reranker).order_by("-pk")[:LATEST]
    length = Func(F("positions"), function="cardinality", output_field=FloatField())
    sums = PairList.objects.filter(pk__in=latest.values("pk")).aggregate(ms=Sum("duration_ms"), pairs=Sum(length))
    return sums["ms"] / sums["pairs"] if sums["ms"] and sums["pairs"] else None


def _latest(index: Index) -> list[UUID]:
    """The newest benchmarks over an index; one of the past may have been timed on another machine."""
    over = Benchmark.objects.filter(runs__index=index)
    made = over.order_by("-created_at").values_list("pk", "created_at").distinct()
    return [pk for pk, _ in made[:BENCHMARKS]]


def _mean(rows: QuerySet, column: str) -> float | None:
    latest = rows.values("pk")[:LATEST]
    latest_rows = rows.model._default_manager.filter(pk__in=latest)
    mean: float | None = latest_rows.aggregate(mean=Avg(Cast(column, FloatField())))["mean"]
    return mean
