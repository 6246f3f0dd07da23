"""An existing client of the earlier API keeps working: it does its whole job on a live site, knowing nothing else."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.collections.models import Collection
from tests.api.earlier import METRICS, EarlierClient, faults
from tests.client.conftest import ada, library, make_staff, token  # noqa: F401 (fixtures)

DATASETS = "/benchmark-datasets"
DATASET = {
    "schema_version": "1.0",
    "metadata": {"source": "manual"},
    "queries": [
        {
            "query_key": "q1",
            "query_text": "apple",
            "metadata": {"topic": "security"},
            "relevant_docs": [
                {"doc_ref": {"document_id": "d1"}, "relevance_grade": 3},
                {"doc_ref": {"uri": "file:///gone.md"}},
            ],
        },
        {"query_id": "q2", "query": "pear", "relevant_doc_refs": [{"doc_ref": {"document_id": "d3"}}]},
        {"query_key": "q3", "query_text": "plum", "relevant_docs": ["file:///nowhere.md"]},
    ],
}
MATRIX = {
    "primary_k": 10,
    "k_values_for_metrics": [5, 10, 20],
    "top_k_values": [100, 200],
    "search_modes": ["dense", "hybrid"],
    "use_reranker": [False, True],
    "rrf_k_values": [60],
    "score_thresholds": [None, 0.5],
}


def test_it_does_its_whole_job(serve: Any, manage: Any, ada: User, token: str, library: Collection) -> None:  # noqa: F811
    """The site leaves a resolution of more than two references to its queue."""
    Collection.objects.update(name="docs")
    client = EarlierClient(serve(BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS="2"), token)
    stop(client, resolve_at_once(client, library))
    manage("manage.py", "worker", BENCHBENCH_BATCH_SECONDS="5")
    dataset = upload(client, "first", DATASET)
    assert (dataset["name"], dataset["description"], dataset["query_count"]) == ("first", "By hand.", 3)
    assert (dataset["owner_id"], dataset["schema_version"]) == (ada.pk, "1.0")
    path = f"{DATASETS}/{dataset['id']}"
    assert client.ask("GET", path, "dataset").items() <= dataset.items()
    assert client.pages(DATASETS, "datasets", "dataset")[0]["id"] == dataset["id"]
    mapping = resolve_on_the_queue(client, path, library)
    benchmark = measure(client, mapping)
    look(client, benchmark)
    client.ask("DELETE", path, status=409)
    client.ask("DELETE", f"/benchmarks/{benchmark['id']}", status=204)
    client.ask("DELETE", path, status=204)  # and all its mappings
    client.ask("GET", f"{path}/mappings/{mapping['id']}", status=404)
    assert len(client.pages(DATASETS, "datasets", "dataset")) == 1


def upload(client: EarlierClient, name: str, content: Any) -> Any:
    form = {"data": {"name": name, "description": "By hand."}, "files": {"file": ("d.json", json.dumps(content))}}
    return client.ask("POST", DATASETS, "dataset", status=201, **form)


def resolve_at_once(client: EarlierClient, library: Collection) -> Any:  # noqa: F811
    path = f"{DATASETS}/{upload(client, 'small', DATASET | {'queries': DATASET['queries'][1:]})['id']}/mappings"
    mapping = client.ask("POST", path, "mapping", status=201, json={"collection_id": str(library.pk)})
    resolved = client.ask("POST", f"{path}/{mapping['id']}/resolve", "resolution", json={})
    assert (resolved["operation_uuid"], len(resolved["unresolved"])) == (None, 1)
    assert "nowhere.md" in resolved["unresolved"][0]["reason"]
    return mapping


def stop(client: EarlierClient, mapping: Any) -> None:
    """Start a benchmark that nobody works on yet, cancel it, and be told so although the watcher is late."""
    asked = {"name": "stopped", "mapping_id": mapping["id"], "config_matrix": MATRIX}
    path = f"/benchmarks/{client.ask('POST', '/benchmarks', 'benchmark', status=201, json=asked)['id']}"
    started = client.ask("POST", f"{path}/start", "start")
    assert client.ask("POST", f"{path}/cancel", "benchmark")["status"] == "cancelled"
    (told,) = client.watch(started["operation_uuid"])
    assert (told["type"], told["data"]["progress"]["stage"]) == ("current_state", "cancelled")


def resolve_on_the_queue(client: EarlierClient, path: str, library: Collection) -> Any:  # noqa: F811
    asked = {"json": {"collection_id": str(library.pk)}}
    mapping = client.ask("POST", f"{path}/mappings", "mapping", status=201, **asked)
    assert (mapping["mapping_status"], mapping["resolved_at"]) == ("pending", None)
    client.ask("POST", f"{path}/mappings", status=409, **asked)
    one = f"{path}/mappings/{mapping['id']}"
    queued = client.ask("POST", f"{one}/resolve", "resolution", status=202)
    for message in client.watch(queued["operation_uuid"]):
        told = message["data"] if message["type"] != "current_state" else message["data"]["progress"]
        assert faults("benchmark_mapping_resolution_progress", told) == []
    assert (told["stage"], told["total_refs"], told["resolved_refs"], told["unresolved_refs"]) == ("completed", 4, 2, 2)
    mapping = client.ask("GET", one, "mapping")
    assert (mapping["mapping_status"], mapping["mapped_count"], mapping["total_count"]) == ("partial", 2, 4)
    assert client.pages(f"{path}/mappings", "mappings", "mapping") == [mapping]
    return mapping


def measure(client: EarlierClient, mapping: Any) -> Any:
    """Make a benchmark of sixteen runs, start it, and be told of its end."""
    asked = {"name": "which", "description": None, "mapping_id": mapping["id"], "config_matrix": MATRIX, "top_k": 100}
    asked["metrics_to_compute"] = ["precision", "recall", "mrr", "ndcg", "ap"]
    benchmark = client.ask("POST", "/benchmarks", "benchmark", status=201, json=asked)
    assert (benchmark["status"], benchmark["total_runs"], benchmark["operation_uuid"]) == ("pending", 16, None)
    assert client.pages("/benchmarks", "benchmarks", "benchmark", status_filter="running") == []
    path = f"/benchmarks/{benchmark['id']}"
    started = client.ask("POST", f"{path}/start", "start")
    client.ask("POST", f"{path}/start", status=409)
    for message in client.watch(started["operation_uuid"]):
        told = message["data"] if message["type"] != "current_state" else message["data"]["progress"]
        assert faults("benchmark_progress", told) == []
        for name in ("current_run", "last_completed_run"):
            assert told[name] is None or faults(name, told[name]) == []
    assert (told["stage"], told["status"], told["completed_runs"]) == ("completed", "completed", 16)
    benchmark = client.ask("GET", path, "benchmark")
    assert client.pages("/benchmarks", "benchmarks", "benchmark", status_filter="completed") == [benchmark]
    assert (benchmark["operation_uuid"], benchmark["completed_runs"]) == (started["operation_uuid"], 16)
    return benchmark


def look(client: EarlierClient, benchmark: Any) -> None:
    """Read the results, nested and flat, and what the first run answered."""
    path = f"/benchmarks/{benchmark['id']}"
    results = client.ask("GET", f"{path}/results", "results")
    assert (results["primary_k"], results["k_values_for_metrics"], results["total_runs"]) == (10, [5, 10, 20], 16)
    for run in results["runs"]:
        assert faults("run", run) + faults("timing", run["timing"]) == []
        assert set(METRICS.split()) <= set(run["metrics"])
        for name in ("precision", "recall", "ndcg"):
            assert run["metrics"][name] == {k: run["metrics_flat"][f"{name}@{k}"] for k in ("5", "10", "20")}
        assert {run["metrics_flat"][name] == run["metrics"][name] for name in ("mrr", "ap")} == {True}
        assert {"search_mode", "use_reranker", "top_k", "rrf_k", "score_threshold"} <= set(run["config"])
        assert (run["status"], len(run["config_hash"])) == ("completed", 16)
    assert [run["run_order"] for run in results["runs"]] == list(range(1, 17))
    assert faults("summary", results["summary"]) == []
    assert results["summary"]["best_run"] in [run["id"] for run in results["runs"]]
    first = results["runs"][0]
    assert first["metrics_flat"]["mrr"] == pytest.approx(2 / 3)
    answers = f"{path}/runs/{first['id']}/queries"
    client.ask("GET", answers, "queries", params={"page": 1, "per_page": 50})
    rows = {row["query_key"]: row for row in client.pages(answers, "results", "query")}
    assert (set(rows), rows["q1"]["query_text"]) == ({"q1", "q2", "q3"}, "apple")
    assert rows["q1"]["retrieved_doc_ids"][0] == "d1"
    assert (rows["q2"]["reciprocal_rank"], rows["q2"]["precision_at_k"], rows["q3"]["ndcg_at_k"]) == (1, 0.1, 0)
