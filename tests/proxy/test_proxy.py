"""The site behind nginx: what it refuses, and what comes through as it was sent."""

import json
import socket
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User

from benchbench.client import Client
from tests.client.conftest import PASSWORD
from tests.client.scripted import scripted
from tests.operations.streamed import Watcher

pytestmark = pytest.mark.thorough

NOWHERE = "http://127.0.0.1:9"
MIB = 2**20


@pytest.fixture
def http() -> httpx.Client:
    return httpx.Client(trust_env=False, timeout=180)


@pytest.mark.parametrize(
    ("path", "size", "kind"),
    [
        ("/api/v2/benchmarks", 4 * MIB, "application/json"),
        ("/api/v2/benchmark-datasets", 12 * MIB, "application/json"),
        ("/admin/login/", 4 * MIB, "text/plain"),
    ],
)
def test_it_refuses_a_body_that_is_too_large(proxy: Any, http: httpx.Client, path: str, size: int, kind: str) -> None:
    """By its length, and where none is stated by what comes; the site hears of neither."""
    address = proxy(NOWHERE)
    for body in (b"x" * size, iter([b"x" * MIB] * (size // MIB))):
        answer = http.post(address + path, content=body)
        assert (answer.status_code, answer.headers["Content-Type"]) == (413, kind)
        assert "manage.py import_dataset" in answer.text
        if kind == "application/json":
            assert answer.json().keys() == {"detail", "code"}
            assert answer.json()["code"] == "too_large"


def test_it_says_that_the_site_does_not_answer(proxy: Any, http: httpx.Client) -> None:
    address = proxy(NOWHERE)
    answer = http.get(f"{address}/api/v2/benchmarks")
    assert (answer.status_code, answer.json()["code"]) == (502, "unavailable")
    assert http.get(f"{address}/admin/").text.startswith("No answer came from the site.")


def test_it_lets_go_of_a_sender_who_stops(proxy: Any) -> None:
    address = httpx.URL(proxy(NOWHERE, body_seconds=1))
    began = time.monotonic()
    with socket.create_connection((address.host, address.port), timeout=180) as sender:
        sender.sendall(b"POST /api/v2/benchmarks HTTP/1.1\r\nHost: bench\r\nContent-Length: 100\r\n\r\n{")
        assert sender.recv(1000)[:20] in (b"", b"HTTP/1.1 408 Request")
    assert time.monotonic() - began < 55  # nginx's own limit is a minute


def test_it_says_who_asks_and_how(proxy: Any, http: httpx.Client) -> None:
    """What is added last to X-Forwarded-For is true, whatever the client states."""
    stated = {
        "Host": "bench.example.org:8443",
        "X-Forwarded-For": "203.0.113.9",
        "X-Forwarded-Proto": "https",
        "Daphne-Root-Path": "/elsewhere",
        "Upgrade": "h2c",
        "Connection": "Upgrade",
    }
    with scripted((200, {}), (200, {})) as site:
        address = proxy(site.address)
        http.get(f"{address}/api/v2/benchmarks?page=2", headers=stated)
        http.get(f"{address}/", headers={"X-Forwarded-Proto": "gopher"})
    (_, path, headers, _), (_, _, plain, _) = site.asked
    assert path == "/api/v2/benchmarks?page=2"
    assert headers["host"] == "bench.example.org:8443"
    assert headers["x-forwarded-for"] == "203.0.113.9, 127.0.0.1"
    assert (headers["x-forwarded-proto"], plain["x-forwarded-proto"]) == ("https", "http")
    assert not headers.keys() & {"daphne-root-path", "upgrade"}


def test_a_download_comes_as_it_is_sent(proxy: Any, http: httpx.Client) -> None:
    """The second half is sent only once the first has arrived."""
    half, arrived = b"x" * MIB, Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(2 * len(half)))
            self.end_headers()
            self.wfile.write(half)
            assert arrived.wait(30)
            self.wfile.write(half)

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        read = 0
        with http.stream("GET", proxy(f"http://127.0.0.1:{server.server_port}")) as answer:
            for piece in answer.iter_bytes():
                read += len(piece)
                if read > len(half) * 0.9:
                    arrived.set()
        server.shutdown()
    assert read == 2 * len(half)


def test_the_site_works_behind_it(proxy: Any, serve: Callable[..., str], ada: User, token: str) -> None:
    """An upload larger than ordinary bodies, a WebSocket with its subprotocol, and throttles by the true address."""
    address = proxy(serve(BENCHBENCH_PROXIES="1", BENCHBENCH_API_RATE_AUTH="2/d"))
    corpus = b"".join(
        json.dumps({"_id": f"d{number}", "text": "apple " * 100_000}).encode() + b"\n" for number in range(8)
    )
    with Client(address, token=token) as client:
        made = client.ask(
            "POST", "/collections", once=True, data={"name": "fruits"}, files={"file": ("fruits.jsonl", corpus)}
        )
        assert (len(corpus) > 3 * MIB, made["document_count"]) == (True, 8)
        mine = {"subprotocols": [f"access_token.{token}"], "additional_headers": {"Origin": address}}
        watcher = Watcher(f"{address.replace('http', 'ws')}/ws/operations", lambda message: True, **mine)
        assert [message["type"] for message in watcher.told()] == ["current_state"]
        assert watcher.subprotocol == f"access_token.{token}"
    assert [sign_in(address, f"203.0.113.{number}", "127.0.0.1") for number in range(3)] == [401, 401, 429]
    assert sign_in(address, "127.0.0.1", "127.0.0.2") == 401


def sign_in(address: str, stated: str, own: str) -> int:
    """Try to sign in from the address `own` of this machine, as a client who states another one."""
    with httpx.Client(transport=httpx.HTTPTransport(local_address=own), timeout=180) as client:
        return client.post(
            f"{address}/api/v2/auth/token",
            json={"username": f"nobody at {stated}", "password": PASSWORD},
            headers={"X-Forwarded-For": stated},
        ).status_code
