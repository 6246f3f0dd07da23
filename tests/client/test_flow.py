"""From an upload to deleting, and a round of judging, by the client on a live site."""

import pytest

from benchbench.client import Client, ClientError
from tests.client.fruit import JUDGED
from tests.judging.rounds import make_compared

pytestmark = pytest.mark.thorough

MATRIX = {"search_modes": ["dense"], "score_thresholds": [None, 0.9], "k_values_for_metrics": [2, 5], "primary_k": 5}


def test_the_whole_job_is_done_by_the_client(site, token, manage, library, questions_file):
    manage("manage.py", "worker")
    with Client(site, token=token) as client:
        dataset = client.upload(questions_file, name="fruits", description="Three.")
        mapping = client.resolve(client.map(dataset, client.find_collection("library")))
        assert (mapping["mapping_status"], mapping["mapped_count"], mapping["total_count"]) == ("partial", 7, 8)
        assert client.map(dataset, library.pk)["id"] == mapping["id"]
        benchmark = client.create_benchmark("which", mapping, MATRIX, metrics=["map@5"])
        messages = []
        ended = client.wait(client.start(benchmark), progress=messages.append, timeout=180)
        assert (ended["status"], messages[-1]) == ("completed", "benchmark: completed, 2 of 2 runs")
        assert refused(lambda: client.start(benchmark)) == 409
        results = client.results(benchmark)
        assert_measured(client, benchmark, results)
        judged = client.gate(benchmark, {"floors": {"recall@5": 0.8}}, run=1)
        assert (judged["outcome"], judged["markdown"][:14]) == ("passed", "## Gate passed")
        assert client.gate(benchmark, "floors:\n  recall@5: 0.8\n", run=2)["outcome"] == "failed"
        assert refused(lambda: client.gate(benchmark, {"floor": {}})) == 400
        assert client.export(benchmark, "csv").startswith(b"run_id,")
        assert client.export(benchmark, "trec-run", run=results["runs"][1]["id"]).count(b"\n") == 3
        path = f"/benchmark-datasets/{dataset['id']}"
        assert refused(lambda: client.ask("DELETE", path)) == 409
        for removed in (f"/benchmarks/{benchmark['id']}", path):
            assert client.ask("DELETE", removed) is None
            assert refused(lambda deleted=removed: client.ask("GET", deleted)) == 404


def refused(act):
    """Return the status with which the site refuses an act."""
    with pytest.raises(ClientError) as raised:
        act()
    return raised.value.status


def test_client_opens_judges_and_closes_a_round(ada, token, site):
    runs = [str(run.pk) for run in make_compared().runs.order_by("run_order")]
    with Client(site, token=token) as client:
        opened = client.open_round("fruit", runs, order="queries", measure="AP@4", judges=["ada"])
        assert (opened["order"], opened["run_ids"], opened["judges"]) == ("queries", runs, ["ada"])
        assert (opened["item_count"], opened["uniform_share"]) == (10, 0.1)
        handed = client.next_items(opened, count=4)
        assert handed["offers_items"]
        assert len({item["query_key"] for item in handed["items"]}) in (1, 2)
        ids = [item["item_id"] for item in handed["items"]]
        messages = [{"item_id": item, "grade": 2, "note": "Ripe."} for item in ids[:3]]
        for _ in range(2):  # as where the answer was lost
            supplied = client.grade(opened, [*messages, {"item_id": ids[3], "kind": "cannot_judge"}])
            assert [(row["item_id"], row["grade"], row["note"]) for row in supplied] == [
                *((item, 2, "Ripe.") for item in ids[:3]),
                (ids[3], None, ""),
            ]
        back = client.undo(opened, count=2)
        assert sorted(item["item_id"] for item in back["items"]) == sorted(ids[2:])
        assert {item["item_id"] for item in client.next_items(opened, count=2)["items"]} == set(ids[2:])
        state = client.round_state(opened)
        assert (state["completed_gradings"], state["total_gradings"], state["is_open"]) == (2, 10, True)
        assert [(judge["judge"], judge["graded"]) for judge in state["judges"]] == [("ada", 2)]
        closed = client.close_round(opened, label="ripe")
        assert (closed["version"], closed["judgments"], closed["judged"]) == (2, 2, 0)
        assert not client.round_state(opened)["is_open"]
        with pytest.raises(ClientError) as refused:
            client.grade(opened, messages)
        assert (refused.value.status, refused.value.code) == (409, "round_state")


def assert_measured(client, benchmark, results):
    """Every fruit is found first; above the threshold is nothing else. One relevant document is not there."""
    complete, cut = results["runs"]
    assert [run["config"]["score_threshold"] for run in (complete, cut)] == [None, 0.9]
    assert complete["metrics_flat"]["mrr"] == cut["metrics_flat"]["mrr"] == 1
    assert complete["metrics_flat"]["recall@5"] == pytest.approx((1 + 1 + 2 / 3) / 3)
    assert cut["metrics_flat"]["recall@5"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 3) / 3)
    assert complete["metrics_flat"]["ndcg@5"] == pytest.approx(0.920834, abs=1e-6)
    assert complete["metrics"]["ndcg"]["5"] == complete["metrics_flat"]["ndcg@5"]
    hits = {query["query_key"]: query["retrieved_doc_ids"] for query in client.queries(benchmark, cut)}
    assert set(hits) == set(JUDGED)
    assert {len(ids) for ids in hits.values()} == {1}
