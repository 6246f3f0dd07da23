"""Asking a language model: answers kept, errors that may pass tried again, a server that is down left alone."""

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.llms.base import LLM, LLMError, PassingLLMError, Reply
from apps.retrieval.llms.servers import ASKS, checked_llm, load_llm
from apps.retrieval.models import Index, LLMAnswer

ATTEMPTS = 3
BACKOFF_SECONDS = 0.5  # before the second attempt; twice as long before each further one
BREAK_AFTER = 5  # failures of a server in a row, after which it is not asked
BREAK_SECONDS = 30


@dataclass(slots=True)
class _Breaker:
    """How often a server has failed in a row, and until when it is not asked, by the monotonic clock."""

    failures: int = 0
    until: float = 0.0

    def check(self, server: str) -> None:
        if time.monotonic() < self.until:
            raise LLMError(
                f"The language model server {server} has failed {self.failures} times in a row and is not asked for "
                f"{BREAK_SECONDS} seconds: look at it, then try again."
            )

    def fail(self) -> None:
        self.failures += 1
        if self.failures >= BREAK_AFTER:
            self.until = time.monotonic() + BREAK_SECONDS


breakers: defaultdict[str, _Breaker] = defaultdict(_Breaker)  # by the name of a server


def ask(index: Index, prompt: str) -> Reply:
    """Return what the language model of an index answers: from the cache, unless its parameters bypass that.

    An answer is known by server and model, prompt, and what the server is told (temperature, tokens, seed). The first
    that was given stays. Raises LLMError.
    """
    started = time.perf_counter()
    stated = checked_llm(index.llm_parameters)
    told = {name: stated[name] for name in ASKS}
    key = fingerprint(provider=stated["provider"], model=index.llm, prompt=prompt, parameters=told)
    kept = LLMAnswer.objects.filter(key=key).first() if stated["cache"] else None
    if kept is not None:
        return Reply(kept.text, kept.ms, _since(started), True)
    text, ms = _generate(load_llm(stated["provider"], index.llm), stated["provider"], prompt, told)
    if stated["cache"]:
        row = {"provider": stated["provider"], "model": index.llm, "prompt": prompt, "parameters": told}
        LLMAnswer.objects.bulk_create([LLMAnswer(key=key, text=text, ms=ms, **row)], ignore_conflicts=True)
    return Reply(text, ms, _since(started), False)


def check_llm(index: Index) -> None:
    """Raise LLMError unless the server of an index's language model answers, and has that model."""
    stated = checked_llm(index.llm_parameters)
    there = load_llm(stated["provider"], index.llm).models()
    if index.llm not in there:
        raise LLMError(
            f"The language model server {stated['provider']} has no model {index.llm!r}; it has "
            f"{', '.join(sorted(there)) or 'none'}.",
            field="llm",
        )


def _generate(llm: LLM, server: str, prompt: str, told: dict[str, Any]) -> tuple[str, float]:
    """The answer, and the milliseconds of the attempt that gave it. Raises LLMError."""
    breaker = breakers[server]
    attempts = 0
    while True:
        breaker.check(server)
        started = time.perf_counter()
        try:
            text = llm.generate(prompt, **told)
        except PassingLLMError:
            breaker.fail()
            attempts += 1
            if attempts == ATTEMPTS:
                raise
            time.sleep(BACKOFF_SECONDS * 2 ** (attempts - 1))
            continue
        breaker.failures = 0
        return text.replace("\0", ""), _since(started)


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
