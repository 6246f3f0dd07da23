"""Configurations in words: what tells the runs of a benchmark apart, and what they share."""

import json
from collections.abc import Callable, Iterable
from typing import Any

Config = dict[str, Any]

WORDS: dict[str, Callable[[Any], str]] = {
    "index": lambda value: f"index {value}",
    "search_mode": lambda value: {"sparse": "lexical"}.get(value, str(value)),
    "use_reranker": lambda value: "reranked" if value else "not reranked",
    "reranker": lambda value: str(value).rsplit("/", 1)[-1],
    "top_k": lambda value: f"top {value}",
    "rrf_k": lambda value: f"RRF k {value}",
    "score_threshold": lambda value: "no threshold" if value is None else f"score ≥ {value:g}",
    "candidates": lambda value: f"{value} candidates",
    "rerank_depth": lambda value: f"reranks {value}",
    "ann": str,
    "lexical": lambda value: {"fts": "full text", "bm25": "BM25"}.get(value, str(value)),
    "fusion": lambda value: "weighted fusion" if value == "weighted" else f"{value} fusion",
    "weights": lambda value: "weights " + " + ".join(f"{weight:.3g}" for weight in value or ()),
}
# These say nothing about a run unless it does what they are about.
ONLY_WITH: dict[str, Callable[[Config], bool]] = {
    "index": lambda config: config.get("index") is not None,
    "ann": lambda config: config.get("search_mode") != "sparse",
    "lexical": lambda config: config.get("search_mode") != "dense",
    "fusion": lambda config: config.get("search_mode") == "hybrid",
    "weights": lambda config: config.get("fusion") == "weighted",
    "rrf_k": lambda config: config.get("search_mode") == "hybrid" and config.get("fusion", "rrf") == "rrf",
    "reranker": lambda config: bool(config.get("use_reranker")),
    "rerank_depth": lambda config: bool(config.get("use_reranker")),
}


def varying(configs: Iterable[Config]) -> list[str]:
    """Return the keys whose values differ between configurations, in the order of `keys_of`."""
    values: dict[str, set[str]] = {}
    known = [config for config in configs if config]  # of an external run none is known: that is no difference
    keys = keys_of(known)
    for config in known:
        for key in keys:
            if applies(key, config):
                values.setdefault(key, set()).add(json.dumps(config.get(key), sort_keys=True))
    return [key for key in keys if len(values.get(key, ())) > 1]


def keys_of(configs: Iterable[Config]) -> list[str]:
    """Return every key that one of the configurations states, those with words of their own first."""
    stated = dict.fromkeys(key for config in configs for key in config)
    return [*(key for key in WORDS if key in stated), *(key for key in stated if key not in WORDS)]


def applies(key: str, config: Config) -> bool:
    """Tell whether the value of `key` says anything about what `config` finds."""
    return ONLY_WITH.get(key, lambda _: True)(config)


def phrases(config: Config, keys: Iterable[str]) -> list[str]:
    """Return what `config` says about `keys`, a few words each: "hybrid", "top 100", "no threshold"."""
    return [phrase(key, config.get(key)) for key in keys if key in config and applies(key, config)]


def phrase(key: str, value: Any) -> str:
    if key in WORDS:
        return WORDS[key](value)
    return f"{key.replace('_', ' ')} {value}"
