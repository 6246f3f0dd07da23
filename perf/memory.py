"""Memory of one worker over many small benchmarks: whether it grows with what it has done.

A real worker does benchmarks of three runs, cut into batches of one query. Its resident memory (VmRSS) is read after
every tenth benchmark. Over the second half a line is fitted: its slope is what a benchmark leaves behind. Exits with 1
where that is more than 50 kB a benchmark, which a day of them would feel.
"""

import subprocess
import sys
import time
from argparse import ArgumentParser
from pathlib import Path

import throwaway

throwaway.open_site()

import numpy as np
from django.conf import settings

from apps.execution.launching import launch
from apps.operations.models import Batch
from apps.records.models import Benchmark
from tests.created import create_benchmark
from tests.library import make_library

LEAST_KB = 50.0
MATRIX = {"search_modes": ["dense", "sparse", "hybrid"], "top_k_values": [20]}


def resident_kb(process: int) -> int:
    """Return the resident memory of a worker: a process that waits, and the child of it that works."""
    children = map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())
    status = Path(f"/proc/{process}/status").read_text()
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return own + sum(map(resident_kb, children))


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--benchmarks", type=int, default=200)
    parser.add_argument("--queries", type=int, default=20)
    asked = parser.parse_args()
    settings.BENCHBENCH_BATCH_SECONDS = 0.001  # batches are cut where a benchmark is started
    library = make_library(documents=100, queries=asked.queries)
    worker = subprocess.Popen([sys.executable, "manage.py", "worker"], cwd=throwaway.ROOT)
    read: list[tuple[int, int]] = []
    began = time.monotonic()
    try:
        for number in range(1, asked.benchmarks + 1):
            benchmark = create_benchmark(library, name=f"small {number}", matrix=MATRIX)
            launch(benchmark)
            while Benchmark.objects.get(pk=benchmark.pk).status in ("pending", "queued", "running"):
                time.sleep(0.02)
            assert Benchmark.objects.get(pk=benchmark.pk).status == "completed"
            if number % 10 == 0:
                read.append((number, resident_kb(worker.pid)))
                spent = time.monotonic() - began
                left = spent / number * (asked.benchmarks - number)
                print(f"{number:5} benchmarks  {read[-1][1] / 1024:7.1f} MB  {left:5.0f} s left", flush=True)
    finally:
        worker.terminate()
        worker.wait()
    half = np.array(read[len(read) // 2 :], float)
    slope = float(np.polyfit(half[:, 0], half[:, 1], 1)[0])
    batches = Batch.objects.filter(operation__kind="benchmark").count()
    print(f"{batches:,} batches, {max(kb for _, kb in read) / 1024:.0f} MB at most, {slope:+.1f} kB a benchmark")
    return int(slope > LEAST_KB)


if __name__ == "__main__":
    sys.exit(main())
