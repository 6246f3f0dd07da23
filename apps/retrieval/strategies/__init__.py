"""Retrieval strategies, one file each. A new one copies its best sibling, joins here, and passes the contract tests."""

from typing import Any

from apps.retrieval.strategies.base import Parameters, RetrievalStrategy, StrategyError
from apps.retrieval.strategies.flat import FlatStrategy
from apps.retrieval.strategies.lod_embed import LODEmbedStrategy
from apps.retrieval.strategies.lod_llm import LODLLMStrategy

STRATEGIES: dict[str, RetrievalStrategy] = {
    strategy.name: strategy for strategy in (FlatStrategy(), LODEmbedStrategy(), LODLLMStrategy())
}


def get_strategy(name: str) -> RetrievalStrategy:
    """Return the strategy called `name`. Raises StrategyError."""
    if name not in STRATEGIES:
        raise StrategyError(
            f"There is no retrieval strategy {name!r}; there are {', '.join(STRATEGIES)}.", field="strategy"
        )
    return STRATEGIES[name]


def chunk_parameters(strategy: RetrievalStrategy, parameters: Parameters) -> dict[str, Any]:
    """Return those of a strategy's parameters that shape its chunks, complete. Raises StrategyError, ChunkingError."""
    return {name: value for name, value in strategy.check(parameters).items() if name not in strategy.of_search}


def search_parameters(strategy: RetrievalStrategy, parameters: Parameters) -> dict[str, Any]:
    """Return those of a strategy's parameters that shape its search alone, complete."""
    return {name: value for name, value in strategy.check(parameters).items() if name in strategy.of_search}
