"""A server with the APIs of Ollama and OpenAI for chats, as they answer, whose model says what a test wants."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.test import override_settings

from apps.retrieval.llms import asking
from benchbench.process import reset_all

MODEL = "llama3"
DRIPS = object()


class LLMServer:
    """`answer` gets the prompt and returns the text, the status of an error, perhaps with its message, or a whole body.

    It may sleep; of DRIPS a byte comes now and then, for ever. `asked` are the requests for answers so far; `digest` is
    the revision of the model that Ollama reports.
    """

    def __init__(self) -> None:
        self.answer: Callable[[str], str | int | tuple[int, str] | bytes | object] = lambda prompt: "yes"
        self.asked: list[dict[str, Any]] = []
        self.encoding = "identity"
        self.url = ""
        self.digest = "d1"


def describe_refusal(answer: int | tuple[int, str], model: str, url: str) -> tuple[int, str]:
    if isinstance(answer, tuple):
        return answer
    return answer, f"model '{model}' not found" if answer == 404 else f"overloaded, see {url}/help"


@contextmanager
def llm_server() -> Iterator[LLMServer]:
    outcome = LLMServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._send_json(200, {"/api/tags": tags(outcome.digest), "/v1/models": MODELS}[self.path])

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            outcome.asked.append({"path": self.path, "key": self.headers["Authorization"], **body})
            text = 404 if body["model"] != MODEL else outcome.answer(body["messages"][0]["content"])
            if text is DRIPS:
                self._send(200, [b" "] * 10**6)
            elif isinstance(text, bytes):
                self._send(200, [text])
            elif isinstance(text, int | tuple):
                status, message = describe_refusal(text, body["model"], outcome.url)
                self._send_json(status, {"error": message if self.path == "/api/chat" else {"message": message}})
            else:
                self._send_json(200, ollama_answer(text) if self.path == "/api/chat" else openai_answer(text))

        def _send_json(self, status: int, value: Any) -> None:
            self._send(status, [json.dumps(value).encode()])

        def _send(self, status: int, pieces: list[bytes]) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Encoding", outcome.encoding)
            self.send_header("Content-Length", str(sum(map(len, pieces))))
            with suppress(ConnectionError):  # of a client that waited no longer
                self.end_headers()
                for index, data in enumerate(pieces):
                    time.sleep(0.1 if index else 0)
                    self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    outcome.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield outcome
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def ollama_server() -> Iterator[LLMServer]:
    """A server that the settings name "ollama", wherever a test has no fixtures; its model says 1."""
    reset_all()
    with llm_server() as server, override_settings(BENCHBENCH_LLM_SERVERS=[f"ollama=ollama+{server.url}"]):
        server.answer = lambda prompt: "1"
        yield server


@contextmanager
def known_server(settings: Any, monkeypatch: Any) -> Iterator[LLMServer]:
    """A server that the settings name, under the names of both kinds; what fails is asked again at once."""
    monkeypatch.setattr(asking, "BACKOFF_SECONDS", 0)
    reset_all()
    with llm_server() as server:
        settings.BENCHBENCH_LLM_SERVERS = [f"ollama=ollama+{server.url}", f"openai=openai+{server.url}/v1"]
        settings.BENCHBENCH_LLM_KEYS = ["openai=sk=1"]
        yield server


def tags(digest: str) -> dict[str, Any]:
    name = f"{MODEL}:latest"
    return {"models": [{"name": name, "model": name, "size": 1, "digest": digest, "details": {}}]}


MODELS = {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 1, "owned_by": "us"}]}


def ollama_answer(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"model": MODEL, "created_at": "2026-01-01T00:00:00Z", "message": message, "done": True}


def openai_answer(text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice]}


RAPTOR = {"strategy": "raptor", "llm": MODEL}
