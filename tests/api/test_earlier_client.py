"""A client of the earlier benchmark system, written from its two descriptions alone: plain httpx and websockets.

What they state it relies on, and asserts: addresses, statuses, the format of uploads, names of measures, events. What
they leave open it finds for itself: an id under any name, the rows of a list with an envelope or without. Only the
address of the sockets is from elsewhere, where those descriptions have it too.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from websockets.sync.client import connect

from apps.collections.models import Collection
from tests.client.site import ada, library, token  # noqa: F401 (fixtures)

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
        finished = answer.status_code in statuses if statuses else answer.is_success
        assert finished, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def upload(self, name: str, content: Any) -> str:
        """Return the id of the dataset that a file makes."""
        form = {"data": {"name": name}, "files": {"file": (f"{name}.json", json.dumps(content), "application/json")}}
        return id_of(self.ask("POST", "/benchmark-datasets", **form), "dataset")

    def pages(self, path: str, **query: Any) -> list[Any]:
        """Return all rows of a list: pages are asked for until one is not full."""
        rows: list[Any] = []
        for page in range(1, 100):
            answer = rows_of(self.ask("GET", path, params={"page": page, "per_page": PER_PAGE, **query}))
            rows += answer
            if len(answer) < PER_PAGE:
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
        """Return the runs of a benchmark as they were informed to be completed, and the last event."""
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


def id_of(message: dict[str, Any], noun: str) -> str:
    """Return the id of a thing, no matter what it is called."""
    hits = [str(message[name]) for name in ("id", "uuid", f"{noun}_id", f"{noun}_uuid") if message.get(name)]
    assert hits, message
    return hits[0]


def operation_of(message: dict[str, Any]) -> str:
    """Return the operation that an answer reports of: as resolving names it."""
    assert message.get("operation_uuid"), message
    return str(message["operation_uuid"])


def rows_of(message: Any) -> list[Any]:
    """Return the rows of a list: the answer itself, or the one list of objects in it."""
    if isinstance(message, list):
        return message
    lists = [value for value in message.values() if isinstance(value, list) and all(isinstance(x, dict) for x in value)]
    assert len(lists) == 1, message
    return lists[0]


def value_of(message: Any, name: str) -> Any:
    """Return a measure by its name (`precision@5`), flat or nested, at any depth an answer has it."""
    base, _, cutoff = name.partition("@")
    if isinstance(message, dict):
        if name in message:
            return message[name]
        if cutoff and isinstance(message.get(base), dict) and cutoff in message[base]:
            return message[base][cutoff]
        return next((result for inner in message.values() if (result := value_of(inner, name)) is not None), None)
    return None


def ranking_of(row: dict[str, Any]) -> list[str]:
    """Return the documents that a row of per-query results has: its one list of strings."""
    lists = [value for value in row.values() if isinstance(value, list) and all(isinstance(x, str) for x in value)]
    assert len(lists) == 1, row
    return lists[0]


def measured_by_hand(rankings: dict[str, list[str]], judged: dict[str, dict[str, int]], k: int) -> dict[str, float]:
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


DATASETS = "/benchmark-datasets"
DATASET = {
    "schema_version": "1.0",
    "metadata": {"source": "manual"},
    "queries": [
        {
            "query_key": "q1",
            "query_text": "apple",
            "metadata": {"topic": "security", "category": 7, "filters": None},
            "relevant_docs": [
                {"doc_ref": {"document_id": "d1", "uri": None}, "relevance_grade": 3},
                {"doc_ref": {"uri": "file:///abs/path/doc.md"}, "relevance_grade": 3},
            ],
        },
        {
            "query_id": "q2",
            "query": "pear",
            "metadata": None,
            "relevant_doc_refs": [{"doc_ref": {"document_id": "d3"}}],
        },
        {"query_key": "q3", "query_text": "plum", "relevant_docs": [{"doc_ref": "file:///nowhere.md"}]},
    ],
}
JUDGED = {"q1": {"d1": 3, "doc.md": 3}, "q2": {"d3": 2}, "q3": {"nowhere.md": 2}}
SMALL = {"queries": DATASET["queries"][1:]}
MATRIX = {
    "primary_k": 10,
    "k_values_for_metrics": [5, 10, 20],
    "top_k_values": [100, 200],
    "search_modes": ["dense", "hybrid"],
    "use_reranker": [False, True],
    "rrf_k_values": [40, 60, 80],
    "score_thresholds": [None, 0.5],
}


@pytest.mark.thorough
def test_it_does_its_whole_job(serve: Any, manage: Any, ada: User, token: str, library: Collection) -> None:  # noqa: F811
    client = EarlierClient(serve(BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS="2"), token)
    collection = str(library.pk)
    small = client.upload("small", SMALL)
    stop(client, map_and_resolve(client, small, collection, 200))
    manage("manage.py", "worker")
    dataset = client.upload("first", DATASET)
    path = f"{DATASETS}/{dataset}"
    assert id_of(client.ask("GET", path, 200), "dataset") == dataset
    assert {id_of(row, "dataset") for row in client.pages(DATASETS)} == {small, dataset}
    mapping = map_and_resolve(client, dataset, collection, 202)
    assert [id_of(row, "mapping") for row in rows_of(client.ask("GET", f"{path}/mappings", 200))] == [mapping]
    benchmark = measure(client, mapping)
    look(client, benchmark)
    client.ask("DELETE", f"/benchmarks/{benchmark}")
    client.ask("GET", f"/benchmarks/{benchmark}", 404)
    client.ask("DELETE", path)  # and all its mappings
    client.ask("GET", path, 404)
    client.ask("GET", f"{path}/mappings/{mapping}", 404)
    assert [id_of(row, "dataset") for row in client.pages(DATASETS)] == [small]


def map_and_resolve(client: EarlierClient, dataset: str, collection: str, status: int) -> str:
    """Map and resolve, synchronously (200) or watching the queue (202); return the mapping."""
    path = f"{DATASETS}/{dataset}/mappings"
    mapping = id_of(client.ask("POST", path, json={"collection_id": collection}), "mapping")
    resolved = client.ask("POST", f"{path}/{mapping}/resolve", status)
    if status == 202:
        *_, end = client.watch(operation_of(resolved), "benchmark_mapping_resolution_progress")
        assert (end["mapping_id"], end["dataset_id"], end["collection_id"]) == (mapping, dataset, collection)
        assert (end["stage"], end["total_refs"], end["processed_refs"]) == ("completed", 4, 4)
        assert (end["resolved_refs"], end["ambiguous_refs"], end["unresolved_refs"]) == (2, 0, 2)
    assert "partial" in client.ask("GET", f"{path}/{mapping}", 200).values()
    return mapping


def make(client: EarlierClient, name: str, mapping: str) -> str:
    """Return a benchmark of three rrf_k values, among others."""
    requests = {"name": name, "mapping_id": mapping, "config_matrix": MATRIX}
    return id_of(client.ask("POST", "/benchmarks", json=requests), "benchmark")


def stop(client: EarlierClient, mapping: str) -> None:
    """Start a benchmark that no one works on yet and cancel it: a late watcher is informed so, and of no run."""
    path = f"/benchmarks/{make(client, 'stopped', mapping)}"
    operation = operation_of(client.ask("POST", f"{path}/start"))
    client.ask("POST", f"{path}/cancel")
    runs, end = client.count_runs(operation)
    assert (runs, end["stage"], end["status"]) == ([], "completed", "cancelled")
    client.ask("DELETE", path)


def measure(client: EarlierClient, mapping: str) -> str:
    """Make a benchmark, start it, and count its runs: as they come, and once more after the end."""
    benchmark = make(client, "which", mapping)
    path = f"/benchmarks/{benchmark}"
    assert client.pages("/benchmarks", status_filter="running") == []
    operation = operation_of(client.ask("POST", f"{path}/start"))
    runs, end = client.count_runs(operation)
    assert (end["stage"], end["status"], end["benchmark_id"]) == ("completed", "completed", benchmark)
    assert (end["primary_k"], end["k_values_for_metrics"], end["failed_runs"]) == (10, [5, 10, 20], 0)
    assert len(runs) == end["total_runs"] == end["completed_runs"]
    for run in runs:
        assert set(run["metrics_flat"]) >= {"mrr", "ap", "precision@10", "recall@5", "ndcg@20"}
        assert value_of({"ndcg": run["metrics"]["ndcg"]}, "ndcg@20") == run["metrics_flat"]["ndcg@20"]
    assert client.count_runs(operation) == (runs, end)
    assert client.ask("GET", path, 200)["status"] == "completed"
    assert [id_of(row, "benchmark") for row in client.pages("/benchmarks", status_filter="completed")] == [benchmark]
    return benchmark


def look(client: EarlierClient, benchmark: str) -> None:
    """Hold the means of every run against its rankings, by the formulas of the description."""
    path = f"/benchmarks/{benchmark}"
    runs = rows_of(client.ask("GET", f"{path}/results", 200))
    assert {run["config"]["rrf_k"] for run in runs if run["config"]["search_mode"] == "hybrid"} == {40, 60, 80}
    for run in runs:
        rows = client.pages(f"{path}/runs/{id_of(run, 'run')}/queries")
        rankings = {key: ranking_of(row) for row in rows for key in JUDGED if key in row.values()}
        assert set(rankings) == set(JUDGED)
        for name, mean in measured_by_hand(rankings, JUDGED, 5).items():
            assert value_of(run, name) == pytest.approx(mean), (run["config"], name)
    assert max(value_of(run, "recall@5") for run in runs) == pytest.approx(0.5)
