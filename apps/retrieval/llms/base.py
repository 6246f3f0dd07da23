"""The protocol of language models, and what it says of errors."""

import re
from dataclasses import dataclass
from typing import Protocol

from benchbench.errors import BenchbenchError

PASSING = (408, 409, 429, 500, 502, 503, 504)  # HTTP statuses of what may pass
REFUSED = (401, 403)


class LLMError(BenchbenchError):
    """A language model that is not to be had, or does not answer."""

    code = "llm"


class PassingLLMError(LLMError):
    """An error that may pass, so that asking again may help: no connection, no answer in time, too much asked."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, the milliseconds that the model took for it when it was asked, and those that getting it took now."""

    text: str
    ms: float
    waited_ms: float
    is_cached: bool


class LLM(Protocol):
    """A model on a server. Asked the same with temperature 0 and a seed, it is meant to answer the same."""

    @property
    def model_name(self) -> str: ...

    def generate(self, prompt: str, *, max_tokens: int = 500, temperature: float = 0.0, seed: int = 0) -> str:
        """Return the answer to one prompt. Raises LLMError, PassingLLMError."""

    def models(self) -> list[str]:
        """Return the names of the models that the server has. Raises LLMError, PassingLLMError."""

    def revision(self) -> str:
        """Return what tells the model from others that had its name; "" where the server does not say. Raises
        LLMError, PassingLLMError."""


def has_text(answer: str) -> bool:
    """Return whether an answer is more than blanks, for askers that can use any text."""
    return bool(answer.strip())


def status_error(server: str, model: str, status: int, message: str) -> LLMError:
    """Return the error for an HTTP status other than 200. What the server says of addresses and keys is left out."""
    if status in REFUSED:
        return LLMError(f"The language model server {server} refuses its key ({status}): correct BENCHBENCH_LLM_KEYS.")
    kind = PassingLLMError if status in PASSING else LLMError
    told = re.sub(r"\bsk-\S+|\w+://\S+", "…", message)[:300]
    return kind(f"The language model server {server} answered {status} for {model}: {told}")


def connection_error(server: str, reason: str) -> PassingLLMError:
    return PassingLLMError(
        f"The language model server {server} does not answer ({reason}): start it, or correct BENCHBENCH_LLM_SERVERS."
    )


def not_an_answer(server: str, api: str) -> LLMError:
    return LLMError(
        f"The language model server {server} answered what is no answer of {api}'s API: look at what runs there, or "
        "correct BENCHBENCH_LLM_SERVERS."
    )
