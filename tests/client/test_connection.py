"""What is sent again, what is not, and what is told of it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchbench.client import Client, ClientError
from benchbench.client.connection import ATTEMPTS
from tests.client.scripted import LOST, scripted

BUSY = (429, {"detail": "Too often.", "code": "throttled"}, {"Retry-After": "1"})
GATEWAY = (502, b"<html>Bad gateway</html>")
STARTED = (200, {"id": "b", "status": "running", "operation_uuid": "o", "message": "It runs."})


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchbench.client.connection.FIRST_PAUSE", 0.001)


@pytest.mark.parametrize("failure", [(LOST, b""), GATEWAY, BUSY])
def test_it_sends_what_carries_a_key_again_with_the_same_key(failure: Any) -> None:
    with scripted(failure, STARTED, STARTED) as site:
        client = Client(site.address)
        assert client.start("b")["operation_uuid"] == "o"
        client.start("b")
        first, again, other = site.keys()
    assert first is not None
    assert first == again != other


def test_it_sends_an_upload_again_whole(tmp_path: Path) -> None:
    file = tmp_path / "questions.json"
    file.write_text('{"queries": []}' * 10_000)
    with scripted((LOST, b""), (201, {"id": "d"})) as site:
        Client(site.address).upload(file, name="questions")
        bodies = [body for _, _, _, body in site.asked]
    assert len({len(body) for body in bodies}) == 1
    assert all(file.read_bytes() in body and b"questions.json" in body for body in bodies)


@pytest.mark.parametrize("failure", [(LOST, b""), GATEWAY])
def test_it_reads_again(failure: Any) -> None:
    with scripted(failure, (200, {"runs": []}), failure, (200, {"outcome": "passed"})) as site:
        client = Client(site.address)
        assert client.results("b")["runs"] == []
        assert client.gate("b", "floors: {mrr: 1}")["outcome"] == "passed"
        assert site.keys() == [None] * 4


@pytest.mark.parametrize(("failure", "told"), [((LOST, b""), "may be done or not"), (GATEWAY, "502")])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_it_does_not_send_what_may_have_been_done_again(method: str, failure: Any, told: str) -> None:
    with scripted(failure) as site:
        with pytest.raises(ClientError, match=told):
            Client(site.address).ask(method, "/collections")
        assert len(site.asked) == 1


def in_a_while() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("stated", [lambda: "100", in_a_while])
def test_it_waits_as_long_as_a_busy_site_asks(
    status: int, stated: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("benchbench.client.connection.time", SimpleNamespace(sleep=pauses.append))
    busy = (status, {"detail": "Too often.", "code": "throttled"}, {"Retry-After": stated()})
    with scripted(busy, STARTED) as site:
        assert Client(site.address).start("b")["status"] == "running"
    (pause,) = pauses
    assert 50 < pause <= 100  # a moment comes nearer while the machine is busy


@pytest.mark.parametrize("stated", ["soon", "-1", "²", "Wed, 21 Oct 2015 07:28:00"])
def test_it_waits_as_usual_where_a_site_asks_for_nothing_that_can_be_read(stated: str) -> None:
    with scripted((429, {}, {"Retry-After": stated.encode().decode("latin-1")}), (204, b"")) as site:
        assert Client(site.address).ask("DELETE", "/benchmarks/b") is None


def test_it_does_not_wait_for_hours() -> None:
    too_often = (429, {"detail": "Too often.", "code": "throttled"}, {"Retry-After": "3600"})
    with scripted(too_often) as site, pytest.raises(ClientError, match=r"Too often\.") as raised:
        Client(site.address).results("b")
    assert (raised.value.status, raised.value.code) == (429, "throttled")


def test_it_gives_up_in_the_end() -> None:
    with scripted(*[(LOST, b"")] * (ATTEMPTS + 1)) as site:
        with pytest.raises(ClientError) as raised:
            Client(site.address).results("b")
        assert len(site.asked) == ATTEMPTS
    assert (raised.value.status, raised.value.code) == (0, "unreachable")


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "bench.example.org", "ftp://bench", "http://[", "http://\0"])
def test_it_says_that_nothing_is_at_an_address(address: str) -> None:
    with pytest.raises(ClientError) as raised:
        Client(address).results("b")
    assert raised.value.code == "unreachable"
    assert "address" in raised.value.message


def test_it_tells_all_of_an_error() -> None:
    body = {"detail": "config_matrix.top_k is 0.", "code": "invalid", "errors": {"config_matrix.top_k": ["It is 0."]}}
    with scripted(
        (400, body), (500, {"detail": "The server failed.", "code": "server_error", "reference": "f00"})
    ) as site:
        with pytest.raises(ClientError) as refused:
            Client(site.address).create_benchmark("b", "m", {"top_k": 0})
        with pytest.raises(ClientError) as failed:
            Client(site.address).start("b")
    error = refused.value
    assert (error.status, error.code, str(error), error.errors) == (400, "invalid", body["detail"], body["errors"])
    assert (failed.value.reference, str(failed.value)) == ("f00", "The server failed. Reference: f00")


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"<html>Welcome</html>"),
        (404, b"<html>Not found</html>"),
        (404, {"message": "no route"}),
        (403, [1]),
        (301, b"", {"Location": "https://bench.example.org/", "Content-Length": "0"}),
    ],
)
def test_it_knows_a_stranger(answer: Any) -> None:
    with scripted(answer) as site, pytest.raises(ClientError, match=f"{answer[0]} .*is it the address") as raised:
        Client(site.address).results("b")
    assert (raised.value.code, raised.value.status) == ("not_benchbench", answer[0])


def test_a_redirect_gets_no_token() -> None:
    with scripted((200, {})) as elsewhere:
        redirect = (302, b"", {"Location": elsewhere.address, "Content-Length": "0"})
        with scripted(redirect) as site, pytest.raises(ClientError, match=elsewhere.address):
            Client(site.address, token="secret").results("b")
        assert elsewhere.asked == []


def test_address_and_token_are_stated_or_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted(*[(200, {})] * 4) as site:
        Client(site.address).results("b")
        monkeypatch.setenv("BENCHBENCH_URL", site.address)
        monkeypatch.setenv("BENCHBENCH_TOKEN", "of the environment")
        with Client(site.address + "/") as client:
            client.results("b")
        with Client(site.address + "/api/v2/") as client:
            client.results("b")
        Client(token="of a file\n").results("b")
        sent = [headers.get("authorization") for _, _, headers, _ in site.asked]
        assert {path for _, path, _, _ in site.asked} == {"/api/v2/benchmarks/b/results"}
    assert sent == [None, "Bearer of the environment", "Bearer of the environment", "Bearer of a file"]


def test_it_says_that_it_was_given_no_token() -> None:
    unknown = (401, {"detail": "Nobody is known to ask.", "code": "not_authenticated"})
    with scripted(unknown, unknown) as site:
        with pytest.raises(ClientError, match=r"^No token was given: give one, or set BENCHBENCH_TOKEN\. Nobody"):
            Client(site.address, token="").results("b")
        with pytest.raises(ClientError, match=r"^Nobody is known"):
            Client(site.address, token="bb_of_another_site").results("b")


def test_it_wants_an_address_and_a_token_that_can_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCHBENCH_URL", raising=False)
    with pytest.raises(ClientError, match="BENCHBENCH_URL"):
        Client()
    with pytest.raises(ClientError, match="copy it anew"):
        Client("https://bench.example.org", token="bb_…")
