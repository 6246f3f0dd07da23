"""Plans: the distinct stages that runs need, and their costs."""

from collections.abc import Mapping, Sequence

from apps.benchmarks.models import Run
from apps.retrieval.models import Index
from apps.retrieval.strategies import STRATEGIES
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.plan import Plan, plan
from benchbench.ir.planning.stages import DenseStage, LexicalStage, RerankStage, Stage


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
