"""Site killed while users watch: its successor sends them everything that happened meanwhile."""

import json
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from apps.accounts.tokens import issue_token
from tests.faults.kit import HANG_SECONDS, Scenario, hold, undisturbed
from tests.faults.work import KINDS
from tests.sockets import make_watcher

STATED_SECONDS = 5
PATIENT = {"BENCHBENCH_LEASE_SECONDS": 600, "BENCHBENCH_IDLE_TRANSACTION_SECONDS": 600}
WATCHED = [
    Scenario("benchmark", "benchmark: searched", "kill the site", settings=PATIENT),
    Scenario("index", "index: chunked", "kill the site", settings=PATIENT),
    Scenario("resolve", "resolve: decided", "kill the site", settings=PATIENT),
]


@pytest.mark.parametrize("scenario", WATCHED, ids=str)
def test_reconnecting_watcher_gets_the_correct_state(crew, scenario, serve, processes):
    kind = KINDS[scenario.kind]
    expected = undisturbed(kind)
    operation = kind.start()
    offered = f"access_token.{issue_token(make_watcher('ada', is_superuser=True), name='watching')[1]}"

    def watch() -> Any:
        site = serve().replace("http", "ws")
        return connect(f"{site}/ws/operations/{operation.pk}", subprotocols=[offered], proxy=None)

    with watch() as watcher:
        assert next_status(watcher) == "pending"
        worker = crew.start(scenario.point, "freeze", **scenario.settings)
        worker.wait_for_fault()
        processes[-1].kill()
        with pytest.raises(ConnectionClosedError):
            list(watcher)
    worker.wake()
    crew.slowest = crew.sees_the_end_of(operation)
    with watch() as watcher:
        assert next_status(watcher) == "completed"
    hold(kind, operation, expected)


def next_status(watcher: Any) -> Any:
    return json.loads(watcher.recv(timeout=HANG_SECONDS))["data"]["status"]
