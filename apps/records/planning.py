"""Plans: the distinct stages that runs need, their costs, the sources of their lists, and the runs sharing a list."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from uuid import UUID

from django.db.models import Avg, F, FloatField, Func, QuerySet, Sum
from django.db.models.functions import Cast

from apps.engines.declarations import load_engine
from apps.engines.models import EngineAnswer
from apps.engines.pacing import LEAST_SECONDS, PATIENCE_SECONDS, compute_loop_limit, count_requests
from apps.engines.records import Engine
from apps.records.models import Benchmark, ListSource, PairList, Run, StageList
from apps.retrieval.models import CachedVector, Index, LLMAnswer
from apps.retrieval.strategies import STRATEGIES
from benchbench.database.ordered import update_in_order
from benchbench.ir.planning import stages
from benchbench.ir.planning.configuration import LATE_INTERACTION, Configuration
from benchbench.ir.planning.engine import EngineSetting
from benchbench.ir.planning.lexical import Lexical
from benchbench.ir.planning.plan import Plan, RunPlan, plan
from benchbench.ir.planning.stages import DenseStage, LexicalStage, RerankStage, Searching, Stage

MAX_BATCH = 500  # queries; a batch holds its results in memory until it commits


def plan_of(runs: Sequence[Run]) -> Plan:
    """Return the plan of the runs, each under its primary key as text. Load the runs with their indexes."""
    asking = list_llm_indexes({run.configuration.index: run.index for run in runs if run.index})
    return plan([(str(run.pk), run.configuration) for run in runs], asking=asking)


def list_llm_indexes(indexes: Mapping[str | None, Index]) -> set[str | None]:
    """Return the names, as in configurations, of the indexes whose strategies ask a language model in a search."""
    asking = {strategy.name for strategy in STRATEGIES.values() if strategy.asks}
    return {name for name, index in indexes.items() if index.strategy in asking}


def needs_preparing(plan: Plan) -> bool:
    """Check whether a stage searches an index that is made on demand: an approximate one, or one of words."""
    return any(is_prepared(stage) for stage in plan.stages)


def is_prepared(stage: Stage) -> bool:
    match stage:
        case DenseStage(ann=ann):
            return ann != "exact"
        case LexicalStage(lexical=lexical):
            return Lexical.parse(lexical).is_built_by_run
    return False


def count_units(stage: Stage) -> int:
    """Return the units of work of a stage per query, for the progress. A reranked pair or a search is one unit."""
    return stage.depth if isinstance(stage, RerankStage) else 1


def count_query_units(plan: Plan) -> int:
    return sum(count_units(stage) for stage in plan.stages)


@dataclass(frozen=True, slots=True)
class SharedList:
    """The runs, by place, that return the first documents of the same list, and the source of that list."""

    source: int
    plans: tuple[RunPlan, ...]


def add_sources(benchmark: Benchmark) -> None:
    """Create a source for every stage of the benchmark, and set the missing sources of runs.

    In shared execution, runs that cut the same list share its source. Isolated runs and external runs have lists of
    their own.
    """
    runs = list(benchmark.runs.filter(is_external=False).select_related("index").order_by("run_order"))
    plan = plan_of(runs)
    isolated = benchmark.execution == Benchmark.Execution.ISOLATED
    by_key: dict[str, list[Run]] = {}
    for run, planned in zip(runs, plan.runs, strict=True):
        if run.source_id is None:
            by_key.setdefault(build_own_key(run) if isolated else planned.list_key, []).append(run)
    keys = {stage.key for stage in plan.stages if isinstance(stage, Searching)} | by_key.keys()
    ListSource.objects.bulk_create(
        [ListSource(benchmark=benchmark, key=key) for key in sorted(keys)], ignore_conflicts=True
    )
    ids = load_source_ids(benchmark)
    by_position: dict[int, list[Run]] = {}
    for key, sharing in by_key.items():
        _update(sharing, source_id=ids[key])
        for position, run in enumerate(sharing, start=1):
            by_position.setdefault(position, []).append(run)
    for position, group in by_position.items():
        _update(group, place=position)


def _update(runs: Iterable[Run], **to: int) -> None:
    """Store the same values in several runs with one UPDATE, which is faster than `bulk_update`."""
    update_in_order(Run.objects.filter(pk__in=[run.pk for run in runs]), **to)


def build_own_key(run: Run) -> str:
    """Return the key of lists that belong to one run."""
    return f"run {run.run_order}"


def load_source_ids(benchmark: Benchmark) -> dict[str, int]:
    """Return the id of each source by the key of its stage or list."""
    return dict(benchmark.list_sources.values_list("key", "pk"))


def build_shared_lists(runs: Iterable[Run], plan: Plan) -> list[SharedList]:
    """Return the lists whose first documents the runs of a plan return. `runs` must include all runs sharing one."""
    planned = {run.run_key: run for run in plan.runs}
    by_source = sorted(runs, key=lambda run: (run.source_id or 0, run.place))
    return [
        SharedList(source or 0, tuple(planned[str(run.pk)] for run in sharing))
        for source, sharing in ((source, list(some)) for source, some in groupby(by_source, lambda run: run.source_id))
    ]


# Milliseconds per query on a small CPU; for an exact search per million chunks, for a reranker per pair.
ROUGH_MS = 1.0
ROUGH_MERGE_MS, ROUGH_ENCODE_MS, ROUGH_REWRITE_MS, ROUGH_ASK_MS = 0.1, 15.0, 1500.0, 3000.0
ROUGH_PAIR_MS, ROUGH_LATE_PAIR_MS = 20.0, 1.0
ROUGH_REQUEST_MS = 50.0
ROUGH_SCAN_MS_PER_MILLION = 30.0
ROUGH_BY_STAGE: dict[type, float] = {
    stages.AskStage: ROUGH_ASK_MS,
    **dict.fromkeys((stages.MergeStage, stages.LocateStage, stages.FuseStage), ROUGH_MERGE_MS),
}
LATEST = 2000  # most rows in the mean of a measured cost
BENCHMARKS = 3  # most benchmarks that these rows come from


def estimate_costs(plan: Plan, indexes: Mapping[str | None, Index]) -> dict[str, float]:
    """Estimate the seconds per query of each stage, by stage key, with empty caches.

    The number of statements grows with the models, not with the stages.
    """
    measured = _load_stage_ms([stage.key for stage in plan.stages], set(indexes.values()))
    load_pair_ms, load_cached_ms = cache(_load_pair_ms), cache(_load_cached_ms)

    def estimate_ms(stage: stages.Stage) -> float:
        match stage:
            case stages.EngineStage():
                return _estimate_engine_ms(load_engine(EngineSetting.parse(stage.engine).alias))
            case stages.RewriteStage():
                return _load_rewrite_ms(stage) or ROUGH_REWRITE_MS
            case stages.EncodeStage():
                index = indexes[stage.index]
                return load_cached_ms(index.encoder) or _load_encode_ms(index) or ROUGH_ENCODE_MS
            case stages.RerankStage():
                rough = ROUGH_LATE_PAIR_MS if stage.reranker == LATE_INTERACTION else ROUGH_PAIR_MS
                return stage.depth * (load_pair_ms(stage.reranker) or rough)
            case stages.DenseStage(ann="exact") if stage.key not in measured:
                chunk_set = indexes[stage.index].chunk_set
                return ROUGH_MS + ROUGH_SCAN_MS_PER_MILLION * (chunk_set.chunk_count if chunk_set else 0) / 1e6
        return measured.get(stage.key) or ROUGH_BY_STAGE.get(type(stage), ROUGH_MS)

    return {stage.key: estimate_ms(stage) / 1000 for stage in plan.stages}


def estimate_work(
    plan: Plan,
    configurations: Mapping[str, Configuration],
    costs: Mapping[str, float],
    queries: int,
    execution: str,
    repetitions: int = 1,
) -> tuple[dict[str, int], float]:
    """Return how often each kind of work is done, and the seconds of one worker. `configurations` are by run key.

    `costs` are those of `estimate_costs`. In isolated execution, an engine gets one request at a time, and an open loop
    lasts until its last request is due; if searches cannot keep up, until all are answered or its limit.
    """
    if execution != Benchmark.Execution.ISOLATED:
        return plan.count_work(queries), queries * sum(costs[stage.key] for stage in plan.stages)
    sizes = [min(MAX_BATCH, queries - start) for start in range(0, queries, MAX_BATCH)] * repetitions
    requests, seconds = dict[str, int](), 0.0
    for run in plan.runs:
        rate = configurations[run.run_key].rate
        cost = sum(costs[stage.key] if rate else _estimate_alone(stage, costs) for stage in run.stages)
        counts = [count_requests(size, rate, LEAST_SECONDS) if rate else size for size in sizes]
        requests[run.run_key] = sum(counts)
        for count in counts:
            limit = compute_loop_limit(count, rate, PATIENCE_SECONDS) if rate else count * cost
            seconds += min(max(count / rate if rate else 0.0, count * cost), limit)
    truths = sum(costs[stage.key] for stage in plan.list_truth_stages())
    return plan.count_alone(requests, queries, repetitions), seconds + queries * truths


def _estimate_alone(stage: stages.Stage, costs: Mapping[str, float]) -> float:
    """Return the seconds per query of a stage if one query is searched at a time."""
    if not isinstance(stage, stages.EngineStage):
        return costs[stage.key]
    engine = load_engine(EngineSetting.parse(stage.engine).alias)
    return _estimate_engine_ms(replace(engine, concurrency=1)) / 1000


def _estimate_engine_ms(engine: Engine) -> float:
    """Return the milliseconds per query of an engine that is asked as often and as much at once as it allows."""
    answers = EngineAnswer.objects.filter(engine=engine.alias).order_by("-pk")
    ms = (_compute_mean(answers, "service_ms") or ROUGH_REQUEST_MS) / engine.concurrency
    return max(ms, 1000 / engine.rate) if engine.rate else ms


def _load_rewrite_ms(stage: stages.RewriteStage) -> float | None:
    """Return the mean time of the latest stored answers of the stage's language model, for any prompt."""
    server, _, model = stage.llm.partition(":")
    return _compute_mean(LLMAnswer.objects.filter(provider=server, model=model).order_by("-pk"), "ms")


