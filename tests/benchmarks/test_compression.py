"""Benchmarks of compressed vectors, really searched: recall, loss and bytes against exact search."""

import pytest

from apps.records.models import Evaluation
from apps.results.ladders.compression import list_ladders
from tests.benchmarks.approximated import rankings_of, run_matrix
from tests.library import make_library

SIGNS, SIGNS_RESCORED = "compressed(precision=binary, rescore=0)", "compressed(precision=binary, rescore=5000)"
SAME, HALF = "compressed(precision=float32, rescore=0)", "compressed(precision=float16)"


@pytest.mark.django_db(transaction=True)
def test_compressed_runs_are_measured_against_exact_search():
    library = make_library(documents=120, queries=40, filtered=True)
    benchmark = run_matrix(library, search_modes=["dense"], ann=["exact", SIGNS, SIGNS_RESCORED, SAME, HALF])
    runs = {run.config.get("ann", "exact"): run for run in benchmark.runs.all()}
    means = {ann: Evaluation.objects.get(run=run).means["nDCG@10"] for ann, run in runs.items()}
    rankings = rankings_of(benchmark)
    facts = {ann: run.provenance["ann"] for ann, run in runs.items() if ann != "exact"}
    for ann in (SAME, SIGNS_RESCORED, HALF):
        assert rankings[ann] == rankings["exact"]
        assert [share["worst"] for share in facts[ann]["recall"]] == [1, 1]
        assert facts[ann]["ndcg"]["cost"] == 0
    assert facts[SIGNS]["recall"][0]["mean"] < 1
    assert facts[SIGNS]["ndcg"]["cost"] == pytest.approx(means["exact"] - means[SIGNS])
    assert facts[SIGNS]["ndcg"]["cost"] > 0
    assert facts[SIGNS]["index"] == facts[SIGNS_RESCORED]["index"] == "memory_compressed_0_binary"
    assert facts[SIGNS]["bytes"] < facts[HALF]["bytes"] < facts[SAME]["bytes"]
    (ladder,) = list_ladders(benchmark)
    pairs = {row.run.config.get("ann"): row.pair for row in ladder.rows}
    assert pairs[SIGNS].difference == pytest.approx(-facts[SIGNS]["ndcg"]["cost"])
    assert "setting that is not significantly worse than exact is" in ladder.sentences[0]
