"""Language models: their protocol, their errors, and the clients of Ollama and of OpenAI's API."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from benchbench.errors import BenchbenchError
from benchbench.texts.secret import Secret

TEMPORARY = (408, 409, 429, 500, 502, 503, 504)  # HTTP statuses of temporary errors
UNAUTHORISED = (401, 403)
EXCERPT = 10_000  # characters of a server's message in which its key is looked for
MAX_BYTES = 5_000_000  # of an answer
Result = TypeVar("Result")


class LLMError(BenchbenchError):
    """A language model is unavailable or does not answer."""

    code = "llm"


class TemporaryLLMError(LLMError):
    """A temporary error that a retry may solve: no connection, a timeout, or too many requests."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, the milliseconds that the model took for it, and those that this call took, perhaps from the cache."""

    text: str
    ms: float
    waited_ms: float
    is_cached: bool


@dataclass(frozen=True, slots=True)
class Server:
    """A server: name, kind, URL, key ("" if none), timeout in seconds, and requested context in tokens.

    With a `context` of None the server uses its default.
    """

    name: str
    kind: str
    url: str
    key: str
    timeout: float
    context: int | None = None


class LLM(ABC):
    """A model on a server. With temperature 0 and a seed, equal prompts should give equal answers.

    `api` names the server's API. All methods that send a request raise LLMError or TemporaryLLMError.
    """

    api: str

    def __init__(self, model_name: str, server: Server) -> None:
        self.model_name = model_name
        self.server = server

    @abstractmethod
    def generate(self, prompt: str, *, max_tokens: int, temperature: float, seed: int) -> str:
        """Return the answer to one prompt."""

    @abstractmethod
    def list_models(self) -> list[str]:
        """Return the names of the server's models."""

    @abstractmethod
    def request_revision(self) -> str:
        """Return an identifier of the model's version; "" if the server reports none."""

    def build_status_error(self, status: int, message: str) -> LLMError:
        """Return the error for an HTTP status other than 200, with addresses and keys removed from the message."""
        subject = f"The language model server {self.server.name}"
        if status in UNAUTHORISED:
            return LLMError(f"{subject} refused its key ({status}): correct BENCHBENCH_LLM_KEYS.")
        kind = TemporaryLLMError if status in TEMPORARY else LLMError
        text = re.sub(r"\bsk-\S+|\b\w+://\S+", "…", Secret(self.server.key).hide(message[:EXCERPT], EXCERPT))[:300]
        return kind(f"{subject} answered {status} for {self.model_name}: {text}")

    def build_connection_error(self, error: Exception) -> TemporaryLLMError:
        return TemporaryLLMError(
            f"The language model server {self.server.name} does not answer ({type(error).__name__}): start it, or "
            "correct BENCHBENCH_LLM_SERVERS."
        )

    def build_answer_error(self) -> LLMError:
        return LLMError(
            f"The language model server {self.server.name} did not answer by {self.api}'s API: check the server, or "
            "correct BENCHBENCH_LLM_SERVERS."
        )


def has_text(answer: str) -> bool:
    """Return whether an answer is not blank, for callers that accept any text."""
    return bool(answer.strip())


class OllamaLLM(LLM):
    """A model of an Ollama server, such as http://localhost:11434.

    Ollama truncates prompts that exceed the context.
    """

    api = "Ollama"

    def __init__(self, model_name: str, server: Server) -> None:
        import httpx
        from ollama import Client

        super().__init__(model_name, server)
        headers = {"Authorization": f"Bearer {server.key}"} if server.key else {}
        transport = make_transport(httpx.Client)
        self._client = Client(host=server.url, timeout=server.timeout, headers=headers, transport=transport)

    def generate(self, prompt: str, *, max_tokens: int, temperature: float, seed: int) -> str:
        options = {"temperature": temperature, "seed": seed, "num_predict": max_tokens}
        if self.server.context is not None:
            options["num_ctx"] = self.server.context
        message = {"role": "user", "content": prompt}
        answer = self._answer(lambda: self._client.chat(self.model_name, messages=[message], options=options))
        return answer.message.content or ""

    def list_models(self) -> list[str]:
        return list(self._request_digests())

    def request_revision(self) -> str:
        """Return the digest of the model's files; "" for a missing model, which `generate` reports."""
        return self._request_digests().get(self.model_name, "")

    def _request_digests(self) -> dict[str, str]:
        """Return the digests of the models by name. Those tagged latest are also listed without the tag."""
        digests = {model.model or "": model.digest or "" for model in self._answer(self._client.list).models}
        return digests | {name.removesuffix(":latest"): digest for name, digest in digests.items()}

    def _answer(self, call: Callable[[], Result]) -> Result:
        import httpx
        from ollama import ResponseError

        try:
            return call()
        except ResponseError as error:
            raise self.build_status_error(error.status_code, str(error.error)) from None
        except (ConnectionError, httpx.TransportError) as error:
            raise self.build_connection_error(error) from None
        except (ValueError, TypeError):  # invalid JSON, or invalid fields in it
            raise self.build_answer_error() from None


