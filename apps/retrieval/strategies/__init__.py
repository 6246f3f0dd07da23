"""Retrieval strategies, one file each, declared in `benchbench/ir/planning/strategies.py`.

A new one copies its best sibling, joins here, and passes the contract tests.
"""

from apps.retrieval.strategies.base import Parameters, RetrievalStrategy, StrategyError, TreeStrategy
from apps.retrieval.strategies.flat import FlatStrategy
from apps.retrieval.strategies.lod import LODEmbedStrategy, LODLLMStrategy
from apps.retrieval.strategies.raptor import RaptorStrategy
from benchbench.ir.planning.strategies import STRATEGIES as DECLARED

KINDS: dict[str, type[RetrievalStrategy]] = {
    "flat": FlatStrategy,
    "lod_embed": LODEmbedStrategy,
    "lod_llm": LODLLMStrategy,
    "raptor": RaptorStrategy,
    "raptor_extractive": RaptorStrategy,
}
STRATEGIES = {name: KINDS[name](name) for name in DECLARED}
TREES = {name: strategy for name, strategy in STRATEGIES.items() if isinstance(strategy, TreeStrategy)}


def get_strategy(name: str) -> RetrievalStrategy:
    """Return the strategy called `name`. Raises StrategyError."""
    if name not in STRATEGIES:
        raise StrategyError(
            f"The retrieval strategy {name!r} does not exist; choose one of {', '.join(STRATEGIES)}.", field="strategy"
        )
    return STRATEGIES[name]


def select_chunk_parameters(strategy: RetrievalStrategy, parameters: Parameters) -> dict[str, object]:
    """Return the complete parameters that determine a strategy's chunks. Raises StrategyError, ChunkingError."""
    return {name: value for name, value in strategy.check(parameters).items() if name not in strategy.of_search}


def select_search_parameters(strategy: RetrievalStrategy, parameters: Parameters) -> dict[str, object]:
    """Return the complete parameters that affect only a strategy's search. Raises StrategyError, ChunkingError."""
    return {name: value for name, value in strategy.check(parameters).items() if name in strategy.of_search}
