"""The event stream of a live site: daphne, a worker at real work, and clients that are not part of it."""

import itertools
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from apps.accounts.tokens import open_sign_in
from apps.operations.launching import cancel_operation, start_operation
from apps.operations.models import Operation
from tests.library import make_library
from tests.operations.documented import PAGE, example_of, fields_of, misfits, values_in
from tests.operations.streamed import Watcher, is_end, make_operations
from tests.sockets import cookie_of, make_watcher

pytestmark = pytest.mark.thorough

STAGES = {
    "index_progress": ["starting", "chunking", "encoding", "storing", "finalizing"],
    "benchmark_mapping_resolution_progress": ["starting", "loading_documents", "resolving", "finalizing"],
    "benchmark_progress": ["starting", "indexing", "evaluating"],
    "llm_judging_progress": ["starting", "judging"],
    "measuring_progress": ["starting", "measuring"],
}
LAST = {  # where it is not the status
    ("benchmark_progress", "failed"): "completed",
    ("benchmark_progress", "cancelled"): "completed",
    ("benchmark_mapping_resolution_progress", "cancelled"): "failed",
}


@pytest.fixture
def ada(transactional_db: None) -> User:
    return make_watcher("ada")


@pytest.mark.long
def test_every_event_is_as_documented(ada, site, manage, settings, server):
    server.answer = lambda prompt: 400 if "to be failed" in prompt else "1"
    library = make_library(documents=30, queries=12)
    settings.BENCHBENCH_BATCH_SECONDS = 0.001
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = 0
    settings.BENCHBENCH_MEASURE_AT_ONCE = -1
    address = f"{site.replace('http', 'ws')}/ws/operations"
    page = {"additional_headers": {"Cookie": cookie_of(ada)}, "origin": site}
    offered = f"access_token.{open_sign_in(ada).access_token}"
    program = {"subprotocols": [offered]}
    operations = make_operations(library, ada)
    left = {str(operation.pk) for operation in operations.values()}

    def nothing_is_left(message: Any) -> bool:
        if is_end(message):
            left.discard(message["data"]["operation_id"])
        return not left

    every = Watcher(address, nothing_is_left, **page)
    slashes = itertools.cycle(("", "/"))
    late: list[tuple[Any, Any]] = []

    def is_end_and_somebody_came_late(message: Any) -> bool:
        if not late and message["data"].get("stage") == "evaluating" and message["data"]["runs"][0]["n"]:
            late.append(
                (message, Watcher(f"{address}/{message['data']['operation_id']}", bool, **program).read_all()[0])
            )
        return is_end(message)

    watchers = {
        key: Watcher(f"{address}/{operation.pk}{next(slashes)}", is_end_and_somebody_came_late, **credentials)
        for (key, operation), credentials in zip(operations.items(), itertools.cycle((page, program)), strict=False)
    }
    assert {watcher.subprotocol for watcher in watchers.values()} == {None, offered}
    assert every.messages[0]["data"]["total"] == len(operations)
    for (_, end), operation in operations.items():
        if end == "cancelled":
            cancel_operation(operation)
    printing = ThreadPoolExecutor().submit(sample, site, operations["benchmark_progress", "completed"], program)
    text = ",".join(settings.BENCHBENCH_LLM_SERVERS)
    manage("manage.py", "worker", BENCHBENCH_EVENT_INTERVAL_MS="0", BENCHBENCH_LLM_SERVERS=text)
    answers = {key: watcher.read_all() for key, watcher in watchers.items()}
    ends = [message["data"]["operation_id"] for message in every.read_all() if is_end(message)]
    assert len(ends) == len(set(ends)) == len(operations)
    assert {watcher.code for watcher in (every, *watchers.values())} == {None}
    for (event, end), messages in answers.items():
        assert_stages_are_told(messages, event, end)
    assert_runs_are_told(answers["benchmark_progress", "completed"])
    printed = printing.result()
    assert [line[0] for line in printed] == [*range(1, 6), "completed"]
    assert "freeze its draft" in answers["benchmark_mapping_resolution_progress", "failed"][-1]["data"]["error"]
    assert "could not be loaded" in answers["index_progress", "failed"][-1]["data"]["error"]
    assert "answered 400" in answers["llm_judging_progress", "failed"][-1]["data"]["error"]
    assert_documented([message for messages in answers.values() for message in messages])
    ((seen, state),) = late
    assert state["data"]["progress"]["runs"][0]["completed_queries"] >= seen["data"]["runs"][0]["completed_queries"]
    for key, operation in operations.items():
        state, *after = Watcher(f"{address}/{operation.pk}", is_end, **program).read_all()
        assert_whole(state, after, [message["data"] for message in answers[key][1:]])
    assert sample(site, operations["benchmark_progress", "completed"], program) == printed


