import io
import json
import re

import pytest
from django.core.management import CommandError, call_command

from apps.benchmarks.defining.previewing import preview
from apps.benchmarks.launching import launch
from apps.benchmarks.models import Benchmark
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.results.exporters.documents import text_of
from apps.retrieval.models import CachedVector
from benchbench.ir.planning.matrix import MatrixError
from tests.created import create_benchmark

MATRIX = {"search_modes": ["dense", "sparse", "hybrid"], "rrf_k_values": [20, 60], "score_thresholds": [None, 0.5]}


def test_it_counts_the_distinct_work_and_creates_nothing(library: Mapping) -> None:
    planned = preview(library, MATRIX)
    assert (len(planned.labels), planned.queries) == (8, 12)
    assert planned.distinct == {"encode": 12, "dense": 12, "lexical": 12, "fuse": 24, "rerank_pairs_at_most": 0}
    assert planned.estimate_seconds > 0
    assert planned.resident_bytes == sum(index.stats["bytes"] for index in library.collection.indexes.all()) > 0
    assert (planned.indexes, planned.builds) == (["keywords"], [])
    stats = library.collection.indexes.get().stats
    cut = preview(library, MATRIX | {"dimensions": [None, 2, 1]})
    assert cut.resident_bytes == planned.resident_bytes + 4 * (2 + 1) * stats["num_vectors"]
    assert not Benchmark.objects.exists()


def test_its_estimate_is_made_of_costs_measured_here_once_there_are_any(library: Mapping) -> None:
    rough = preview(library, {"search_modes": ["dense"]}).estimate_seconds
    wait(launch(create_benchmark(library, name="b", matrix={"search_modes": ["dense"]})))
    CachedVector.objects.update(encode_ms=1000)
    measured = preview(library, {"search_modes": ["dense"]}).estimate_seconds
    assert rough < 1
    assert 12 < measured < 13


def test_it_raises_what_creating_would(library: Mapping) -> None:
    with pytest.raises(MatrixError, match="indexes"):
        preview(library, {"indexes": ["other"]})


def test_the_command_prints_it(library: Mapping) -> None:
    out = io.StringIO()
    call_command("run_benchmark", "library", "--modes", "dense,hybrid", "--dry-run", "--json", stdout=out)
    facts = json.loads(out.getvalue())
    assert facts["runs"] == 2
    assert facts["queries"] == 12
    assert facts["distinct"] == {"encode": 12, "dense": 12, "lexical": 12, "fuse": 12, "rerank_pairs_at_most": 0}
    assert facts["estimate_seconds"] > 0
    out = io.StringIO()
    call_command("run_benchmark", "library", "--dry-run", stdout=out)
    assert "3 runs over 12 queries" in out.getvalue()
    said = r"About [\d.]+ s with one worker, and [\d.]+\sKB of its memory for the index keywords"
    assert re.search(said, out.getvalue())


def test_it_names_what_is_built_on_top_of_the_estimate(library: Mapping) -> None:
    matrix = {
        "search_modes": ["dense", "sparse"],
        "ann": ["hnsw(ef_search=100)", "hnsw(ef_search=200)", "ivfflat(lists=4)"],
        "lexical": ["fts"],
    }
    hnsw, ivfflat, words = preview(library, matrix).builds
    assert hnsw == "hnsw (m=16, ef_construction=64, storage=vector) over 30 vectors of keywords"
    assert ivfflat == "ivfflat (lists=4, storage=vector) over 30 vectors of keywords"
    assert words == "full text of 30 chunks of keywords"
    wait(launch(create_benchmark(library, name="b", matrix=matrix)))
    assert preview(library, matrix).builds == []


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["--top-k", "5"], "--top-k: 5 is less than the greatest k to measure at, 20"),
        (["--k", "0"], "--k: 0 is not a whole number"),
        (["--rrf-k", "60,60"], "--rrf-k: 60 is there more than once"),
        (["--thresholds", "7"], "--thresholds: 7.0 is not a number from 0 to 1"),
        (
            ["--top-k", "20", "--rerank", "on", "--rerank-depth", "30"],
            "--rerank-depth: 30 is more than the 20",
        ),
        (["--indexes", "other"], "--indexes: 'library' has no ready index"),
        (["--top-k", "20", "--k", "5,50"], "--top-k: 20 is less than"),
    ],
)
def test_the_command_names_the_options_that_were_typed(library: Mapping, typed: list[str], said: str) -> None:
    for how in (["--dry-run"], []):
        with pytest.raises(CommandError) as caught:
            call_command("run_benchmark", "library", *typed, *how)
        assert str(caught.value).startswith(said)


def test_the_report_names_the_index_that_was_searched(library: Mapping) -> None:
    out = io.StringIO()
    call_command("run_benchmark", "library", "--modes", "dense", "--wait", "--json", stdout=out)
    (run,) = json.loads(out.getvalue())["runs"]
    assert (run["config"]["index"], run["index"]) == (None, "keywords")
    assert "completed, index keywords" in text_of(Benchmark.objects.get())


def test_it_warns_of_reranked_runs_that_return_less_than_is_measured(library: Mapping) -> None:
    matrix = {"use_reranker": [False, True], "rerank_depths": [5, 15, 20], "k_values_for_metrics": [5, 20]}
    (warning,) = preview(library, matrix).warnings
    assert warning.startswith("2 reranked runs return no more than what the reranker reads, 5 or 15 chunks a query:")
    assert preview(library, {**matrix, "rerank_depths": [20]}).warnings == []
    out = io.StringIO()
    options = ["--modes", "dense", "--rerank", "on", "--rerank-depth", "5", "--dry-run"]
    call_command("run_benchmark", "library", *options, stdout=out)
    assert "1 reranked run returns no more than what the reranker reads, 5 chunks a query" in out.getvalue()
