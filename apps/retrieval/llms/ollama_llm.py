"""Language models that Ollama runs, through its own client."""

from collections.abc import Callable
from typing import Any, TypeVar

from apps.retrieval.llms.base import LLMError, PassingLLMError

Result = TypeVar("Result")
PASSING = (408, 429, 500, 502, 503, 504)


class OllamaLLM:
    """A model of an Ollama server at `url`, such as http://localhost:11434."""

    def __init__(self, model_name: str, *, server: str, url: str, key: str, timeout: float) -> None:
        from ollama import Client

        self.model_name = model_name
        self._server = server
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = Client(host=url, timeout=timeout, headers=headers)

    def generate(self, prompt: str, *, max_tokens: int = 500, temperature: float = 0.0, seed: int = 0) -> str:
        options = {"temperature": temperature, "seed": seed, "num_predict": max_tokens}
        message = {"role": "user", "content": prompt}
        answer: Any = self._told(lambda: self._client.chat(self.model_name, messages=[message], options=options))
        return answer.message.content or ""

    def models(self) -> list[str]:
        names = [model.model or "" for model in self._told(self._client.list).models]
        return names + [name.removesuffix(":latest") for name in names if name.endswith(":latest")]

    def _told(self, call: Callable[[], Result]) -> Result:
        import httpx
        from ollama import ResponseError

        try:
            return call()
        except ResponseError as error:
            kind = PassingLLMError if error.status_code in PASSING else LLMError
            raise kind(
                f"The language model server {self._server} answered {error.status_code} for {self.model_name}: "
                f"{str(error.error)[:300]}"
            ) from error
        except (ConnectionError, httpx.TransportError) as error:
            raise PassingLLMError(
                f"The language model server {self._server} does not answer ({type(error).__name__}): start it, or "
                "correct BENCHBENCH_LLM_SERVERS."
            ) from error
