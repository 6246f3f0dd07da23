"""The published figures on SciFact (5,183 abstracts, 300 claims), through the commands that a user would type."""

import numpy as np
import pytest

from apps.collections.models import Document
from apps.records.models import Run
from tests.commands import json_of
from tests.retrieval.independent import as_stored, find_swaps, read_vectors, score

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.thorough]


def test_dense_and_lexical_search_reach_the_published_figures(shared_data):
    folder = shared_data / "scifact"
    answer = json_of("import_beir", str(folder), "--name", "scifact", "--vectors", str(folder / "minilm.npz"))
    assert (answer["collection"]["documents"], answer["dataset"]["queries"]) == (5183, 300)
    assert (answer["mapping"]["status"], answer["mapping"]["mapped"]) == ("resolved", 339)
    vectors = answer["index"]["vectors"]
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
    _check_rankings(Run.objects.get(pk=report["runs"][0]["id"]), folder / "minilm.npz")


def _check_rankings(run, path):
    """Each ranking is that of plain NumPy over the file's vectors, rounded to float32 once; or not, within 2e-7."""
    vectors = read_vectors(path)
    rows = {key: row for row, key in enumerate(vectors.documents)}
    row_of = {pk: rows[key] for pk, key in Document.objects.values_list("pk", "external_id")}
    results = {result.query.key: result for result in run.query_results.select_related("query")}
    actual = np.array([[row_of[pk] for pk in results[key].document_ids] for key in vectors.queries])
    assert actual.shape == (300, 100)
    pair = vectors.document_vectors, vectors.query_vectors
    assert list(find_swaps(actual, score(*map(as_stored, pair)))) == []
    assert list(find_swaps(actual, score(*pair, precision="float64"), band=2e-7)) == []
