"""A rolling upgrade: old and new code side by side on one database, while a benchmark runs and the API is asked.

python perf/upgrading.py FROM

FROM is a commit that this checkout came from. Its code makes the tables, a benchmark, a site and a worker; a second
benchmark is begun, and the tables are migrated under it. Then this code's worker and site join. Counts what the old
site answers before and after, to requests that read and to ones that write, and whether the second benchmark, begun by
one code and ended by the other, has the rankings and values of the first, bit for bit.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import throwaway

WORDS = "bm25(words=plain)"  # of one rule for ever: indexes by others are refused where the new code changed them
SETTLING_SECONDS = 5.0  # the sites are asked so long before and after each step
# Done by each code in its own checkout.
POPULATE = """
from django.contrib.auth.models import User
from apps.accounts.tokens import issue_token
try:
    from apps.execution.launching import launch
except ImportError:  # a version before this room
    from apps.benchmarks.launching import launch
from apps.operations.working import wait
try:
    from tests.library import make_library
except ImportError:
    from tests.benchmarks.conftest import make_library
from tests.created import create_benchmark
user = User.objects.create_superuser("ada")
mapping = make_library(queries=400, documents=30)
matrix = {"search_modes": ["dense", "hybrid"], "lexical": [sys.argv[1]], "use_reranker": [False, True]}
made = [create_benchmark(mapping, name=name, matrix=matrix) for name in ("before", "during")]
wait(launch(made[0]))
print(json.dumps({"token": issue_token(user, name="perf", scope="write")[1], "mapping": str(mapping.pk),
                  "benchmarks": [str(one.pk) for one in made]}))
"""
FIGURES = """
from django.apps import apps
try:
    from tests.benchmarks.figures import run_key
except ImportError:
    from tests.benchmarks.conftest import run_key
benchmark = apps.get_model("benchmarks", "Benchmark").objects.get(name=sys.argv[1])
values = [(one.means, one.values) for run in benchmark.runs.order_by("run_order") for one in run.evaluations.all()]
print(json.dumps([str(run_key(benchmark)), str(values)]))
"""
HEAD = """
import json, sys, django
django.setup()
from django.conf import settings
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", metavar="FROM")
    commit = parser.parse_args().commit
    with tempfile.TemporaryDirectory() as folder, checkout(commit, Path(folder) / "old") as old:
        services()
        manage(old, "migrate", "--verbosity", "0")
        made = json.loads(python(old, POPULATE, WORDS))
        during = made["benchmarks"][1]
        with serving(old) as site, process(old, "manage.py", "worker"):
            asking = Asking(site, made)
            asking.go_on("the old site, on its own tables")
            asking.start(during)
            time.sleep(0.5)
            began = time.monotonic()
            manage(throwaway.ROOT, "migrate", "--verbosity", "0")
            left = asking.ask("GET", f"benchmarks/{during}")["status"] == "running"
            print(
                f"migrated in {time.monotonic() - began:.1f} s; the benchmark was {'' if left else 'NOT '}at work still"
            )
            asking.go_on("the old site, on the new tables")
            with serving(throwaway.ROOT) as new, process(throwaway.ROOT, "manage.py", "worker"):
                asking.site = new
                asking.go_on("the new site")
                seconds = asking.wait_for(during)
        equal = python(throwaway.ROOT, FIGURES, "before") == python(throwaway.ROOT, FIGURES, "during")
        print(f"ended {seconds:.1f} s after the new worker joined; equal to the bit: {equal}")
    return 0 if equal and left and not asking.refused else 1


