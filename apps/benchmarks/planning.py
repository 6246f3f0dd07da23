"""Plans: the distinct stages that runs need, the sources of their lists, and which runs share one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from apps.benchmarks.models import Benchmark, ListSource, Run
from apps.retrieval.models import Index
from apps.retrieval.strategies import STRATEGIES
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.plan import Plan, RunPlan, plan
from benchbench.ir.planning.stages import DenseStage, LexicalStage, RerankStage, Searching, Stage


def plan_of(runs: Sequence[Run]) -> Plan:
    """Return the plan of the runs, each under its primary key as text. Their indexes should be loaded with them."""
    asking = asking_of({run.config.get("index"): run.index for run in runs if run.index})
    return plan([(str(run.pk), Configuration.from_dict(run.config)) for run in runs], asking=asking)


def asking_of(indexes: Mapping[str | None, Index]) -> set[str | None]:
    """Return those of the indexes, by the names that configurations have for them, whose strategies ask a language
    model while they search."""
    asking = {strategy.name for strategy in STRATEGIES.values() if strategy.asks}
    return {name for name, index in indexes.items() if index.strategy in asking}


def needs_preparing(plan: Plan) -> bool:
    """Tell whether a stage searches what is made on demand: an approximate index, or full text."""
    return any(is_prepared(stage) for stage in plan.stages)


def is_prepared(stage: Stage) -> bool:
    match stage:
        case DenseStage(ann=ann):
            return ann != "exact"
        case LexicalStage(engine=engine):
            return engine != "bm25"
    return False


def stage_units(stage: Stage) -> int:
    """Return the units of work that a stage is per query, for the progress: a reranked pair is one, as a search is."""
    return stage.depth if isinstance(stage, RerankStage) else 1


def query_units(plan: Plan) -> int:
    return sum(stage_units(stage) for stage in plan.stages)


@dataclass(frozen=True, slots=True)
class SharedList:
    """The runs that return the first documents of the same list, by their place, and the source of that list."""

    source: int
    run_ids: tuple[UUID, ...]
    plans: tuple[RunPlan, ...]


def add_sources(benchmark: Benchmark) -> None:
    """Give every stage of the benchmark a source, and every run that has none the one of its list.

    Runs that are searched together share the lists that they are cuts of. Isolated ones, each searched by itself, have
    lists of their own, as runs have that were imported.
    """
    runs = list(benchmark.runs.filter(is_external=False).select_related("index").order_by("run_order"))
    plan = plan_of(runs)
    isolated = benchmark.execution == Benchmark.Execution.ISOLATED
    by_key: dict[str, list[Run]] = {}
    for run, planned in zip(runs, plan.runs, strict=True):
        if run.source_id is None:
            by_key.setdefault(own_key(run) if isolated else planned.list_key, []).append(run)
    keys = {stage.key for stage in plan.stages if isinstance(stage, Searching)} | by_key.keys()
    ListSource.objects.bulk_create(
        [ListSource(benchmark=benchmark, key=key) for key in sorted(keys)], ignore_conflicts=True
    )
    ids = source_ids(benchmark)
    by_place: dict[int, list[Run]] = {}
    for key, sharing in by_key.items():
        _update(sharing, source_id=ids[key])
        for place, run in enumerate(sharing, start=1):
            by_place.setdefault(place, []).append(run)
    for place, some in by_place.items():
        _update(some, place=place)


def _update(runs: Iterable[Run], **to: int) -> None:
    """Store the same of several runs: quicker than the one statement that Django would make for each its own."""
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(**to)


def own_key(run: Run) -> str:
    """Return the key of lists that belong to one run."""
    return f"run {run.run_order}"


def source_ids(benchmark: Benchmark) -> dict[str, int]:
    """Return the source of each stage and list by its key."""
    return dict(benchmark.list_sources.values_list("key", "pk"))


def shared_lists(runs: Iterable[Run], plan: Plan) -> list[SharedList]:
    """Return the lists that runs of a plan return the first documents of. Every run that shares one is to be there."""
    planned = {run.run_key: run for run in plan.runs}
    by_source = sorted(runs, key=lambda run: (run.source_id or 0, run.place))
    return [
        SharedList(source or 0, tuple(run.pk for run in sharing), tuple(planned[str(run.pk)] for run in sharing))
        for source, sharing in ((source, list(some)) for source, some in groupby(by_source, lambda run: run.source_id))
    ]