def sample(site: str, operation: Operation, program: dict[str, Any]) -> list[Any]:
    """Run the program of docs/events.md as it is there, on this site; return what it prints."""
    text = PAGE.partition("    import json\n")[2].partition("\n\n## ")[0]
    code = textwrap.dedent("    import json\n" + text).replace("wss://bench.example.org", site.replace("http", "ws"))
    printed: list[Any] = []
    token = program["subprotocols"][0].removeprefix("access_token.")
    exec(code, {"operation": operation.pk, "token": token, "print": lambda *message: printed.append(message)})
    return printed


def assert_whole(state: Any, after: list[Any], events: list[Any]) -> None:
    """Who comes after the end is informed it, then each run once and in order, and then the end as it was informed."""
    assert (state["type"], state["data"]["finished_at"] is None) == ("current_state", False)
    assert state["data"]["progress"] == after[-1]["data"] == events[-1]
    assert runs_in([message["data"] for message in after]) == runs_in(events)
    assert len(after) == len(runs_in(events)) + 1


def runs_in(events: list[Any]) -> list[Any]:
    return [event["last_completed_run"] for event in events if event.get("last_completed_run")]


def assert_stages_are_told(answer: list[Any], event: str, end: str) -> None:
    """The state first, and then events of one kind, through its stages in their order to the end."""
    first, *messages = answer
    assert first["type"] == "current_state"
    assert {message["type"] for message in messages} == {event}
    stages = [first["data"]["progress"]["stage"], *(message["data"]["stage"] for message in messages)]
    last = LAST.get((event, end), end)
    assert list(dict.fromkeys(stages)) == [stage for stage in [*STAGES[event], last] if stage in stages]
    assert (stages[0], stages[-1], messages[-1]["data"]["status"]) == ("starting", last, end)
    assert {message["data"]["status"] for message in messages[:-1]} <= {"pending", "running"}


def assert_runs_are_told(messages: list[Any]) -> None:
    """Provisional means on the way, and then each run once, in its order, with its final ones, before the end."""
    progress = [message["data"] for message in messages[1:]]
    assert any(data["current_run"] and data["runs"][0]["metrics_flat"] for data in progress)
    finished = [data["runs"][0]["completed_queries"] for data in progress]
    assert finished == sorted(finished)
    announcing = [data for data in progress if data["last_completed_run"]]
    assert {data["stage"] for data in announcing} == {"evaluating"}
    assert progress[-1]["last_completed_run"] is None
    assert [[one["run_id"] for one in data["runs"]] for data in announcing] == [
        [data["last_completed_run"]["run_id"]] for data in announcing
    ]
    every = list(range(1, progress[0]["total_runs"] + 1))
    assert [data["last_completed_run"]["run_order"] for data in announcing] == every
    assert [data["completed_runs"] for data in announcing] == every
    for run, so_far in zip(runs_in(progress), progress[-1]["runs"], strict=True):
        assert run["metrics_flat"] == pytest.approx(so_far["metrics_flat"])


def assert_documented(messages: list[Any]) -> None:
    """Every message is as docs/events.md says, and what that says is sent; so are its examples."""
    assert [hit for message in messages for hit in misfits(message)] == []
    for kind in ("current_state", *STAGES):
        sent = [name for message in messages if message["type"] == kind for name, _ in values_of(message)]
        assert set(sent) == set(fields_of(kind)), kind
        assert misfits(example_of(kind)) == []
        assert example_of(kind)["type"] == kind


def values_of(message: Any) -> Iterator[tuple[str, Any]]:
    return values_in(message["data"], fields_of(message["type"]))


def test_unauthorized_sockets_are_closed_with_a_code(ada, site, handler):
    operation = start_operation(Operation.Kind.RESOLVE, subject_id=uuid4(), by=ada, batches=[({"number": 1}, 1)])
    address = f"{site.replace('http', 'ws')}/ws/operations/{operation.pk}"
    bob = {"Cookie": cookie_of(make_watcher("bob"))}
    expired = open_sign_in(ada).access_token
    expired.set_exp(lifetime=timedelta(seconds=-1))
    cases: list[tuple[dict[str, Any], str, int]] = [
        ({"additional_headers": bob, "origin": site}, "not_found", 1008),
        ({"origin": site}, "not_authenticated", 1008),
        ({"additional_headers": {"Cookie": cookie_of(ada)}, "origin": "https://evil.example"}, "origin", 4003),
        ({"subprotocols": [f"access_token.{expired}"]}, "not_authenticated", 1008),
    ]
    for options, reason, code in cases:
        watcher = Watcher(address, lambda message: False, **options)
        assert [message["data"]["code"] for message in watcher.read_all()] == [reason]
        assert watcher.code == code