@contextmanager
def checkout(commit: str, folder: Path) -> Iterator[Path]:
    git = ["git", "-C", str(throwaway.ROOT), "worktree"]
    subprocess.run([*git, "add", "--detach", "--quiet", str(folder), commit], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def services() -> None:
    """Start services on an empty data folder that all processes of both checkouts use."""
    folder = tempfile.mkdtemp(prefix="benchbench-perf-")
    for name in ("DATABASE_URL", "REDIS_URL", "BENCHBENCH_VECTOR_DIR"):
        os.environ.pop(name, None)
    os.environ |= {
        "BENCHBENCH_DATA_DIR": folder,
        "DJANGO_SETTINGS_MODULE": "benchbench.settings",
        "DEBUG": "true",
        "SECRET_KEY": "perf",
        "BENCHBENCH_BATCH_SECONDS": "0",  # batches of one query each, so that the upgrade comes amid them
        "BENCHMARK_MAX_RUNNING_PER_USER": "1000",
        "BENCHBENCH_API_RATE_START": "6000/min",
        "BENCHBENCH_API_RATE_WRITE": "6000/min",
    }
    sys.path.insert(0, str(throwaway.ROOT))
    from benchbench import embedded

    embedded.ensure()
    os.environ |= {
        "DATABASE_URL": embedded.find_places().database_url(),
        "REDIS_URL": embedded.find_places().redis_url(),
    }
    throwaway.remove_later(folder)


def manage(tree: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "manage.py", *arguments], cwd=tree, check=True, env=environment(tree))


def python(tree: Path, program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", HEAD + program, *arguments]
    done = subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True, env=environment(tree))
    return done.stdout.splitlines()[-1]


def environment(tree: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(tree)}


@contextmanager
def process(tree: Path, *arguments: str) -> Iterator[None]:
    command = [sys.executable, *arguments]
    started = subprocess.Popen(command, cwd=tree, env=environment(tree), stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        started.terminate()
        started.wait()


@contextmanager
def serving(tree: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    daphne = ("-m", "daphne", "-v", "0", "-p", str(port), "benchbench.asgi:application")
    site = f"http://127.0.0.1:{port}"
    with process(tree, *daphne):
        for _ in range(600):
            with suppress(httpx.TransportError):
                httpx.get(f"{site}/admin/login/", timeout=60)
                break
            time.sleep(0.1)
        yield site


class Asking:
    """Asks a site for what scripts read, and to make, start and cancel benchmarks; counts what is no success."""

    def __init__(self, site: str, made: dict[str, Any]) -> None:
        self.site, self.made = site, made
        self.client = httpx.Client(timeout=60, headers={"Authorization": f"Bearer {made['token']}"})
        self.refused: Counter[str] = Counter()
        self.asked = 0

    def ask(self, method: str, path: str, **more: Any) -> Any:
        answer = self.client.request(method, f"{self.site}/api/v2/{path}", **more)
        self.asked += 1
        if answer.status_code >= 400:
            if not self.refused:  # the first tells enough
                print(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            self.refused[f"{method} {path.partition('/')[0]}: {answer.status_code}"] += 1
        return answer.json() if answer.content and answer.status_code < 400 else {}

    def start(self, benchmark: str) -> None:
        self.ask("POST", f"benchmarks/{benchmark}/start")

    def go_on(self, what: str) -> None:
        """Ask for some seconds, and print how that went."""
        asked, refused, number = self.asked, self.refused.total(), 0
        until = time.monotonic() + SETTLING_SECONDS
        while time.monotonic() < until:
            number += 1
            for path in ("benchmarks", f"benchmarks/{self.made['benchmarks'][0]}/results", "operations"):
                self.ask("GET", path)
            matrix = {"lexical": [WORDS]}
            body = {"mapping_id": self.made["mapping"], "name": f"{what} {number}", "config_matrix": matrix}
            made = self.ask("POST", "benchmarks", json=body)
            if "id" in made:
                self.start(made["id"])
                self.ask("POST", f"benchmarks/{made['id']}/cancel")
        print(f"{what}: {self.asked - asked} requests, {self.refused.total() - refused} refused {dict(self.refused)}")

    def wait_for(self, benchmark: str) -> float:
        began = time.monotonic()
        while self.ask("GET", f"benchmarks/{benchmark}")["status"] in ("pending", "running"):
            time.sleep(0.2)
        return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
