"""Strategies as people write them: "flat", "flat(size=500, overlap=50)", "lod_embed(doc_top_k=3)"."""

import re
from typing import Any

from apps.retrieval.strategies.base import StrategyError
from benchbench.reading.kinds import CallError, read_options
from benchbench.reading.objects import shown

TEXT = re.compile(r"\s*(?P<name>\w+)\s*(?:\((?P<options>[^()]*)\)\s*)?")
EXAMPLE = "flat(size=500, overlap=50)"
WORDS: dict[str, Any] = {"true": True, "false": False}


def read_strategy(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a strategy and the parameters that stand behind it. Raises StrategyError."""
    match = TEXT.fullmatch(text)
    if match is None:
        raise StrategyError(f"{shown(text)} is not a strategy such as flat or {EXAMPLE}.", field="strategies")
    try:
        options = read_options(match["options"] or "", example="size=500")
    except CallError as error:
        raise StrategyError(f"{text}: {error}", field="strategies") from None
    return match["name"], {name: _value(value) for name, value in options.items()}


def _value(text: str) -> Any:
    if text in WORDS:
        return WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
