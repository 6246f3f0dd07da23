"""The published figures on SciFact (5,183 abstracts, 300 claims), through the commands that a user would type."""

import pytest

from tests.commands import json_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.thorough]


def test_dense_and_lexical_search_reach_the_published_figures(shared_data):
    folder = shared_data / "scifact"
    told = json_of("import_beir", str(folder), "--name", "scifact", "--vectors", str(folder / "minilm.npz"))
    assert (told["collection"]["documents"], told["dataset"]["queries"]) == (5183, 300)
    assert (told["mapping"]["status"], told["mapping"]["mapped"]) == ("resolved", 339)
    vectors = told["index"]["vectors"]
    assert (vectors["documents"], vectors["queries"], vectors["missing_queries"]) == (5183, 300, 0)
    report = json_of("run_benchmark", "scifact", "--modes", "dense,sparse", "--k", "10,100", "--wait")
    dense, lexical = (run["metrics_flat"] for run in report["runs"])
    assert [run["status"] for run in report["runs"]] == ["completed", "completed"]
    assert dense["ndcg@10"] == pytest.approx(0.6451, abs=0.0005)
    assert dense["recall@100"] == pytest.approx(0.925, abs=0.0005)
    assert lexical["ndcg@10"] == pytest.approx(0.687, abs=0.01)
    assert lexical["recall@100"] == pytest.approx(0.913, abs=0.001)
    assert {run["failed_queries"] for run in report["runs"]} == {0}
    warning = "The times exclude encoding the queries: their vectors were imported."
    assert [run["warnings"] for run in report["runs"]] == [[warning], []]
