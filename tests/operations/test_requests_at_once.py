"""Requests beyond the limit of a web process wait in turn; a probe never waits, nor uses the pool of connections."""

import asyncio
import json
import threading
from typing import Any

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg_pool import PoolTimeout

from benchbench.database import probing
from benchbench.database.probing import Probe
from benchbench.site.requests_at_once import RequestLimit


class Site:
    """An application that notes how many of its requests are in progress, each until `end` is set."""

    def __init__(self) -> None:
        self.now = self.most = self.answered = 0
        self.end = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        self.now += 1
        self.most = max(self.most, self.now)
        await self.end.wait()
        self.now -= 1
        self.answered += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


def ask(limit: RequestLimit, path: str = "/admin/", *, leaves: bool = False) -> "asyncio.Task[list[Any]]":
    """Send a request; the task returns the messages of its answer."""
    sent: list[Any] = []
    left = asyncio.Event()

    async def receive() -> Any:
        if not left.is_set():
            left.set()
            return {"type": "http.request", "body": b"", "more_body": False}
        if not leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    async def complete() -> list[Any]:
        await limit({"type": "http", "path": path, "method": "GET"}, receive, send)
        return sent

    return asyncio.create_task(complete())


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_requests_beyond_the_limit_wait_in_turn():
    site = Site()
    limit = RequestLimit(site, 3)
    requests = [ask(limit) for _ in range(20)]
    await settle()
    assert site.now == 3
    site.end.set()
    answers = await asyncio.gather(*requests)
    assert {answer[0]["status"] for answer in answers} == {200}
    assert (site.most, site.answered) == (3, 20)


@pytest.mark.asyncio
@pytest.mark.parametrize("address", ["/admin/", "/api/v2/datasets"])
async def test_long_wait_ends_with_a_sentence_of_its_own(address):
    site = Site()
    limit = RequestLimit(site, 1, wait_seconds=0.01)
    first, second = ask(limit), ask(limit, address)
    start, body = await second
    headers = dict(start["headers"])
    assert (start["status"], headers[b"retry-after"]) == (503, b"5")
    text = body["body"].decode()
    assert "as many requests as it can" in text
    assert "PostgreSQL" not in text
    if address.startswith("/api/"):
        assert json.loads(text)["code"] == "busy"
    else:
        assert headers[b"refresh"] == b"5"
    site.end.set()
    assert (await first)[0]["status"] == 200


@pytest.mark.asyncio
@pytest.mark.parametrize("address", ["/healthz", "/readyz"])
async def test_probes_do_not_wait(address):
    site = Site()
    limit = RequestLimit(site, 1, wait_seconds=0.01)
    requests = [ask(limit), ask(limit, address)]
    await settle()
    assert site.now == 2
    site.end.set()
    assert {answer[0]["status"] for answer in await asyncio.gather(*requests)} == {200}


@pytest.mark.asyncio
async def test_slot_of_a_client_that_left_stays_taken():
    """The thread of its request goes on; daphne cancels the application a while later."""
    site = Site()
    limit = RequestLimit(site, 1)
    left = ask(limit, leaves=True)
    await settle()
    left.cancel()
    waiting = ask(limit)
    await settle()
    assert site.now == 1
    site.end.set()
    assert (await waiting)[0]["status"] == 200
    assert site.most == 1


@pytest.mark.asyncio
async def test_waiting_request_that_is_cancelled_takes_no_slot():
    site = Site()
    limit = RequestLimit(site, 1)
    first, second, third = ask(limit), ask(limit), ask(limit)
    await settle()
    second.cancel()
    site.end.set()
    assert (await first)[0]["status"] == (await third)[0]["status"] == 200
    assert site.answered == 2


@pytest.mark.django_db(transaction=True)
def test_probe_answers_while_the_pool_is_used_up(monkeypatch):
    def used_up() -> None:
        raise PoolTimeout

    monkeypatch.setattr(connection, "connect", used_up)
    assert Probe().ask() == (True, True)


@pytest.mark.django_db(transaction=True)
def test_probe_sees_that_a_migration_is_missing(monkeypatch):
    monkeypatch.setattr(probing, "FRESH_SECONDS", 0.0)
    probe = Probe()
    assert probe.ask() == (True, True)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE name = '0010_orderings' RETURNING app, name, applied")
        (row,) = cursor.fetchall()
    try:
        assert probe.ask() == (True, False)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, %s)", row)
    assert probe.ask() == (True, True)


@pytest.mark.django_db(transaction=True)
def test_many_probes_share_a_connection(monkeypatch):
    requests = []
    probe, copy = Probe(), BaseDatabaseWrapper.copy
    monkeypatch.setattr(BaseDatabaseWrapper, "copy", lambda self: requests.append(1) or copy(self))
    threads = [threading.Thread(target=probe.ask) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(requests) == 1
    monkeypatch.setattr(probing, "FRESH_SECONDS", 0.0)
    probe.ask()
    assert len(requests) == 2


def test_limit_leaves_connections_of_the_pool_to_sockets():
    from benchbench import asgi

    assert asgi.count_requests_at_once(20) == 18
    assert asgi.count_requests_at_once(1) == 1
    assert asgi.count_requests_at_once(0) == 0
