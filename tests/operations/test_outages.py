"""Watching while something on the way is away: a client that stalls; a Redis, of this test's own, that is killed."""

import base64
import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import Mock
from urllib.parse import urlsplit

import httpx
import pytest
import redis
from django.contrib.auth.models import User
from django.db import InterfaceError, connection
from django.test import Client
from django.urls import reverse
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from apps.accounts.tokens import issue_token
from apps.mappings.resolving import resolve
from apps.operations import working
from apps.operations.launching import cancel_operation, start_operation
from apps.operations.models import Operation
from apps.records.models import Benchmark
from apps.retrieval.models import Index
from benchbench.embedded.service import find_program
from tests.factories import make_collection, make_dataset, make_mapping
from tests.operations.adding import start_adding
from tests.results.exported import make_exported
from tests.sessions import elsewhere
from tests.sockets import make_watcher
from tests.waiting import until

SECONDS = 120
ALIVE = ("--ping-interval", "1", "--ping-timeout", "1")


@pytest.fixture
def redis_of_its_own() -> Iterator[tuple[str, Callable[[], "subprocess.Popen[bytes]"]]]:
    """The URL of a Redis that keeps nothing, and a function that starts it."""
    started: list[subprocess.Popen[bytes]] = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "redis"

        def start() -> "subprocess.Popen[bytes]":
            path.unlink(missing_ok=True)
            command = [str(find_program()), "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", folder]
            started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            until(path.exists)
            return started[-1]

        yield f"unix://{path}", start
        for server in started:
            server.kill()
            server.wait()


def stalled(site: str, path: str, offered: str) -> socket.socket:
    """Open a WebSocket whose client never reads, and so answers no ping."""
    address = urlsplit(site)
    requests = [
        f"GET {path} HTTP/1.1",
        f"Host: {address.netloc}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Protocol: {offered}",
    ]
    client = socket.create_connection((address.hostname, address.port))
    client.sendall("\r\n".join([*requests, "", ""]).encode())
    return client


@pytest.mark.thorough
def test_a_watcher_survives_a_loss_of_redis(serve, redis_of_its_own, transactional_db):
    url, start_redis = redis_of_its_own
    server = start_redis()
    site = serve(*ALIVE, REDIS_URL=url)
    ada = make_watcher("ada")
    index = Index.objects.create(collection=make_collection(), name="words", encoder="keyword:a", owner=ada)
    operation = start_operation(Operation.Kind.INDEX, subject_id=index.pk, by=ada, batches=[({"number": 1}, 1)])
    offered = f"access_token.{issue_token(ada, name='watching')[1]}"
    path = f"/ws/operations/{operation.pk}"
    position = f"benchbench:sockets:{ada.pk}"
    with redis.Redis.from_url(url) as recognised, stalled(site, path, offered):
        until(lambda: recognised.zcard(position) == 1)
        until(lambda: recognised.zcard(position) == 0)  # anyone who answers no ping is let go
    watching = {"uri": f"{site.replace('http', 'ws')}{path}", "subprotocols": [offered], "proxy": None}
    with connect(**watching) as watcher:
        assert json.loads(watcher.recv(timeout=SECONDS))["type"] == "current_state"
        server.kill()
        server.wait()
        with pytest.raises(ConnectionClosedError) as lost:
            watcher.recv(timeout=SECONDS)
    assert lost.value.rcvd.code == 1011  # connect again
    requests = {"Authorization": f"Bearer {offered.partition('.')[2]}"}
    answer = httpx.get(f"{site}/api/v2/operations", headers=requests, timeout=SECONDS, trust_env=False)
    assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (503, "unavailable", "5")
    cancel_operation(operation)
    start_redis()
    with connect(**watching) as watcher:
        state = json.loads(watcher.recv(timeout=SECONDS))
    assert (state["data"]["status"], state["data"]["progress"]["status"]) == ("cancelled", "cancelled")


NOWHERE = "redis://127.0.0.1:1/0"


def test_page_reports_a_redis_outage_and_refreshes(db, settings):
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": NOWHERE}}
    boss = User.objects.create_superuser("boss")
    make_exported()
    client = Client(raise_request_exception=False)
    client.force_login(boss)

    looked_at = client.get(reverse("admin:benchmark_verdict", args=[Benchmark.objects.get().pk]))
    assert looked_at.status_code == 503
    assert (looked_at["Retry-After"], looked_at["Refresh"]) == ("5", "5")
    assert "PostgreSQL or Redis does not respond." in looked_at.content.decode()


def test_a_command_waits_for_redis(transactional_db, monkeypatch, caplog, settings):
    away = iter([True, True])

    def fit_workers(operation: Operation) -> set[str]:
        if next(away, False):
            raise redis.ConnectionError("Connection refused.")
        return set()

    monkeypatch.setattr(working, "fit_workers", fit_workers)
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = 0
    operation = resolve(make_mapping(make_dataset({"q": [({"document_id": "d"}, 1)]}), make_collection())).operation
    assert working.wait(operation).status == "completed"
    assert caplog.text.count("Redis does not answer: Connection refused. Waiting for it.") == 2


def test_a_command_that_waits_waits_for_postgresql_too(transactional_db, handler, monkeypatch, caplog):
    """It is stopped between two looks, away at the next two, and then there again."""
    operation = start_adding()
    at_work = [{"somebody"}]
    remote = connection.settings_dict["HOST"]

    def stop() -> None:
        personal = connection.connection.info.backend_pid
        elsewhere(lambda: connection.cursor().execute("SELECT pg_terminate_backend(%s)", [personal])).result(60)
        monkeypatch.setitem(connection.settings_dict, "HOST", "/nowhere")

    def start() -> None:
        monkeypatch.setitem(connection.settings_dict, "HOST", remote)
        at_work.clear()

    pauses = iter([stop, lambda: None, start])
    monkeypatch.setattr(working, "fit_workers", lambda _: at_work)
    monkeypatch.setattr(working.time, "sleep", lambda _: next(pauses)())
    assert working.wait(operation).status == "completed"
    answers = [record.getMessage() for record in caplog.records if "PostgreSQL does not answer" in record.getMessage()]
    assert len(answers) == 2
    assert "terminating connection" in answers[0]
    assert "/nowhere" in answers[1]


def test_a_command_in_a_transaction_does_not_wait(db, handler, monkeypatch):
    operation = start_adding()
    monkeypatch.setattr(working, "fit_workers", Mock(side_effect=[InterfaceError("the connection is closed")]))
    monkeypatch.setattr(working.time, "sleep", Mock(side_effect=AssertionError("It goes on.")))
    with pytest.raises(InterfaceError):
        working.wait(operation)
    operation.refresh_from_db()
