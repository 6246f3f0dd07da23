"""A client of the earlier benchmark system, written from its two descriptions alone: plain httpx and websockets.

What they state it relies on, and asserts: addresses, statuses, the format of uploads, names of measures, events. What
they leave open it finds for itself: an id under whatever name, the rows of a list with an envelope or without. Only the
address of the sockets is from elsewhere, where those descriptions have it too.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
from websockets.sync.client import connect

SECONDS = 180
PER_PAGE = 50
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
STATUSES = ("pending", "running", "completed", "failed", "cancelled")
# The core fields of each event, and its stages; the last of them end it.
EVENTS = {
    "benchmark_progress": (
        "operation_id collection_id benchmark_id status total_runs completed_runs failed_runs primary_k "
        "k_values_for_metrics stage",
        ("starting", "indexing", "evaluating", "completed"),
    ),
    "benchmark_mapping_resolution_progress": (
        "operation_id collection_id mapping_id dataset_id stage total_refs processed_refs resolved_refs ambiguous_refs "
        "unresolved_refs",
        ("starting", "loading_documents", "resolving", "finalizing", "completed", "failed"),
    ),
}
OVER = ("completed", "failed")
CURRENT_RUN = {"run_id", "run_order", "config", "total_queries", "completed_queries", "stage"}
LAST_COMPLETED_RUN = {"status", "metrics", "metrics_flat", "timing"}


@dataclass
class EarlierClient:
    """Asks the site at `address` (http://…) with a bearer token."""

    address: str
    token: str

    def ask(self, method: str, path: str, *statuses: int, **content: Any) -> Any:
        """Return the JSON of an answer of one of these statuses, by default any that says that it was done."""
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.address}/api/v2{path}"
        answer = httpx.request(method, url, headers=headers, timeout=SECONDS, trust_env=False, **content)
        done = answer.status_code in statuses if statuses else answer.is_success
        assert done, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def upload(self, name: str, content: Any) -> str:
        """Return the id of the dataset that a file makes."""
        form = {"data": {"name": name}, "files": {"file": (f"{name}.json", json.dumps(content), "application/json")}}
        return id_of(self.ask("POST", "/benchmark-datasets", **form), "dataset")

    def pages(self, path: str, **query: Any) -> list[Any]:
        """Return all rows of a list: pages are asked for until one is not full."""
        rows: list[Any] = []
        for page in range(1, 100):
            told = rows_of(self.ask("GET", path, params={"page": page, "per_page": PER_PAGE, **query}))
            rows += told
            if len(told) < PER_PAGE:
                break
        return rows

    def watch(self, operation: str, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the data of the events of an operation, to the one whose stage says that it is over."""
        fields, stages = EVENTS[kind]
        address = re.sub("^http", "ws", self.address) + f"/ws/operations/{operation}"
        with connect(address, subprotocols=[f"access_token.{self.token}"], proxy=None, open_timeout=SECONDS) as socket:
            while True:
                message = json.loads(socket.recv(timeout=SECONDS))
                assert TIMESTAMP.fullmatch(message["timestamp"])
                if message["type"] != kind:
                    continue
                data = message["data"]
                assert set(fields.split()) <= set(data)
                assert data["operation_id"] == operation
                assert data["stage"] in stages
                yield data
                if data["stage"] in OVER:
                    return

    def count_runs(self, operation: str) -> tuple[list[Any], Any]:
        """Return the runs of a benchmark as they were told to be completed, and the last event."""
        runs = []
        for data in self.watch(operation, "benchmark_progress"):
            assert data["status"] in STATUSES
            if current := data.get("current_run"):
                assert set(current) >= CURRENT_RUN
            if run := data.get("last_completed_run"):
                assert set(run) >= LAST_COMPLETED_RUN
                assert run["status"] == "completed" or run["error_message"]
                runs.append(run)
        return runs, data


def id_of(told: dict[str, Any], noun: str) -> str:
    """Return the id of a thing, whatever it is called."""
    found = [str(told[name]) for name in ("id", "uuid", f"{noun}_id", f"{noun}_uuid") if told.get(name)]
    assert found, told
    return found[0]


def operation_of(told: dict[str, Any]) -> str:
    """Return the operation that an answer tells of: as resolving names it."""
    assert told.get("operation_uuid"), told
    return str(told["operation_uuid"])


def rows_of(told: Any) -> list[Any]:
    """Return the rows of a list: the answer itself, or the one list of objects in it."""
    if isinstance(told, list):
        return told
    lists = [value for value in told.values() if isinstance(value, list) and all(isinstance(x, dict) for x in value)]
    assert len(lists) == 1, told
    return lists[0]


def value_of(told: Any, name: str) -> Any:
    """Return a measure by its name (`precision@5`), flat or nested, at whatever depth an answer has it."""
    base, _, cutoff = name.partition("@")
    if isinstance(told, dict):
        if name in told:
            return told[name]
        if cutoff and isinstance(told.get(base), dict) and cutoff in told[base]:
            return told[base][cutoff]
        return next((found for inner in told.values() if (found := value_of(inner, name)) is not None), None)
    return None


def ranking_of(row: dict[str, Any]) -> list[str]:
    """Return the documents that a row of per-query results has: its one list of strings."""
    lists = [value for value in row.values() if isinstance(value, list) and all(isinstance(x, str) for x in value)]
    assert len(lists) == 1, row
    return lists[0]


def measured(rankings: dict[str, list[str]], judged: dict[str, dict[str, int]], k: int) -> dict[str, float]:
    """Return the means of the measures as the description defines them; a grade above 0 is relevant."""
    values: dict[str, list[float]] = {f"precision@{k}": [], f"recall@{k}": [], "mrr": []}
    for key, grades in judged.items():
        relevant = {document for document, grade in grades.items() if grade > 0}
        hits = [rank for rank, document in enumerate(rankings[key], 1) if document in relevant]
        at_k = sum(rank <= k for rank in hits)
        values[f"precision@{k}"].append(at_k / k)
        values[f"recall@{k}"].append(at_k / len(relevant) if relevant else 0.0)
        values["mrr"].append(1 / hits[0] if hits else 0.0)
    return {name: sum(each) / len(each) for name, each in values.items()}