class OpenAILLM(LLM):
    """A model of a server with OpenAI's chat API, at a base URL such as http://localhost:8000/v1."""

    api = "OpenAI"

    def __init__(self, model_name: str, server: Server) -> None:
        from openai import DefaultHttpxClient, OpenAI

        super().__init__(model_name, server)
        # `asking` does the retries.
        http_client = DefaultHttpxClient(transport=make_transport(DefaultHttpxClient))
        options: dict[str, Any] = {"timeout": server.timeout, "max_retries": 0, "http_client": http_client}
        self._client = OpenAI(base_url=server.url, api_key=server.key or "none", **options)

    def generate(self, prompt: str, *, max_tokens: int, temperature: float, seed: int) -> str:
        answer = self._answer(
            lambda: self._client.chat.completions.create(
                model=self.model_name,
                messages=[{"role": "user", "content": prompt}],
                max_tokens=max_tokens,
                temperature=temperature,
                seed=seed,
            )
        )
        # The client accepts any JSON as an answer, so check it.
        choices = getattr(answer, "choices", None)
        message = getattr(choices[0], "message", None) if choices else None
        if message is None:
            raise self.build_answer_error()
        return message.content or ""

    def list_models(self) -> list[str]:
        listed = getattr(self._answer(self._client.models.list), "data", None)
        if listed is None:
            raise self.build_answer_error()
        return [model.id for model in listed]

    def request_revision(self) -> str:
        """Return "": the API reports no digests."""
        return ""

    def _answer(self, call: Callable[[], Result]) -> Result:
        from openai import APIConnectionError, APIStatusError, OpenAIError

        try:
            return call()
        except APIStatusError as error:
            raise self.build_status_error(error.status_code, error.message) from None
        except APIConnectionError as error:
            raise self.build_connection_error(error) from None
        except (OpenAIError, ValueError):
            raise self.build_answer_error() from None


def make_transport(client_class: type) -> Any:
    """Return a transport for clients of httpx, or of its successor, on which `client_class` is built.

    It ends an answer of more than MAX_BYTES, or a compressed one, with ReadError.
    """
    client = next(base for base in client_class.__mro__ if base.__name__ == "Client")
    httpx = import_module(client.__module__.partition(".")[0])

    class Counted(httpx.SyncByteStream):  # type: ignore[name-defined]
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def __iter__(self) -> Iterator[bytes]:
            count = 0
            for block in self._stream:
                count += len(block)
                if count > MAX_BYTES:
                    raise httpx.ReadError(f"The answer has more than {MAX_BYTES:,} bytes.")
                yield block

        def close(self) -> None:
            self._stream.close()

    class Limited(httpx.HTTPTransport):  # type: ignore[name-defined]
        def handle_request(self, request: Any) -> Any:
            request.headers["Accept-Encoding"] = "identity"
            response = super().handle_request(request)
            if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
                response.close()
                raise httpx.ReadError("The answer is compressed.", request=request)
            response.stream = Counted(response.stream)
            return response

    return Limited(verify=_load_certificates(httpx))


@cache
def _load_certificates(httpx: Any) -> Any:
    """Return the trusted certificates of a version of httpx: to read them takes longer than to ask a server."""
    return httpx.create_ssl_context()
