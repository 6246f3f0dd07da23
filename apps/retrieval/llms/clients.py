"""Language models: their protocol, their errors, and the clients of Ollama and of OpenAI's API."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

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


Result = TypeVar("Result")


class OllamaLLM:
    """A model of an Ollama server at `url`, such as http://localhost:11434, in a context of so many tokens, where that
    is stated: what is longer, Ollama cuts."""

    def __init__(
        self, model_name: str, *, server: str, url: str, key: str, timeout: float, context: int | None = None
    ) -> None:
        from ollama import Client

        self.model_name = model_name
        self._server = server
        self._context = {} if context is None else {"num_ctx": context}
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = Client(host=url, timeout=timeout, headers=headers)

    def generate(self, prompt: str, *, max_tokens: int = 500, temperature: float = 0.0, seed: int = 0) -> str:
        options = {"temperature": temperature, "seed": seed, "num_predict": max_tokens, **self._context}
        message = {"role": "user", "content": prompt}
        answer: Any = self._told(lambda: self._client.chat(self.model_name, messages=[message], options=options))
        return answer.message.content or ""

    def models(self) -> list[str]:
        return list(self._digests())

    def revision(self) -> str:
        """The digest of the model's files; "" of one that is not there, which asking it says."""
        return self._digests().get(self.model_name, "")

    def _digests(self) -> dict[str, str]:
        """The digests of the models by name; what is tagged latest has its name without the tag too."""
        digests = {model.model or "": model.digest or "" for model in self._told(self._client.list).models}
        latest = {name.removesuffix(":latest"): digest for name, digest in digests.items()}
        return digests | latest

    def _told(self, call: Callable[[], Result]) -> Result:
        import httpx
        from ollama import ResponseError

        try:
            return call()
        except ResponseError as error:
            raise status_error(self._server, self.model_name, error.status_code, str(error.error)) from None
        except (ConnectionError, httpx.TransportError) as error:
            raise connection_error(self._server, type(error).__name__) from None
        except (ValueError, TypeError):  # of JSON, or of the fields in it
            raise not_an_answer(self._server, "Ollama") from None


class OpenAILLM:
    """A model of a server whose API begins at `url`, such as http://localhost:8000/v1."""

    def __init__(self, model_name: str, *, server: str, url: str, key: str, timeout: float) -> None:
        from openai import OpenAI

        self.model_name = model_name
        self._server = server
        # Retried by `asking`.
        self._client = OpenAI(base_url=url, api_key=key or "none", timeout=timeout, max_retries=0)

    def generate(self, prompt: str, *, max_tokens: int = 500, temperature: float = 0.0, seed: int = 0) -> str:
        answer = self._told(
            lambda: self._client.chat.completions.create(
                model=self.model_name,
                messages=[{"role": "user", "content": prompt}],
                max_tokens=max_tokens,
                temperature=temperature,
                seed=seed,
            )
        )
        # The client takes any JSON for an answer, and text for a text.
        choices = getattr(answer, "choices", None)
        message = getattr(choices[0], "message", None) if choices else None
        if message is None:
            raise not_an_answer(self._server, "OpenAI")
        return message.content or ""

    def models(self) -> list[str]:
        listed = getattr(self._told(self._client.models.list), "data", None)
        if listed is None:
            raise not_an_answer(self._server, "OpenAI")
        return [model.id for model in listed]

    def revision(self) -> str:
        """None: the API tells no digests."""
        return ""

    def _told(self, call: Callable[[], Result]) -> Result:
        from openai import APIConnectionError, APIStatusError, OpenAIError

        try:
            return call()
        except APIStatusError as error:
            raise status_error(self._server, self.model_name, error.status_code, error.message) from None
        except APIConnectionError as error:
            raise connection_error(self._server, type(error).__name__) from None
        except (OpenAIError, ValueError):
            raise not_an_answer(self._server, "OpenAI") from None
