"""From signing in to deleting, by the API of a live site alone, watched over a WebSocket."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User

from benchbench.client import Client, ClientError
from tests.client.conftest import ENCODER, JUDGED, PASSWORD, documents
from tests.judging.rounds import make_compared
from tests.operations.streamed import Watcher, is_end

pytestmark = pytest.mark.thorough

MATRIX = {
    "search_modes": ["dense"],
    "score_thresholds": [None, 0.9],
    "k_values_for_metrics": [2, 5],
    "primary_k": 5,
}


def test_the_whole_job_is_done_by_the_api_alone(ada: User, site: str, manage: Any, questions_file: Path) -> None:
    manage("manage.py", "worker")
    access = sign_in(site)
    with Client(site, token=access) as client:
        collection, index = make_searchable(client)
        dataset = client.upload(questions_file, name="fruits", description="Three.")
        mapping = client.resolve(client.map(dataset, client.find_collection("library")))
        assert (mapping["mapping_status"], mapping["mapped_count"], mapping["total_count"]) == ("partial", 7, 8)
        assert client.map(dataset, collection)["id"] == mapping["id"]
        benchmark = client.create_benchmark("which", mapping, MATRIX, metrics=["map@5"])
        watch(client, benchmark, site, access)
        results = client.results(benchmark)
        assert_measured(client, benchmark, results)
        assert_judged(client, dataset, benchmark, results)
        with pytest.raises(ClientError) as refused:
            client.ask("DELETE", f"/benchmark-datasets/{dataset['id']}")
        assert refused.value.status == 409
        for path in (
            f"/benchmarks/{benchmark['id']}",
            f"/benchmark-datasets/{dataset['id']}/mappings/{mapping['id']}",
            f"/benchmark-datasets/{dataset['id']}",
            f"/indexes/{index['id']}",
            f"/collections/{collection['id']}",
        ):
            assert client.ask("DELETE", path) is None
            with pytest.raises(ClientError) as gone:
                client.ask("GET", path)
            assert gone.value.status == 404


def test_a_round_is_opened_judged_and_closed_by_the_client(ada: User, token: str, site: str) -> None:
    runs = [str(run.pk) for run in make_compared().runs.order_by("run_order")]
    with Client(site, token=token) as client:
        opened = client.open_round("fruit", runs, order="queries", measure="AP@4", judges=["ada"])
        assert (opened["order"], opened["run_ids"], opened["judges"]) == ("queries", runs, ["ada"])
        assert (opened["item_count"], opened["uniform_share"]) == (10, 0.1)
        handed = client.next_items(opened, count=4)
        assert handed["hands_out"]
        assert len({item["query_key"] for item in handed["items"]}) in (1, 2)
        ids = [item["item_id"] for item in handed["items"]]
        said = [{"item_id": item, "grade": 2, "note": "Ripe."} for item in ids[:3]]
        for _ in range(2):  # as where the answer was lost
            given = client.grade(opened, [*said, {"item_id": ids[3], "kind": "cant_tell"}])
            assert [(row["item_id"], row["grade"], row["note"]) for row in given] == [
                *((item, 2, "Ripe.") for item in ids[:3]),
                (ids[3], None, ""),
            ]
        back = client.undo(opened, count=2)
        assert sorted(item["item_id"] for item in back["items"]) == sorted(ids[2:])
        assert {item["item_id"] for item in client.next_items(opened, count=2)["items"]} == set(ids[2:])
        state = client.round_state(opened)
        assert (state["done"], state["wanted"], state["is_open"]) == (2, 10, True)
        assert [(judge["judge"], judge["graded"]) for judge in state["judges"]] == [("ada", 2)]
        closed = client.close_round(opened, label="ripe")
        assert (closed["version"], closed["judgments"], closed["judged"]) == (2, 2, 0)
        assert not client.round_state(opened)["is_open"]
        with pytest.raises(ClientError) as refused:
            client.grade(opened, said)
        assert (refused.value.status, refused.value.code) == (409, "round_state")


def sign_in(site: str) -> str:
    with httpx.Client(base_url=f"{site}/api/v2", trust_env=False, timeout=180) as http:
        answer = http.post("/auth/token", json={"username": "ada", "password": PASSWORD})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access"])


def make_searchable(client: Client) -> tuple[Any, Any]:
    """Return a collection of documents and an index of it that a worker has built."""
    collection = client.ask("POST", "/collections", once=True, json={"name": "library"})
    path = f"/collections/{collection['id']}"
    filled = client.ask("POST", f"{path}/documents", once=True, json={"documents": documents()})
    assert filled["created"] == 5
    index = client.ask("POST", f"{path}/indexes", once=True, json={"name": "fruits", "encoder": ENCODER})
    said: list[str] = []
    client.wait(client.ask("POST", f"/indexes/{index['id']}/build", once=True), progress=said.append)
    assert said[-1] == "index: completed"
    assert client.ask("GET", f"/indexes/{index['id']}")["stats"]["num_documents"] == 5
    return collection, index


def watch(client: Client, benchmark: dict[str, Any], site: str, access: str) -> None:
    """Start a benchmark, and be told of its end by polling and by a WebSocket."""
    socket = {"subprotocols": [f"access_token.{access}"]}
    address = f"{site.replace('http', 'ws')}/ws/operations"
    watcher = Watcher(address, lambda message: message["type"] != "current_state" and is_end(message), **socket)
    said: list[str] = []
    started = client.start(benchmark)
    ended = client.wait(started, progress=said.append, timeout=180)
    assert (ended["status"], said[-1]) == ("completed", "benchmark: completed, 2 of 2 runs")
    last = watcher.told()[-1]["data"]
    assert (last["operation_id"], last["status"]) == (started["operation_uuid"], "completed")
    with pytest.raises(ClientError) as refused:
        client.start(benchmark)
    assert refused.value.status == 409


def assert_measured(client: Client, benchmark: dict[str, Any], results: dict[str, Any]) -> None:
    """Every fruit is found first; above the threshold stands nothing else. One relevant document is not there."""
    whole, cut = results["runs"]
    assert [run["config"]["score_threshold"] for run in (whole, cut)] == [None, 0.9]
    assert whole["metrics_flat"]["mrr"] == cut["metrics_flat"]["mrr"] == 1
    assert whole["metrics_flat"]["recall@5"] == pytest.approx((1 + 1 + 2 / 3) / 3)
    assert cut["metrics_flat"]["recall@5"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 3) / 3)
    assert whole["metrics_flat"]["ndcg@5"] == pytest.approx(0.920834, abs=1e-6)
    assert whole["metrics"]["ndcg"]["5"] == whole["metrics_flat"]["ndcg@5"]
    found = {query["query_key"]: query["retrieved_doc_ids"] for query in client.queries(benchmark, cut)}
    assert set(found) == set(JUDGED)
    assert {len(ids) for ids in found.values()} == {1}


def assert_judged(client: Client, dataset: dict[str, Any], benchmark: dict[str, Any], results: dict[str, Any]) -> None:
    """Compare the two runs, make the better one the baseline, hold both against rules, and take files along."""
    whole, cut = (run["id"] for run in results["runs"])
    compared = client.ask("GET", "/comparison", params={"run": [whole, cut], "baseline": whole, "measure": "recall@5"})
    (difference,) = compared["differences"]
    assert (difference["run"], difference["losses"], difference["wins"]) == (cut, 3, 0)
    baselines = f"/benchmark-datasets/{dataset['id']}/baselines"
    approved = {"run_id": whole, "name": "main", "reason": "It finds all that is there."}
    baseline = client.ask("POST", baselines, once=True, json=approved)
    rules = {"floors": {"recall@5": 0.8}}
    judged = client.gate(benchmark, rules, run=1)
    assert (judged["outcome"], judged["markdown"][:14]) == ("passed", "## Gate passed")
    assert client.gate(benchmark, "floors:\n  recall@5: 0.8\n", baseline="main", run=2)["outcome"] == "failed"
    with pytest.raises(ClientError) as refused:
        client.gate(benchmark, {"floor": {}})
    assert refused.value.status == 400
    assert client.export(benchmark, "csv").startswith(b"run_id,")
    assert client.export(benchmark, "trec-run", run=cut).count(b"\n") == 3
    client.ask("POST", f"{baselines}/{baseline['id']}/retire", once=True)
    client.ask("DELETE", f"{baselines}/{baseline['id']}")
