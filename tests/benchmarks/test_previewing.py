import io
import json

import pytest
from django.core.management import call_command

from apps.benchmarks.creating import create_benchmark
from apps.benchmarks.launching import launch
from apps.benchmarks.models import Benchmark
from apps.benchmarks.previewing import preview
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.retrieval.models import CachedVector
from benchbench.ir.matrix import MatrixError

MATRIX = {"search_modes": ["dense", "sparse", "hybrid"], "rrf_k_values": [20, 60], "score_thresholds": [None, 0.5]}


def test_it_counts_the_distinct_work_and_creates_nothing(library: Mapping) -> None:
    planned = preview(library, MATRIX)
    assert (len(planned.labels), planned.queries) == (8, 12)
    assert planned.distinct == {"encode": 12, "dense": 12, "lexical": 12, "fuse": 24, "rerank_pairs_at_most": 0}
    assert planned.estimate_seconds > 0
    assert planned.resident_bytes > 0
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
