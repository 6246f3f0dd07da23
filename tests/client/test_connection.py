"""What is sent again, what is not, and what is informed of it."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from benchbench.client import Client, ClientError
from benchbench.client.connection import ATTEMPTS
from tests.client.scripted import LOST, scripted

BUSY = (429, {"detail": "Too often.", "code": "throttled"}, {"Retry-After": "1"})
GATEWAY = (502, b"<html>Bad gateway</html>")
STARTED = (200, {"id": "b", "status": "running", "operation_uuid": "o", "message": "It runs."})


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr("benchbench.client.connection.FIRST_PAUSE", 0.001)


@pytest.mark.parametrize("failure", [(LOST, b""), GATEWAY, BUSY])
def test_idempotent_requests_are_retried_with_the_same_key(failure):
    with scripted(failure, STARTED, STARTED) as site:
        client = Client(site.address)
        assert client.start("b")["operation_uuid"] == "o"
        client.start("b")
        first, again, second = site.keys()
    assert first is not None
    assert first == again != second


def test_it_sends_an_upload_again_whole(tmp_path):
    file = tmp_path / "questions.json"
    file.write_text('{"queries": []}' * 10_000)
    with scripted((LOST, b""), (201, {"id": "d"})) as site:
        Client(site.address).upload(file, name="questions")
        bodies = [body for _, _, _, body in site.asked]
    assert len({len(body) for body in bodies}) == 1
    assert all(file.read_bytes() in body and b"questions.json" in body for body in bodies)


@pytest.mark.parametrize("failure", [(LOST, b""), GATEWAY])
def test_it_reads_again(failure):
    with scripted(failure, (200, {"runs": []}), failure, (200, {"outcome": "passed"})) as site:
        client = Client(site.address)
        assert client.results("b")["runs"] == []
        assert client.gate("b", "floors: {mrr: 1}")["outcome"] == "passed"
        assert site.keys() == [None] * 4


@pytest.mark.parametrize(("failure", "message"), [((LOST, b""), "may have been carried out or not"), (GATEWAY, "502")])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_requests_that_may_have_succeeded_are_not_retried(method, failure, message):
    with scripted(failure) as site:
        with pytest.raises(ClientError, match=message):
            Client(site.address).ask(method, "/collections")
        assert len(site.asked) == 1


def in_a_while():
    return format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("declared", [lambda: "100", in_a_while])
def test_it_waits_as_long_as_a_busy_site_asks(status, declared, monkeypatch):
    pauses = []
    monkeypatch.setattr("benchbench.client.connection.time", SimpleNamespace(sleep=pauses.append))
    busy = (status, {"detail": "Too often.", "code": "throttled"}, {"Retry-After": declared()})
    with scripted(busy, STARTED) as site:
        assert Client(site.address).start("b")["status"] == "running"
    (pause,) = pauses
    assert 50 < pause <= 100  # a moment comes nearer while the machine is busy


@pytest.mark.parametrize("declared", ["soon", "-1", "²", "Wed, 21 Oct 2015 07:28:00"])
def test_unreadable_retry_after_uses_the_default_wait(declared):
    with scripted((429, {}, {"Retry-After": declared.encode().decode("latin-1")}), (204, b"")) as site:
        assert Client(site.address).ask("DELETE", "/benchmarks/b") is None


def test_it_gives_up_after_hours_or_attempts():
    too_often = (429, {"detail": "Too often.", "code": "throttled"}, {"Retry-After": "3600"})
    with scripted(too_often) as site, pytest.raises(ClientError, match=r"Too often\.") as raised:
        Client(site.address).results("b")
    assert (raised.value.status, raised.value.code) == (429, "throttled")
    with scripted(*[(LOST, b"")] * (ATTEMPTS + 1)) as site:
        with pytest.raises(ClientError) as raised:
            Client(site.address).results("b")
        assert len(site.asked) == ATTEMPTS
    assert (raised.value.status, raised.value.code) == (0, "unreachable")


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "bench.example.org", "ftp://bench", "http://[", "http://\0"])
def test_it_says_that_nothing_is_at_an_address(address):
    with pytest.raises(ClientError) as raised:
        Client(address).results("b")
    assert raised.value.code == "unreachable"
    assert "address" in raised.value.message


def test_client_error_holds_all_error_details():
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
def test_it_knows_a_stranger(answer):
    with scripted(answer) as site, pytest.raises(ClientError, match=f"{answer[0]} .*Give the address") as raised:
        Client(site.address).results("b")
    assert (raised.value.code, raised.value.status) == ("not_benchbench", answer[0])


def test_a_redirect_gets_no_token():
    with scripted((200, {})) as elsewhere:
        redirect = (302, b"", {"Location": elsewhere.address, "Content-Length": "0"})
        with scripted(redirect) as site, pytest.raises(ClientError, match=elsewhere.address):
            Client(site.address, token="secret").results("b")
        assert elsewhere.asked == []


def test_address_and_token_are_stated_or_of_the_environment(monkeypatch):
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


def test_it_says_that_it_was_given_no_token():
    unknown = (401, {"detail": "Nobody is known to ask.", "code": "not_authenticated"})
    with scripted(unknown, unknown) as site:
        with pytest.raises(ClientError, match=r"^No token was given: give one, or set BENCHBENCH_TOKEN\. Nobody"):
            Client(site.address, token="").results("b")
        with pytest.raises(ClientError, match=r"^Nobody is known"):
            Client(site.address, token="bb_of_another_site").results("b")


def test_client_requires_an_address_and_a_valid_token(monkeypatch):
    monkeypatch.delenv("BENCHBENCH_URL", raising=False)
    with pytest.raises(ClientError, match="BENCHBENCH_URL"):
        Client()
    with pytest.raises(ClientError, match="copy it again"):
        Client("https://bench.example.org", token="bb_…")


INDEX = {"total_documents": 200, "processed_documents": 0}
BENCHMARK = {"total_runs": 4, "completed_runs": 0, "failed_runs": 0}


def state_of(kind, status, stage="", error=None, **progress):
    messages = {"status": status, "stage": stage or status, "queue_position": None, "waiting_for": None, **progress}
    return 200, {"operation_id": "o", "kind": kind, "status": status, "error": error, "progress": messages}


def test_it_says_each_thing_once():
    messages = []
    with scripted(
        state_of("benchmark", "pending", "starting", **BENCHMARK, queue_position=2, percent=0),
        state_of("benchmark", "pending", "starting", **BENCHMARK, waiting_for="A host is taken.", percent=0),
        state_of("benchmark", "running", "evaluating", **BENCHMARK, percent=41.2),
        state_of("benchmark", "running", "evaluating", **BENCHMARK, percent=41.3),
        state_of("benchmark", "completed", **BENCHMARK | {"completed_runs": 3, "failed_runs": 1}, percent=100),
    ) as site:
        ended = Client(site.address).wait({"operation_uuid": "o"}, progress=messages.append, every=0.01)
        assert {path for _, path, _, _ in site.asked} == {"/api/v2/operations/o"}
    assert ended["status"] == "completed"
    assert messages == [
        "benchmark: starting, number 3 in the queue, 0 %, 0 of 4 runs",
        "benchmark: starting, A host is taken., 0 %, 0 of 4 runs",
        "benchmark: evaluating, 41 %, 0 of 4 runs",
        "benchmark: completed, 4 of 4 runs (1 failed)",
    ]


@pytest.mark.parametrize(
    ("kind", "progress", "sentence"),
    [
        ("index", INDEX | {"processed_documents": 50}, "index: running, 25 %"),
        ("index", INDEX | {"total_documents": 0}, "index: running"),
        ("resolve", {"total_refs": 8, "processed_refs": 4}, "resolve: running, 50 %"),
        ("llm_judging", {"total_answers": 8, "answers": 2}, "llm_judging: running, 25 %"),
        ("measure", {"total_rankings": 8, "measured_rankings": 2}, "measure: running, 25 %"),
    ],
)
def test_wait_reports_progress_of_each_kind(kind, progress, sentence):
    messages = []
    with scripted(state_of(kind, "running", **progress), state_of(kind, "completed", **progress)) as site:
        Client(site.address).wait("o", progress=messages.append, every=0.01)
    assert messages == [sentence, f"{kind}: completed"]


@pytest.mark.parametrize(
    ("status", "error", "code", "message"),
    [
        ("failed", "The model is not here.", "operation_failed", "failed: The model is not here."),
        ("cancelled", None, "operation_cancelled", "was cancelled"),
        ("running", None, "timeout", "It is still running after 0 s. index: running, 0 %"),
    ],
)
def test_waiting_for_an_incomplete_operation_raises(status, error, code, message):
    with scripted(state_of("index", status, error=error, **INDEX)) as site, pytest.raises(ClientError) as raised:
        Client(site.address).wait("o", timeout=0)
    assert (raised.value.code, message in str(raised.value)) == (code, True)


def test_waiting_for_an_unstarted_operation_raises():
    with pytest.raises(ClientError, match="start it first"):
        Client("http://127.0.0.1:9").wait({"id": "b", "operation_uuid": None})


def test_it_reads_a_list_to_its_end():
    pages = [(200, {"things": list(rows), "total": 5, "page": 1, "per_page": 2}) for rows in ("ab", "cd", "e")]
    with scripted(*pages) as site:
        assert "".join(Client(site.address).rows("/things", kind="k")) == "abcde"
        requests = [path for _, path, _, _ in site.asked]
    assert requests == [f"/api/v2/things?kind=k&page={page}&per_page=100" for page in (1, 2, 3)]


@pytest.mark.parametrize(("names", "code"), [(["other"], "not_found"), (["library", "library"], "ambiguous")])
def test_missing_or_ambiguous_collection_names_raise(names, code):
    rows = [{"id": str(number), "name": name} for number, name in enumerate(names)]
    page = (200, {"collections": rows, "total": len(rows), "page": 1, "per_page": 100})
    with scripted(page) as site, pytest.raises(ClientError, match="named 'library'") as raised:
        Client(site.address).find_collection("library")
    assert raised.value.code == code


CHECKED_IN = Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"
SCHEMA = yaml.load(CHECKED_IN.read_text(encoding="utf-8"), yaml.CSafeLoader)


def test_a_model_judges_at_the_addresses_of_the_schema():
    answers = [(200, {}), (202, {}), (201, {"size": 30}), (200, {"judges": []}), (200, {})]
    with scripted(*answers) as site:
        client = Client(site.address)
        client.llm_cost("r", "ollama:llama3", item_limit=5)
        client.judge_by_llm("r", "ollama:llama3")
        client.draw_calibration_sample("r", 30)
        assert client.llm_judges("r") == []
        client.verdicts("r", llm="ollama:llama3")
        requests = [(method, path.partition("?")[0]) for method, path, _, _ in site.asked]
        bodies = [json.loads(content) for _, _, _, content in site.asked if content]
        keyed = ["idempotency-key" in headers for _, _, headers, _ in site.asked]
    for method, path in requests:
        assert method.lower() in SCHEMA["paths"][path.replace("/r/", "/{round_id}/")]
    assert bodies == [
        {"llm": "ollama:llama3", "item_limit": 5},
        {"llm": "ollama:llama3", "item_limit": None},
        {"size": 30},
    ]
    assert keyed == [False, True, True, False, False]
