"""kill -9 of the worker in mid-run: a new worker finishes, nothing twice, nothing missing, the same numbers."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings

from apps.execution.launching import launch
from apps.operations.models import Batch, Operation
from apps.operations.working import wait
from apps.records.models import Benchmark, Evaluation, QueryResult
from tests.benchmarks.figures import run_key
from tests.created import create_benchmark
from tests.library import make_library
from tests.waiting import until

pytestmark = pytest.mark.thorough

QUERIES = 9  # in three batches
Worker = Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture
def start_worker(process_environment: dict[str, str]) -> Iterator[Worker]:
    """Start real RQ workers on this test's database; leases are short, so that the test need not wait for long ones."""
    environment = process_environment | {"BENCHBENCH_LEASE_SECONDS": "3", "BENCHBENCH_SWEEP_SECONDS": "1"}
    workers = []

    def start() -> "subprocess.Popen[bytes]":
        command = [sys.executable, "manage.py", "worker"]
        workers.append(subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment, start_new_session=True))
        return workers[-1]

    yield start
    for worker in workers:
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def kill_in_mid_batch(worker: "subprocess.Popen[bytes]", operation: Operation) -> Batch:
    """Kill the worker once it has done two batches and is at another; return that one."""
    finished = operation.batches.filter(state="done")
    running = operation.batches.filter(state="running")

    def stopped_in_mid_batch() -> bool:
        os.killpg(worker.pid, signal.SIGSTOP)  # so that what is seen is still so when it is killed
        if finished.count() >= 2 and running.exists():
            return True
        os.killpg(worker.pid, signal.SIGCONT)
        return False

    until(running.exists, "the first batch", every=0.1)
    until(stopped_in_mid_batch, "the first batches")
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    assert running.count() == 1, "the worker was killed in mid-batch"
    return running.get()


def test_a_killed_worker_costs_neither_work_nor_truth(start_worker):
    library = make_library(queries=QUERIES, documents=30)
    matrix = {"search_modes": ["dense", "hybrid"], "use_reranker": [False, True]}
    undisturbed, benchmark = (create_benchmark(library, name=name, matrix=matrix) for name in ("undisturbed", "killed"))
    wait(launch(undisturbed))

    operation = launch(benchmark)
    killed = kill_in_mid_batch(start_worker(), operation)
    start_worker()
    until(lambda: Benchmark.objects.get(pk=benchmark.pk).status == "completed", "the end", every=0.2)

    killed.refresh_from_db()
    assert killed.attempts == 2
    assert QueryResult.objects.filter(run__benchmark=benchmark).count() == QUERIES * 4
    assert run_key(benchmark) == run_key(undisturbed)
    rows = [
        Evaluation.objects.filter(run__benchmark=one).order_by("run__run_order") for one in (benchmark, undisturbed)
    ]
    values = [[evaluation.values for evaluation in hit] for hit in rows]
    assert values[0] == values[1]
