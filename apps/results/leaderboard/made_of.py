"""Strategies, stores and models of runs, and what their indexes hold and took."""

from collections.abc import Iterable
from typing import Any

from apps.benchmarks.models import Benchmark, Run
from apps.retrieval.grids.naming import strategy_words
from apps.retrieval.models import Index
from benchbench.files.strategy_results import Configuration
from benchbench.ir.planning.ann import Ann

COUNTS = ("num_documents", "num_chunks", "num_vectors", "embed_calls", "llm_calls")


def searched_by(run: Run) -> Configuration:
    """Return strategy, store, encoder and language model of a run, as the strategy benchmark's files name them."""
    index = run.index
    if index is None:
        return Configuration("external")
    if run.config.get("search_mode") == "sparse":  # neither vectors nor what keeps them
        return Configuration(index.strategy, llm_model=index.llm or None)
    store = Ann.parse(run.config.get("ann", "exact")).store
    return Configuration(index.strategy, store, index.encoder or None, index.llm or None)


def differ_in_making(benchmark: Benchmark, indexes: Iterable[Index]) -> bool:
    """Tell whether strategies or models are compared: by an experiment, or where indexes differ in them."""
    made_of = {(index.strategy, str(index.chunk_parameters), index.encoder, index.llm) for index in indexes}
    return bool(benchmark.experiment) or len(made_of) > 1


def built(indexes: Iterable[Index]) -> list[dict[str, Any]]:
    """Return what indexes hold and what building them took; None of one that was never built."""
    return [
        {
            "row": index,
            "strategy": strategy_words(index.strategy, index.chunk_parameters),
            "counts": [index.stats.get(name) for name in COUNTS],
            "seconds": index.stats.get("duration_sec"),
            "bytes": index.stats.get("bytes"),
        }
        for index in indexes
    ]
