"""Names of indexes: short and derived only from their ingredients, so the same on every site."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from apps.retrieval.models import Ingredients
from apps.retrieval.strategies import STRATEGIES
from apps.retrieval.strategies.base import StrategyError
from benchbench.ir.chunking import ChunkingError
from benchbench.ir.planning.labels import shorten_model

SIZES = ("size", "overlap")
BY_WORDS = "BM25"


def name_index(ingredients: Ingredients) -> str:
    """Return a short name: "flat 500/50 · all-MiniLM-L6-v2", "lod_llm doc_top_k=3 · e5 · llama3"."""
    return " · ".join([name_strategy(ingredients.strategy, ingredients.chunk_parameters), *name_models(ingredients)])


def name_models(ingredients: Ingredients) -> list[str]:
    """Return the short names of the models of an index, the encoder's with what its parameters change."""
    changes = ingredients.encoder_parameters.yield_differences()
    encoder = " ".join([shorten_model(ingredients.encoder or BY_WORDS), *changes])
    return [encoder, *([shorten_model(ingredients.llm)] if ingredients.llm else [])]


def list_longer_names(ingredients: Ingredients) -> Iterator[str]:
    """Yield names for an index whose short name is taken: with full names of models, then with their parameters."""
    full_ingredients = replace(ingredients, encoder=_flatten(ingredients.encoder), llm=_flatten(ingredients.llm))
    yield name_index(full_ingredients)
    parameters = " ".join(f"{name}={value}" for name, value in sorted(ingredients.llm_parameters.items()))
    if parameters:
        yield f"{name_index(full_ingredients)} {parameters}"


def name_strategy(strategy: str, parameters: Mapping[str, object]) -> str:
    """Return a strategy with its chunk sizes and non-default parameters: "lod_embed 500/50 doc_top_k=3"."""
    return " ".join(filter(None, [strategy, name_size(parameters), name_parameters(strategy, parameters)]))


def name_size(parameters: Mapping[str, object]) -> str:
    """Return size and overlap of chunks, "500/50"; "" for whole documents."""
    return f"{parameters['size']}/{parameters.get('overlap', 0)}" if parameters.get("size") else ""


def name_parameters(strategy: str, parameters: Mapping[str, object]) -> str:
    """Return the non-default parameters of a strategy, without the chunk sizes."""
    defaults = _find_defaults(strategy, {name: parameters[name] for name in SIZES if parameters.get(name) is not None})
    non_defaults = {
        name: value for name, value in parameters.items() if name not in SIZES and value != defaults.get(name, False)
    }
    return " ".join(name if value is True else f"{name}={value}" for name, value in non_defaults.items())


def _find_defaults(strategy: str, sizes: Mapping[str, object]) -> dict[str, object]:
    try:
        return STRATEGIES[strategy].check(sizes) if strategy in STRATEGIES else {}
    except (StrategyError, ChunkingError):
        return {}


def _flatten(model: str) -> str:
    return model.strip("/").replace("/", "_")
