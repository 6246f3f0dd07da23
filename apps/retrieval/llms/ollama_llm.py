"""Language models that Ollama runs, through its own client."""

from collections.abc import Callable
from typing import Any, TypeVar

from apps.retrieval.llms.base import connection_error, not_an_answer, status_error

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
