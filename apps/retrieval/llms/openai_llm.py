"""Language models of any server that has OpenAI's API for chats, through OpenAI's client."""

from collections.abc import Callable
from typing import TypeVar

from apps.retrieval.llms.base import connection_error, not_an_answer, status_error

Result = TypeVar("Result")


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
