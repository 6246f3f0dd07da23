"""The lines that the README shows put a benchmark into a pipeline, as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.benchmarks.baselines import approve
from apps.benchmarks.models import Benchmark
from apps.collections.models import Collection
from benchbench.client import Client

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAM = re.search(r"```python\n(.*?)```", (CHECKOUT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
BLOCKED = "import sys; sys.modules.update(dict.fromkeys(['django', 'numpy', 'redis', 'psycopg', 'yaml']))\n"


@pytest.mark.parametrize(("least", "status"), [(0.8, 0), (0.95, 1)])
def test_the_ten_lines_judge_a_benchmark(
    ada: User,
    site: str,
    manage: Any,
    token: str,
    library: Collection,
    questions_file: Path,
    least: float,
    status: int,
) -> None:
    """They do so where nothing but httpx is installed, and the second time too."""
    assert PROGRAM is not None
    assert sum(bool(line.strip()) for line in PROGRAM[1].splitlines()) == 10
    Collection.objects.update(name="Handbook")
    manage("manage.py", "worker")
    folder = questions_file.parent
    (folder / "gate.yaml").write_text(f"floors:\n  ndcg@10: {least}\n")
    make_baseline(Client(site, token=token), library, questions_file, ada)
    (folder / "pipeline.py").write_text(BLOCKED + PROGRAM[1])
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT), "BENCHBENCH_URL": site, "BENCHBENCH_TOKEN": token}
    done = subprocess.run(
        [sys.executable, "pipeline.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == status, done.stderr + done.stdout
    assert "benchmark: completed, 2 of 2 runs\n## Gate" in done.stdout


def make_baseline(client: Client, library: Collection, file: Path, by: User) -> None:
    mapping = client.resolve(client.map(client.upload(file, name="Support questions"), library.pk))
    benchmark = client.create_benchmark("of May", mapping, {"search_modes": ["sparse"]})
    client.wait(client.start(benchmark))
    approve(Benchmark.objects.get(pk=benchmark["id"]).runs.get(), name="main", reason="The release of May.", by=by)