def _load_cached_ms(encoder: str) -> float | None:
    """Return the mean time of the latest query vectors that an encoder made."""
    timed = CachedVector.objects.filter(space__encoder=encoder, space__kind="query", encode_ms__isnull=False)
    return _compute_mean(timed.order_by("-used_at"), "encode_ms")


def _load_encode_ms(index: Index) -> float | None:
    """Return the mean time of encoding in results over this index, which outlive the cache of query vectors."""
    sources = ListSource.objects.filter(runs__index=index)
    earlier = StageList.objects.filter(source__in=sources, encode_ms__isnull=False).order_by("-pk")
    return _compute_mean(earlier, "encode_ms")


def _load_stage_ms(keys: Iterable[str], indexes: Iterable[Index]) -> dict[str, float]:
    """Return by stage key the mean cost in the newest benchmarks over each index.

    Older benchmarks may have been timed on another machine.
    """
    runs = Run.objects.filter(index__in=indexes).order_by("-benchmark__created_at")
    newest: dict[UUID, list[UUID]] = {}
    for index, benchmark, _ in runs.values_list("index", "benchmark", "benchmark__created_at").distinct():
        newest.setdefault(index, []).append(benchmark)
    latest = {pk for benchmarks in newest.values() for pk in benchmarks[:BENCHMARKS]}
    lists = StageList.objects.filter(source__key__in=list(keys), source__benchmark__in=latest).order_by()
    means = lists.values("source__key").annotate(mean=Avg("duration_ms"))
    return {key: mean for key, mean in means.values_list("source__key", "mean") if mean}


def _load_pair_ms(reranker: str) -> float | None:
    """Return the mean cost of one pair for a reranker, over any text."""
    latest = PairList.objects.filter(reranker=reranker).order_by("-pk")[:LATEST]
    length = Func(F("positions"), function="cardinality", output_field=FloatField())
    sums = PairList.objects.filter(pk__in=latest.values("pk")).aggregate(ms=Sum("duration_ms"), pairs=Sum(length))
    return sums["ms"] / sums["pairs"] if sums["ms"] and sums["pairs"] else None


def _compute_mean(rows: QuerySet, column: str) -> float | None:
    latest = rows.values("pk")[:LATEST]
    latest_rows = rows.model._default_manager.filter(pk__in=latest)
    mean: float | None = latest_rows.aggregate(mean=Avg(Cast(column, FloatField())))["mean"]
    return mean
