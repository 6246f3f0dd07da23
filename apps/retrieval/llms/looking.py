"""Looking whether a language model would answer, before anything is started that asks it."""

import time
from dataclasses import replace
from functools import lru_cache

from apps.retrieval.llms.base import LLMError
from apps.retrieval.llms.servers import Server, lack_of_llm, made, servers

LOOK_SECONDS = 5.0  # that a server may take to list its models: somebody may wait for a page
BELIEVED_SECONDS = 5.0  # for which at most a server is believed: each run of a benchmark looks


def lack_of_answers(name: str) -> str:
    """Say why a language model, by its full name, would not answer here now, without a full stop; "" where it would."""
    if lacking := lack_of_llm(name):
        return lacking
    server, _, rest = name.partition(":")
    return _lack(servers()[server], rest.partition(" at ")[0], int(time.monotonic() / BELIEVED_SECONDS))


def require_model(server: str, model: str) -> None:
    """Raise LLMError unless a server answers, and has a model."""
    if lacking := lack_of_llm(f"{server}:{model}"):
        raise LLMError(f"{lacking[0].upper()}{lacking[1:]}.")
    known = servers()[server]
    there = made(replace(known, timeout=min(known.timeout, LOOK_SECONDS)), model).models()
    if model not in there:
        raise LLMError(
            f"The language model server {server} has no model {model!r}; it has {', '.join(sorted(there)) or 'none'}.",
            field="llm",
        )


@lru_cache(maxsize=64)
def _lack(server: Server, model: str, moment: int) -> str:
    try:
        require_model(server.name, model)
    except LLMError as error:
        return error.message[0].lower() + error.message[1:].rstrip(".")
    return ""
