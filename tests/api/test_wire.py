"""What HTTP leaves to a client, on a live site: Django's test client never sends it."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.api.bodies import questions
from tests.api.callers import assert_refused
from tests.client.site import ada, token  # noqa: F401 (fixtures)

pytestmark = pytest.mark.thorough

REQUEST = httpx.Request(
    "POST", "http://x", data={"name": "in chunks"}, files={"file": ("q.json", json.dumps(questions("a")))}
)


def in_chunks(body: bytes) -> Any:
    """Return a body that httpx sends without its length."""
    return iter([body[:20], body[20:]])


@pytest.fixture
def ask(serve: Any, token: str) -> Callable[..., httpx.Response]:  # noqa: F811
    site = serve(BENCHMARK_DATASET_MAX_UPLOAD_BYTES="2000")

    def ask(method: str, path: str, *, scheme: str = "Bearer", headers: Any = None, **content: Any) -> httpx.Response:
        labelled = {"Authorization": f"{scheme} {token}", "Content-Type": "application/json"} | (headers or {})
        return httpx.request(method, f"{site}/api/v2{path}", headers=labelled, timeout=180, trust_env=False, **content)

    return ask


def test_chunked_bodies_and_any_scheme_case_are_accepted(ask: Callable[..., httpx.Response]) -> None:
    created = ask("POST", "/collections", content=in_chunks(b'{"name": "a collection in chunks"}'))
    assert (created.status_code, created.json()["name"]) == (201, "a collection in chunks")
    form = {"Content-Type": REQUEST.headers["Content-Type"]}
    uploaded = ask("POST", "/benchmark-datasets", content=in_chunks(REQUEST.read()), headers=form)
    assert (uploaded.status_code, uploaded.json()["name"]) == (201, "in chunks")
    large = ask("POST", "/benchmark-datasets", content=in_chunks(REQUEST.read() + b" " * 2**21), headers=form)
    assert (large.status_code, large.json()["code"]) == (413, "too_large")
    assert_refused(ask("POST", "/collections", content=in_chunks(b"")), 400, field="name")
    assert ask("GET", "/collections", scheme="bearer").status_code == 200
