"""Retrieval strategies, one file each. A new one copies its best sibling, joins here, and passes the contract tests."""

from apps.retrieval.strategies.base import RetrievalStrategy, StrategyError
from apps.retrieval.strategies.flat import FlatStrategy

STRATEGIES: dict[str, RetrievalStrategy] = {"flat": FlatStrategy()}


def get_strategy(name: str) -> RetrievalStrategy:
    """Return the strategy called `name`. Raises StrategyError."""
    if name not in STRATEGIES:
        raise StrategyError(
            f"There is no retrieval strategy {name!r}; there are {', '.join(STRATEGIES)}.", field="strategy"
        )
    return STRATEGIES[name]
