"""The protocol of language models."""

from dataclasses import dataclass
from typing import Protocol

from benchbench.errors import BenchbenchError


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
