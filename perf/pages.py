"""Looks at the pages of a benchmark of 72 runs × 1,109 queries: wall, CPU of both sides, statements, size."""

import os
import statistics
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the web process has it, and before NumPy is imported

import throwaway

THREE = {"search_modes": ["dense", "sparse", "hybrid"], "rrf_k_values": [10, 20, 40, 60, 80, 100]}
MATRIX = {**THREE, "top_k_values": [20, 50, 100], "score_thresholds": [None, 0.3, 0.5]}
DOCUMENTS, WORDS = 5_000, 2_000


def options() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1_109)
    parser.add_argument(
        "--site", type=Path, metavar="DIR", help="Data of a site that has such a benchmark: look there."
    )
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def open_site(folder: Path) -> None:
    os.environ |= {"BENCHBENCH_DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "benchbench.settings"}

    from benchbench import embedded

    embedded.ensure()

    import django

    django.setup()


def build(queries: int) -> None:
    """Make a collection of words drawn by Zipf's law, queries of the words of one document each, and benchmark them."""
    import json
    import tempfile

    import numpy as np

    from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
    from apps.execution.launching import launch
    from apps.mappings.beir import import_beir
    from apps.operations.working import wait

    rng = np.random.default_rng(5)
    words = [f"word{number}" for number in range(WORDS)]
    texts = [[words[n] for n in rng.zipf(1.3, 60) % WORDS] for _ in range(DOCUMENTS)]
    wanted = rng.integers(0, DOCUMENTS, queries)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        documents = ({"_id": f"d{n}", "title": "", "text": " ".join(text)} for n, text in enumerate(texts))
        asked = ({"_id": f"q{n}", "text": " ".join(rng.choice(texts[d], 4))} for n, d in enumerate(wanted))
        for file, rows in (("corpus", documents), ("queries", asked)):
            (folder / f"{file}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        judged = "".join(f"q{n}\td{d}\t1\n" for n, d in enumerate(wanted))
        (folder / "qrels").mkdir()
        (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
        made = import_beir(folder, name="drawn", model=f"keyword:{','.join(words[:20])}")
    if made.indexed.operation:
        wait(made.indexed.operation)
    benchmark = create_benchmark(made.mapping, BenchmarkOptions(name="72 runs", matrix=MATRIX))
    wait(launch(benchmark))


def pages() -> dict[str, str]:
    from django.urls import reverse

    from apps.datasets.models import Dataset
    from apps.records.models import Benchmark, Run
    from benchbench.site.panels import build_list_url, change_url

    benchmark = Benchmark.objects.filter(status="completed").order_by("-total_runs", "created_at")[0]
    runs = list(benchmark.runs.filter(status=Run.Status.COMPLETED).order_by("run_order"))
    middle, other = runs[len(runs) // 2], runs[-1]
    result = middle.query_results.order_by("pk")[0]
    compare = reverse("admin:run_compare")
    dataset, query = benchmark.mapping.dataset, result.query
    document = benchmark.mapping.collection.documents.order_by("pk")[0]
    print(f"{len(runs)} runs × {benchmark.dataset_version.query_count:,} queries")
    return {
        "start": reverse("admin:index"),
        "results of the benchmark": reverse("admin:benchmark_results", args=[benchmark.pk]),
        "its verdict, which follows": reverse("admin:benchmark_verdict", args=[benchmark.pk]),
        "a run, with its losses": reverse("admin:benchmarks_run_change", args=[middle.pk]),
        "a query of it, triaged": reverse("admin:benchmarks_queryresult_change", args=[result.pk]),
        "two runs side by side": f"{reverse('admin:run_side_by_side', args=[middle.pk])}?against={other.pk}",
        "its query": change_url(query),
        "a document": change_url(document),
        "dataset": change_url(dataset),
        "its history": reverse("admin:dataset_history", args=[dataset.pk]),
        "new benchmark": f"{reverse('admin:benchmarks_benchmark_add')}?from={benchmark.pk}",
        "new evaluation": reverse("admin:new_evaluation"),
        "list of benchmarks": build_list_url(Benchmark),
        "list of runs": build_list_url(Run),
        "list of datasets": build_list_url(Dataset),
        "comparison of 2": f"{compare}?run={middle.pk}&run={other.pk}",
        "comparison of 64": f"{compare}?{'&'.join(f'run={run.pk}' for run in runs[:64])}",
    }


def looked_at(client: Any, url: str) -> tuple[float, float, float, int, float]:
    """Seconds by the clock, of this process and of PostgreSQL's; statements; kB."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    began = time.perf_counter(), time.process_time(), server_seconds()
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(url)
    assert answer.status_code == 200, (url, answer.status_code)
    return (
        time.perf_counter() - began[0],
        time.process_time() - began[1],
        server_seconds() - began[2],
        len(asked),
        len(answer.content) / 1000,
    )


def server_seconds() -> float:
    """CPU time of the process that answers this connection: 0 where PostgreSQL runs elsewhere."""
    from django.db import connection

    process = Path(f"/proc/{connection.connection.info.backend_pid}/stat")
    if not process.exists():
        return 0.0
    fields = process.read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def measured(client: Any, url: str, rounds: int) -> Iterator[tuple[float, ...]]:
    """The medians of looks with nothing in the cache, and of the looks that followed."""
    from django.core.cache import cache

    looks = []
    for _ in range(rounds):
        cache.clear()
        looks.append((looked_at(client, url), looked_at(client, url)))
    for which in zip(*looks, strict=True):
        yield tuple(statistics.median(column) for column in zip(*which, strict=True))


def main() -> None:
    asked = options()
    if asked.site:
        open_site(asked.site)
    else:
        throwaway.open_site()
        build(asked.queries)

    import scipy.special  # noqa: F401 (a process loads it once, at its first verdict: a third of a second)
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.core.signals import request_finished, request_started
    from django.db import close_old_connections
    from django.test import Client

    settings.ALLOWED_HOSTS = ["*"]
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    client = Client()
    boss = User.objects.filter(is_superuser=True).first() or User.objects.create_superuser("pages", password=None)
    client.force_login(boss)
    listed = pages()
    looked_at(client, listed["start"])  # what every first request of a process loads
    print(f"{'':28}{'first look: wall, CPU, PostgreSQL':>36}  statements   {'second':>20}       kB")
    for name, url in listed.items():
        first, second = measured(client, url, asked.rounds)
        seconds = [" ".join(f"{one:6.2f}" for one in look[:3]) for look in (first, second)]
        print(f"{name:28}{seconds[0]:>34} s  {first[3]:>10.0f}   {seconds[1]:>20} s  {second[4]:>6.0f}", flush=True)


if __name__ == "__main__":
    main()
