"""Configurations in words: the common settings of a benchmark's runs, their differences, and labels from these."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from apps.records.models import Benchmark, Run
from apps.retrieval.models import Index
from apps.retrieval.naming import name_strategy
from benchbench.files import strategy_results
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.axes import AXES
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.labels import label_settings, name_mode

Config = dict[str, Any]


def find_varying(configs: Iterable[Config]) -> list[str]:
    """Return the keys whose values differ between configurations, in the order of `list_keys`."""
    values: dict[str, set[str]] = {}
    nonempty = [config for config in configs if config]  # external runs have no configuration: that is not a difference
    keys = list_keys(nonempty)
    for config in nonempty:
        for key in filter_keys(keys, config):
            values.setdefault(key, set()).add(json.dumps(config.get(key), sort_keys=True))
    return [key for key in keys if len(values.get(key, ())) > 1]


def list_keys(configs: Iterable[Config]) -> list[str]:
    """Return every key of the configurations, the axes of the matrix first."""
    keys = dict.fromkeys(key for config in configs for key in config)
    return [*(key for key in AXES if key in keys), *(key for key in keys if key not in AXES)]


def filter_keys(keys: Iterable[str], config: Config) -> list[str]:
    """Return the keys whose values affect the results of `config`."""
    configuration = Configuration.from_dict({name: config[name] for name in AXES if name in config})
    return [key for key in keys if key not in AXES or AXES[key].touches(configuration)]


def list_shared(configs: Sequence[Config]) -> list[str]:
    """Return the common settings of all configurations, in words, independent of their order.

    A setting that touches only some of them, such as the constant of rank fusion, is marked "where it applies". With an
    external run, whose configuration is unknown, nothing is common.
    """
    if not all(configs):
        return []
    differ, all_keys = find_varying(configs), list_keys(configs)
    applied = [filter_keys(all_keys, config) for config in configs]
    common = []
    for key in all_keys:
        touched = [config for config, keys in zip(configs, applied, strict=True) if key in keys]
        example = next((config for config in touched if key in config), None)
        words = [phrase(key, example[key])] if example is not None and key not in differ else []
        common += words if len(touched) == len(configs) else [f"{word} where it applies" for word in words]
    return common


def list_phrases(config: Config, keys: Iterable[str]) -> list[str]:
    """Return the settings `keys` of `config`, a few words each: "hybrid", "top 100", "no threshold".

    With the mode, an engine has its own name, as in the labels of runs: "shop + lexical".
    """
    settings = [key for key in filter_keys(keys, config) if key in config]
    if "search_mode" not in settings:
        return [phrase(key, config[key]) for key in settings]
    mode = name_mode(config["search_mode"], config.get("engine"))
    return [mode if key == "search_mode" else phrase(key, config[key]) for key in settings if key != "engine"]


def spell_settings(configs: Iterable[Config]) -> list[Config]:
    """Return configurations for labels, whose settings of dense search show the defaults of options that differ."""
    every = list(configs)
    labels = label_settings({config["ann"] for config in every if "ann" in config})
    return [{**config, "ann": labels[config["ann"]]} if "ann" in config else config for config in every]


def phrase(key: str, value: object) -> str:
    if key in AXES:
        return AXES[key].describe(value)
    return f"{key.replace('_', ' ')} {value}"


def build_labels(runs: Sequence[Run]) -> list[str]:
    """Return a distinct name for each run: "hybrid · reranked"; if that is not enough, with its benchmark."""
    configs = spell_settings(run.config for run in runs)
    differ = find_varying(configs)
    pairs = zip(runs, configs, strict=True)
    labels = [" · ".join(list_phrases(config, differ)) or run.label for run, config in pairs]
    for more in (lambda run: f' of "{run.benchmark}"', lambda run: f", run {run.run_order}", lambda run: f" {run.pk}"):
        counts = Counter(labels)
        labels = [label + (more(run) if counts[label] > 1 else "") for label, run in zip(labels, runs, strict=True)]
    return labels


COUNTS = ("num_documents", "num_chunks", "num_vectors", "embed_calls", "llm_calls")


def build_configuration(run: Run) -> strategy_results.Configuration:
    """Return strategy, store, encoder and language model of a run, as the strategy benchmark's files name them."""
    index, engine = run.index, run.configuration.engine
    if index is None:
        return strategy_results.Configuration("engine" if engine else "external", engine)
    strategy = f"{engine} + {index.strategy}" if engine else index.strategy
    if not run.configuration.uses_vectors:  # and so without a store
        return strategy_results.Configuration(strategy, llm_model=index.llm or None)
    store = Ann.parse(run.configuration.ann).store
    return strategy_results.Configuration(strategy, store, index.encoder or None, index.llm or None)


def differ_in_making(benchmark: Benchmark, indexes: Iterable[Index]) -> bool:
    """Return whether strategies or models are compared: by an experiment, or because the indexes differ in them."""
    made_of = {
        (index.strategy, str(index.chunk_parameters), index.encoder, index.precision, index.llm) for index in indexes
    }
    return bool(benchmark.experiment) or len(made_of) > 1


def list_builds(indexes: Iterable[Index]) -> list[dict[str, object]]:
    """Return contents and building costs of indexes; None for values of an index that was never built."""
    return [
        {
            "row": index,
            "strategy": name_strategy(index.strategy, index.chunk_parameters),
            "counts": [index.stats.get(name) for name in COUNTS],
            "rate": _compute_rate(index),
            "seconds": index.stats.get("duration_sec"),
            "bytes": index.stats.get("bytes"),
        }
        for index in indexes
    ]


def _compute_rate(index: Index) -> float | None:
    """Return the vectors that the encoder of an index made in a second of work; None without a measurement."""
    seconds = index.stats.get("vectors_sec")
    return index.stats["num_vectors"] / seconds if seconds else None
