"""The site behind nginx: what it refuses, and what comes through as it was sent."""

import json
import re
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import httpx
import pytest
from django.conf import settings
from django.urls import reverse

from apps.api.parsers import FORM_BYTES, UploadParser
from apps.api.urls import urlpatterns
from benchbench.client import Client
from tests.client.fruit import PASSWORD
from tests.client.scripted import scripted
from tests.operations.streamed import Watcher
from tests.proxy.nginx import COMPOSE, environment, filled_in
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.thorough

NOWHERE = "http://127.0.0.1:9"
MIB = 2**20


@pytest.fixture
def http():
    return httpx.Client(trust_env=False, timeout=180)


@pytest.mark.parametrize(
    ("path", "size", "kind"),
    [
        ("/api/v2/benchmarks", 4 * MIB, "application/json"),
        ("/api/v2/benchmark-datasets", 12 * MIB, "application/json"),
        ("/admin/login/", 4 * MIB, "text/plain"),
    ],
)
def test_it_refuses_a_body_that_is_too_large(proxy, http, path, size, kind):
    """By its length, and where none is stated by what comes; the site hears of neither."""
    address = proxy(NOWHERE)
    for body in (b"x" * size, iter([b"x" * MIB] * (size // MIB))):
        answer = http.post(address + path, content=body)
        assert (answer.status_code, answer.headers["Content-Type"]) == (413, kind)
        assert "manage.py import_dataset" in answer.text
        if kind == "application/json":
            assert answer.json().keys() == {"detail", "code"}
            assert answer.json()["code"] == "too_large"


def test_it_says_that_the_site_does_not_answer(proxy, http):
    address = proxy(NOWHERE)
    answer = http.get(f"{address}/api/v2/benchmarks")
    assert (answer.status_code, answer.json()["code"]) == (502, "unavailable")
    assert http.get(f"{address}/admin/").text.startswith("No answer came from the site.")


def test_stalled_senders_are_disconnected(proxy):
    address = httpx.URL(proxy(NOWHERE, body_seconds=1))
    with socket.create_connection((address.host, address.port), timeout=55) as sender:  # nginx's own limit is a minute
        sender.sendall(b"POST /api/v2/benchmarks HTTP/1.1\r\nHost: bench\r\nContent-Length: 100\r\n\r\n{")
        assert sender.recv(1000)[:20] in (b"", b"HTTP/1.1 408 Request")


def test_proxy_forwards_client_address_and_protocol(proxy, http):
    fields = {
        "Host": "bench.example.org:8443",
        "X-Forwarded-For": "203.0.113.9",
        "X-Forwarded-Proto": "https",
        "Daphne-Root-Path": "/elsewhere",
        "Upgrade": "h2c",
        "Connection": "Upgrade",
    }
    with scripted((200, {}), (200, {})) as site:
        address = proxy(site.address)
        http.get(f"{address}/api/v2/benchmarks?page=2", headers=fields)
        http.get(f"{address}/", headers={"X-Forwarded-Proto": "gopher"})
    (_, path, headers, _), (_, _, plain, _) = site.asked
    assert path == "/api/v2/benchmarks?page=2"
    assert headers["host"] == "bench.example.org:8443"
    assert headers["x-forwarded-for"] == "203.0.113.9, 127.0.0.1"
    assert (headers["x-forwarded-proto"], plain["x-forwarded-proto"]) == ("https", "http")
    assert not headers.keys() & {"daphne-root-path", "upgrade"}


def test_a_download_comes_as_it_is_sent(proxy, http):
    half, arrived = b"x" * MIB, Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(2 * len(half)))
            self.end_headers()
            self.wfile.write(half)
            assert arrived.wait(HANG_SECONDS)
            self.wfile.write(half)

        def log_message(self, *arguments):
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


def test_the_site_works_behind_it(proxy, serve, ada, token):
    address = proxy(serve(BENCHBENCH_PROXIES="1", BENCHBENCH_API_RATE_AUTH="2/d"))
    corpus = b"".join(
        json.dumps({"_id": f"d{number}", "text": "apple " * 100_000}).encode() + b"\n" for number in range(8)
    )
    with Client(address, token=token) as client:
        created = client.ask(
            "POST", "/collections", once=True, data={"name": "fruits"}, files={"file": ("fruits.jsonl", corpus)}
        )
        assert (len(corpus) > 3 * MIB, created["document_count"]) == (True, 8)
        mine = {"subprotocols": [f"access_token.{token}"], "additional_headers": {"Origin": address}}
        watcher = Watcher(f"{address.replace('http', 'ws')}/ws/operations", lambda message: True, **mine)
        assert [message["type"] for message in watcher.read_all()] == ["current_state"]
        assert watcher.subprotocol == f"access_token.{token}"
    assert [sign_in(address, f"203.0.113.{number}", "127.0.0.1") for number in range(3)] == [401, 401, 429]
    assert sign_in(address, "127.0.0.1", "127.0.0.2") == 401


def sign_in(address, declared, personal):
    """Try to sign in from the address `own` of this machine, as a client who states another one."""
    with httpx.Client(transport=httpx.HTTPTransport(local_address=personal), timeout=180) as client:
        return client.post(
            f"{address}/api/v2/auth/token",
            json={"username": f"nobody at {declared}", "password": PASSWORD},
            headers={"X-Forwarded-For": declared},
        ).status_code


@pytest.mark.parametrize(
    ("proxies", "same", "second"),
    [
        (0, ["203.0.113.1", "203.0.113.2", "203.0.113.3"], None),
        (1, ["203.0.113.1, 10.0.0.1", "203.0.113.2, 10.0.0.1", "10.0.0.1"], "10.0.0.1, 10.0.0.2"),
        (2, ["203.0.113.1, 10.0.0.1, 10.9.9.9", "10.0.0.1, 10.9.9.9", "10.0.0.1, 10.8.8.8"], "10.0.0.2, 10.9.9.9"),
    ],
)
def test_it_believes_its_proxies_alone(db, client, settings, open_window, proxies, same, second):
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": proxies}
    settings.BENCHBENCH_API_RATES = settings.BENCHBENCH_API_RATES | {"auth": (2, 86_400)}

    def sign_in(forwarded):
        body = {"username": f"nobody at {forwarded}", "password": "guessed"}
        headers = {"X-Forwarded-For": forwarded}
        return client.post("/api/v2/auth/token", body, "application/json", headers=headers).status_code

    assert [sign_in(forwarded) for forwarded in same] == [401, 401, 429]
    if second:
        assert sign_in(second) == 401


DATASET, CORPUS = "BENCHMARK_DATASET_MAX_UPLOAD_BYTES", "BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES"
PAGES = {
    "admin:datasets_dataset_add": DATASET,
    "admin:dataset_preview": DATASET,
    "admin:benchmark_from_manifest": DATASET,
    "admin:collections_collection_add": CORPUS,
    "admin:run_import": CORPUS,
    "admin:run_import_preview": CORPUS,
    "admin:login": None,
    "admin:benchmarks_benchmark_add": None,
}
LOCATION = re.compile(r'location ~ "(.+)" \{\s+client_max_body_size (\d+);')
SAMPLES = {"id": "8d9f8a3e-5c0b-4e0e-9d55-1f0a5b0e2c11", "int": "7"}


def body_limit(path):
    """Return how large a body the proxy lets through to `path`, None for what it lets through anywhere."""
    return next((int(size) for regex, size in LOCATION.findall(filled_in()) if re.search(regex, path)), None)


def limits_of_the_api():
    """Yield each address of the API with the setting that limits what may be uploaded there."""
    for pattern in urlpatterns:
        parsers = getattr(pattern.callback, "initkwargs", {}).get("parser_classes", [])
        limits = [parser.limit for parser in parsers if issubclass(parser, UploadParser)]
        path = re.sub(r"<(\w+):\w+>", lambda result: SAMPLES[result[1]], str(pattern.pattern))
        yield f"/api/v2/{path}", limits[0] if limits else None


def test_only_uploads_may_be_large():
    limits = [*limits_of_the_api(), *((reverse(name), limit) for name, limit in PAGES.items())]
    assert {limit for _, limit in limits} == {None, DATASET, CORPUS}
    for path, limit in limits:
        assert body_limit(path) == (limit and getattr(settings, limit) + FORM_BYTES), path


def test_body_limit_exceeds_djangos_memory_limit():
    ordinary = re.search(r"^    client_max_body_size (\d+)m;", filled_in(), re.MULTILINE)
    assert int(ordinary[1]) * 2**20 > settings.DATA_UPLOAD_MAX_MEMORY_SIZE


@pytest.mark.parametrize(("name", "body"), [(DATASET, "DATASET_BODY_BYTES"), (CORPUS, "CORPUS_BODY_BYTES")])
def test_proxy_limit_follows_the_site_limit(name, body):
    assert environment(**{name: "5000"})[body] == str(5000 + FORM_BYTES)


def test_only_the_proxy_publishes_ports_to_everyone():
    ports = {name: service["ports"] for name, service in COMPOSE.items() if "ports" in service}
    open_to_all = [name for name, published in ports.items() if "${SERVICES_ADDRESS:-127.0.0.1}:" not in published[0]]
    assert open_to_all == ["proxy"]
    assert COMPOSE["web"]["environment"]["BENCHBENCH_PROXIES"] == "${BENCHBENCH_PROXIES:-1}"
