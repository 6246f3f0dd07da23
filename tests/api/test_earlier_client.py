"""A client of the earlier system keeps working: it does its whole job on a live site, knowing nothing else."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.collections.models import Collection
from tests.api.earlier import EarlierClient, id_of, measured, operation_of, ranking_of, rows_of, value_of
from tests.client.conftest import ada, library, make_staff, token  # noqa: F401 (fixtures)

pytestmark = pytest.mark.thorough

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


def test_it_does_its_whole_job(serve: Any, manage: Any, ada: User, token: str, library: Collection) -> None:  # noqa: F811
    """The site leaves a resolution of more than two references to its queue."""
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
    asked = {"name": name, "mapping_id": mapping, "config_matrix": MATRIX}
    return id_of(client.ask("POST", "/benchmarks", json=asked), "benchmark")


def stop(client: EarlierClient, mapping: str) -> None:
    """Start a benchmark that nobody works on yet and cancel it: a late watcher is told so, and of no run."""
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
        for name, mean in measured(rankings, JUDGED, 5).items():
            assert value_of(run, name) == pytest.approx(mean), (run["config"], name)
    assert max(value_of(run, "recall@5") for run in runs) == pytest.approx(0.5)
