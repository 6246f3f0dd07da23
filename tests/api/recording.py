"""A walk through the API whose requests and answers are kept as the examples of the schema."""

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml
from django.urls import resolve

from tests.api.callers import ROOT, Caller
from tests.api.callers import content as content_of

UUIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MOMENTS = re.compile(r"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
HASHES = re.compile(r"\b[0-9a-f]{32}(?:[0-9a-f]{32})?\b")
WAITS = re.compile(r"\b\d+ seconds?\b")
DIGITS = 4
GOLDEN = 0x9E3779B97F4A7C15F39CC0605CEDC835
FORM = "multipart/form-data"

# What is other on every machine and at every time, by its key.
FIXED: dict[str, Any] = {
    "access": "eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiIxIn0.c2lnbmF0dXJl",
    "refresh": "eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiIyIn0.c2lnbmF0dXJl",
    "libraries": {"numpy": "2.4.1", "torch": "2.13.0", "bm25s": "0.2.14"},
    "python": "3.11.9",
    "machine": "Linux x86_64",
    "processor": {"cores": 2, "numpy_threads": 2, "torch_threads": 2},
    "postgresql": "16.2",
    "git_sha": "5ab3c3a1d0f24e6b8c97a1f3e2d4c6b8a0918273",
    "git_revision": "5ab3c3a1d0f24e6b8c97a1f3e2d4c6b8a0918273",
    "settings": {"BENCHBENCH_QUERY_TIMEOUT_MS": 30000},
    "encoder_revision": "c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
    "dimension": 384,
    "bytes": 31416,
    "resident_bytes": 62832,
    "duration_sec": 1.7,
    "vectors_sec": 1.1,
    "estimate_seconds": 0.2,
    "eta_seconds": 0.2,
    "indexing_ms": 1700,
    "evaluation_ms": 240,
    "total_ms": 1940,
    "per_query": {"search_ms": 2.1, "total_ms": 6.4},
    "duration_ms": 1940,
    "search_time_ms": 2.1,
    "rerank_time_ms": 0.0,
    "total_time_ms": 6.4,
}


class Walk:
    """Asks as `caller` and keeps what was asked and answered, by the id of the operation: `examples`, `errors`.

    `words` are put in the place of others: a model that is not there when tests run has a substitute.
    """

    def __init__(self, caller: Caller, schema: Path, *, words: dict[str, str]) -> None:
        self.caller = caller
        self.paths = yaml.load(schema.read_text(), yaml.CSafeLoader)["paths"]
        self.words = words
        self.examples: dict[str, Any] = {}
        self.errors: dict[str, Any] = {}
        self.ids: dict[str, str] = {}
        self.moments: dict[str, str] = {}
        self.steps = 0

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Ask, with a query string or a JSON body, and return what is answered; it must be done."""
        answer = self.caller.get(path, **query) if method == "GET" else self.caller.ask(method, path, body)
        return self._record_answer(method, path, answer, requested=body and {"application/json": body}, query=query)

    def upload(self, path: str, content: str, *, file_name: str, **fields: Any) -> Any:
        answer = self.caller.upload(path, content, file_name=file_name, **fields)
        operation = self._operation(path, "POST")
        sent = [content] if operation == "upload_dataset" else content  # which may be several files
        outcome = self._record_answer("POST", path, answer, requested={FORM: {**fields, "file": sent}})
        self.examples[operation]["file_name"] = file_name
        return outcome

    def refused(self, status: int, answer: Any) -> None:
        """Keep an answer as the example of an error."""
        assert answer.status_code == status, (status, answer.content)
        self.errors[str(status)] = self._settled(answer.json())

    def _record_answer(self, method: str, path: str, answer: Any, *, requested: Any = None, query: Any = ()) -> Any:
        self.steps += 1
        operation = self._operation(path, method)
        assert 200 <= answer.status_code < 300, (operation, answer.status_code, not answer.streaming and answer.content)
        stored = self.examples.setdefault(operation, {"parameters": {}, "request": {}, "response": {}})
        outcome = None
        if answer.get("Content-Type", "").startswith("application/json"):
            outcome = json.loads(content_of(answer) if answer.streaming else answer.content)
            stored["response"][str(answer.status_code)] = self._settled(outcome)
        labelled = {
            name: str(one) if isinstance(one, UUID) else one for name, one in resolve(ROOT + path).kwargs.items()
        }
        stored["parameters"] |= self._settled(labelled | dict(query))
        stored["request"] |= self._settled(requested or {})
        return outcome

    def _operation(self, path: str, method: str) -> str:
        address = "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", resolve(ROOT + path).route)
        return str(self.paths[address][method.lower()]["operationId"])

    def _settled(self, value: Any, key: str = "") -> Any:
        """Return a value with what is other each time replaced by what stays."""
        if key in FIXED and value is not None:
            return FIXED[key]
        if isinstance(value, dict):
            return {self._text(name): self._settled(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self._settled(one) for one in value]
        if isinstance(value, float):
            return round(value, DIGITS)
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        for word, another in self.words.items():
            text = text.replace(word, another)
        text = UUIDS.sub(lambda results: self._id(results[0]), text)
        text = HASHES.sub(lambda actual: self._hash(actual[0]), WAITS.sub("44 seconds", text))
        return MOMENTS.sub(lambda result: self._moment(result[0]), text)

    def _id(self, result: str) -> str:
        return self.ids.setdefault(result, made_id(len(self.ids)))

    def _hash(self, result: str) -> str:
        return sha256(self._id(result).encode()).hexdigest()[: len(result)]

    def _moment(self, result: str) -> str:
        minutes, seconds = divmod(self.steps, 60)
        return self.moments.setdefault(result, f"2026-11-02T09:{30 + minutes}:{seconds:02}Z")


def made_id(number: int) -> str:
    """Return an id that looks like one, and is the same each time."""
    return str(UUID(int=(number + 1) * GOLDEN % 2**128, version=4))


CHECKED_IN = Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"
