"""Language models of any server that has OpenAI's API for chats, through OpenAI's client."""

from collections.abc import Callable
from typing import TypeVar

from apps.retrieval.llms.base import LLMError, PassingLLMError

Result = TypeVar("Result")
PASSING = (408, 409, 429, 500, 502, 503, 504)


class OpenAILLM:
    """A model of a server whose API begins at `url`, such as http://localhost:8000/v1."""

    def __init__(self, model_name: str, *, server: str, url: str, key: str, timeout: float) -> None:
        from openai import OpenAI

        self.model_name = model_name
        self._server = server
        self._client = OpenAI(
            base_url=url, api_key=key or "none", timeout=timeout, max_retries=0
        )  # retried by `asking`

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
        if not answer.choices:
            raise LLMError(f"The language model server {self._server} gave no answer by {self.model_name}.")
        return answer.choices[0].message.content or ""

    def models(self) -> list[str]:
        return [model.id for model in self._told(self._client.models.list).data]

    def _told(self, call: Callable[[], Result]) -> Result:
        from openai import APIConnectionError, APIStatusError, OpenAIError

        try:
            return call()
        except APIStatusError as error:
            kind = PassingLLMError if error.status_code in PASSING else LLMError
            raise kind(
                f"The language model server {self._server} answered {error.status_code} for {self.model_name}: "
                f"{error.message[:300]}"
            ) from error
        except APIConnectionError as error:
            raise PassingLLMError(
                f"The language model server {self._server} does not answer ({type(error).__name__}): start it, or "
                "correct BENCHBENCH_LLM_SERVERS."
            ) from error
        except OpenAIError as error:
            raise LLMError(f"The language model server {self._server} cannot be asked: {error}") from error
