"""Plans: the distinct stages that runs need, and their costs."""

from collections.abc import Sequence

from apps.benchmarks.models import Run
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.plan import DenseStage, LexicalStage, Plan, RerankStage, Stage, plan


def plan_of(runs: Sequence[Run]) -> Plan:
    """Return the plan of the runs, each under its primary key as text."""
    return plan([(str(run.pk), Configuration.from_dict(run.config)) for run in runs])


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
