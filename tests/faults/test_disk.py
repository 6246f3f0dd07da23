"""A full disk for vectors: what needs a file says so and leaves none behind, and is done once there is room."""

import os
from pathlib import Path

import pytest

from apps.benchmarks.models import Benchmark
from apps.benchmarks.retrying import retry
from tests.faults.kit import Crew, Scenario, ended, hold, undisturbed
from tests.faults.work import KINDS

FULL = [
    Scenario("benchmark", "claimed", "fill disk", alone=True),
    Scenario("benchmark", "benchmark: planned", "fill disk", alone=True),
    Scenario("isolated", "claimed", "fill disk", alone=True),
    Scenario("isolated", "benchmark: planned", "fill disk", alone=True),
]


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root may mount a small disk.")
@pytest.mark.parametrize("scenario", FULL, ids=str)
def test_a_full_disk_is_named_and_costs_no_more_than_a_retry(crew: Crew, scenario: Scenario, tmp_path: Path) -> None:
    kind = KINDS[scenario.kind]
    expected = undisturbed(kind)
    operation = kind.start()
    folder = tmp_path / "vectors"
    worker = crew.start(scenario.point, scenario.action, BENCHBENCH_VECTOR_DIR=str(folder))
    worker.wait_for_fault()
    crew.slowest = ended(operation, within=scenario.within)
    benchmark = Benchmark.objects.get(pk=operation.subject_id)
    assert benchmark.status == "failed"
    for run in benchmark.runs.all():
        assert "No space left on device" in run.error_message
        assert str(folder) in run.error_message
    child = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()[0]
    mounted = Path(f"/proc/{child}/root{folder}")  # as the worker sees it
    assert [file.name for file in mounted.rglob("*") if file.is_file() and file.stat().st_size] == ["full"]
    crew.dismiss()
    crew.start(BENCHBENCH_VECTOR_DIR=str(folder))
    again = retry(benchmark)
    ended(again, within=scenario.within)
    hold(kind, again, expected)
