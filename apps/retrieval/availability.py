"""Availability of the parts of indexes and runs on this site.

CHECKS has one function per kind of part. Declaring, building, searching, starting, retrying and offering choices check
here first. Unavailable parts are refused with a message that names the remedy.
"""

from collections.abc import Callable, Mapping
from importlib.util import find_spec

from apps.retrieval.encoders.admitting import PREFIX
from apps.retrieval.encoders.model_files import describe_missing_model
from apps.retrieval.encoders.registry import ENCODERS
from apps.retrieval.llms.servers import describe_missing_llm, find_llm_failure, name_llm
from apps.retrieval.models import Index, Ingredients
from apps.retrieval.search.words import describe_missing_words
from apps.retrieval.stores import STORES
from apps.retrieval.strategies import STRATEGIES
from benchbench.errors import ConflictError
from benchbench.ir.planning.ann import STORES as ANN_STORES
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.axes import run_label
from benchbench.ir.planning.configuration import LATE_INTERACTION, Configuration

PROVIDERS = ("sbert", "sentence-transformers")  # models of these are loaded without a prefix


class UnavailableError(ConflictError):
    """A part of an index or run is not available here. A substitute would give other values."""

    code = "not_here"


def name_encoder(model: str, provider: str) -> str:
    """Return the name of a provider's model in indexes. Models of other providers are prefixed, so never confused."""
    return model if provider in PROVIDERS else f"{provider}:{model}"


def describe_missing(requirements: Mapping[str, str]) -> str:
    """Return a clause naming the unavailable ones of `requirements` (names by kind); "" if all are available.

    Models are checked by their files, language models by their server. The encoder and language model of a declared
    or ready index need not be here: its vectors are stored or may be imported.
    """
    return "; ".join(filter(None, (CHECKS[kind](name) for kind, name in requirements.items())))


def list_index_requirements(index: Index | Ingredients, *, to_build: bool = False) -> dict[str, str]:
    """Return the requirements of an index by kind. With `to_build`, its models must be usable now."""
    requirements = {"strategy": index.strategy, "loaded encoder" if to_build else "encoder": index.encoder}
    if index.strategy in STRATEGIES and STRATEGIES[index.strategy].requires_llm:
        requirements["asked llm" if to_build else "llm"] = name_llm(index.llm, index.llm_parameters)
    return requirements


def list_run_requirements(index: Index, configuration: Configuration) -> dict[str, str]:
    """Return the parts that a configuration needs for searching an index, without those of the index itself."""
    requirements = {}
    strategy = STRATEGIES.get(index.strategy)
    if configuration.uses_vectors:
        requirements["store"] = Ann.parse(configuration.ann).store
        if strategy is not None and strategy.asks:
            requirements["asked llm"] = name_llm(index.llm, index.llm_parameters)
    if configuration.uses_words:
        requirements["lexical"] = configuration.lexical
    if configuration.use_reranker:
        requirements["reranker"] = configuration.effective_reranker
    if configuration.rewrites:
        requirements["rewriting llm"] = configuration.llm or ""
    return requirements


def require_available(index: Index, configuration: Configuration | None = None, *, to_build: bool = False) -> None:
    """Check that an index can be used here and, if given, searched by `configuration`. Raises UnavailableError."""
    if missing := describe_missing(list_index_requirements(index, to_build=to_build)):
        raise UnavailableError(f'The index "{index}" is not available here: {missing}.')
    if configuration and (missing := describe_missing(list_run_requirements(index, configuration))):
        raise UnavailableError(f'"{run_label(configuration)}" is not available here: {missing}.')


def _check_strategy(name: str) -> str:
    return "" if name in STRATEGIES else _describe_unknown("strategy", name, STRATEGIES)


def _store(name: str) -> str:
    if name not in ANN_STORES:
        return _describe_unknown("store", name, ANN_STORES)
    needed = STORES[name].packages if name in STORES else {}
    missing = [package for package, module in needed.items() if find_spec(module) is None]
    if not missing:
        return ""
    word = "package" if len(missing) == 1 else "packages"
    extra = name.replace("_", "-")
    return f"the store {name} needs the {word} {' and '.join(missing)}: pip install 'benchbench[{extra}]'"


def _check_encoder(name: str) -> str:
    prefix = PREFIX.match(name)
    return _check_provider(prefix[0]) if prefix and prefix[0] not in ENCODERS else ""


def _check_loaded_encoder(name: str) -> str:
    if not name or PREFIX.match(name):
        return _check_encoder(name)
    return describe_missing_model(name)


def _check_reranker(name: str) -> str:
    prefix = PREFIX.match(name)
    if prefix:
        return _check_provider(prefix[0])
    return "" if name == LATE_INTERACTION else describe_missing_model(name)


def _check_provider(prefix: str) -> str:
    return _describe_unknown("provider", prefix.removesuffix(":"), PROVIDERS)


def _describe_unknown(kind: str, name: str, choices: Mapping[str, object] | tuple[str, ...]) -> str:
    return f"the {kind} {name} is unknown; choose one of {', '.join(choices)}"


CHECKS: dict[str, Callable[[str], str]] = {
    "strategy": _check_strategy,
    "store": _store,
    "lexical": describe_missing_words,
    "encoder": _check_encoder,
    "loaded encoder": _check_loaded_encoder,
    "reranker": _check_reranker,
    "llm": describe_missing_llm,
    "asked llm": find_llm_failure,
    "rewriting llm": find_llm_failure,
}
