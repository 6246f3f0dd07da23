"""A judging round of 16 runs × 300 queries with 10 judges at once: the next item and its grade, and the state after it.

Requests of the API in this process, each judge a thread with its own connection to PostgreSQL. With a pause between
grades, as people make one, what is measured is a request; without, how many the process gets through.
"""

import argparse
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from throwaway import open_site

RUNS, QUERIES, DOCUMENTS, DEPTH = 16, 300, 5_000, 20
JUDGES = 10
AHEAD = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grades", type=int, default=40, help="Grades of each judge (default: 40).")
    options = parser.parse_args()
    open_site()
    from django.conf import settings

    settings.ALLOWED_HOSTS = ["testserver"]
    settings.BENCHBENCH_API_RATES = dict.fromkeys(settings.BENCHBENCH_API_RATES, (1_000_000, 60))
    runs, judges = make_world()
    for order in ("depth", "decisive"):
        round_id, seconds, items = opened(runs, judges, order)
        print(f"{order}: opened with {items:,} items in {seconds:.1f} s")
        for pause in (1.0, 0.0):
            told(f"{order}, {pause:g} s between grades", graded(round_id, judges, options.grades, pause))
        print(f"  state: {states(round_id, judges[0])}")


def make_world() -> tuple[list[Any], list[Any]]:
    """Make a benchmark of finished runs, and judges with tokens; return the runs and the judges' headers."""
    from django.contrib.auth.models import User
    from django.utils import timezone

    from apps.api.access.tokens import issue_token
    from apps.benchmarks.models import Benchmark, ListSource, Run, StageList
    from apps.collections.importing import create_collection, import_documents
    from apps.collections.records import DocumentRecord
    from apps.datasets.importing import import_dataset
    from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
    from apps.mappings.creating import create_mapping
    from apps.mappings.resolving import resolve_now

    collection = create_collection("documents")
    text = "What is written here is read by nobody. " * 50
    import_documents(collection, [DocumentRecord(f"d{n}", f"Document {n}", text) for n in range(DOCUMENTS)])
    records = [
        QueryRecord(f"q{n}", f"What is in document {n}?", [JudgmentRecord({"document_id": f"d{n}"}, 2)])
        for n in range(QUERIES)
    ]
    dataset = import_dataset(DatasetRecord("questions", records)).version.dataset
    mapping = resolve_now(create_mapping(dataset, collection))
    version = mapping.dataset_version
    benchmark = Benchmark.objects.create(
        name="sixteen", mapping=mapping, dataset_version=version, matrix={}, status="completed", total_runs=RUNS
    )
    ids = np.array(collection.documents.order_by("id").values_list("pk", flat=True))
    queries = list(version.queries.order_by("id").values_list("pk", flat=True))
    draw = np.random.default_rng(1)
    nearness = draw.normal(size=(QUERIES, 200))  # of 200 documents of each query; runs see them through noise
    runs, now = [], timezone.now()
    for order in range(1, RUNS + 1):
        source = ListSource.objects.create(benchmark=benchmark, key=f"run {order}")
        run = Run.objects.create(
            benchmark=benchmark,
            run_order=order,
            label=f"run {order}",
            config_hash=f"{order:064}",
            source=source,
            status="completed",
            completed_at=now,
        )
        seen = nearness + draw.normal(scale=0.2 + 0.05 * order, size=nearness.shape)
        best = np.argsort(-seen, axis=1)[:, :DEPTH]
        StageList.objects.bulk_create(
            StageList(
                source=source,
                query_id=query,
                chunk_ids=[],
                scores=[],
                lengths=[DEPTH],
                document_ids=ids[(best[row] + 7 * row) % DOCUMENTS].tolist(),
            )
            for row, query in enumerate(queries)
        )
        runs.append(run)
    judges = []
    for number in range(JUDGES):
        user = User.objects.create_superuser(f"judge{number}")
        judges.append((user, {"Authorization": f"Bearer {issue_token(user, name='perf', scope='write')[1]}"}))
    return runs, judges


def opened(runs: list[Any], judges: list[Any], order: str) -> tuple[str, float, int]:
    from apps.judging.opening import RoundOptions, open_round

    began = time.perf_counter()
    round = open_round(runs, RoundOptions(order, order=order, overlap=0.1), judges=[user for user, _ in judges])
    round.goes_on = True
    round.save()
    return str(round.pk), time.perf_counter() - began, round.item_count


def graded(round_id: str, judges: list[Any], grades: int, pause: float) -> dict[str, list[float]]:
    """Let all judges grade at once; return the seconds of each `next`, each `grade` and of both together."""
    ended = threading.Event()
    watcher = threading.Thread(target=watching, args=(round_id, judges[0][1], ended))
    watcher.start()
    with ThreadPoolExecutor(JUDGES) as pool:
        work = [
            pool.submit(grading, round_id, headers, grades, pause, seed) for seed, (_, headers) in enumerate(judges)
        ]
        parts = [one.result() for one in work]
    ended.set()
    watcher.join()
    return {name: [second for part in parts for second in part[name]] for name in parts[0]}


def watching(round_id: str, headers: dict[str, str], ended: threading.Event) -> None:
    """Ask for the state every second, as an open page of the round does."""
    from django.db import connection
    from django.test import Client

    client = Client(headers=headers)
    while not ended.wait(1.0):
        assert client.get(f"/api/v2/judging-rounds/{round_id}/state").status_code == 200
    connection.close()


def grading(round_id: str, headers: dict[str, str], grades: int, pause: float, seed: int) -> dict[str, list[float]]:
    from django.db import connection
    from django.test import Client

    client, path = Client(headers=headers), f"/api/v2/judging-rounds/{round_id}"
    draw = np.random.default_rng(seed)
    took: dict[str, list[float]] = {"next": [], "grade": [], "next + grade": []}
    post(client, f"{path}/next", {"count": AHEAD})  # connects
    for _ in range(grades):
        time.sleep(pause * draw.uniform(0.5, 1.5))
        began = time.perf_counter()
        item = post(client, f"{path}/next", {"count": AHEAD})["items"][0]
        between = time.perf_counter()
        post(client, f"{path}/grades", {"grades": [{"item_id": item["item_id"], "grade": int(draw.random() < 0.2)}]})
        ended = time.perf_counter()
        for name, seconds in zip(took, (between - began, ended - between, ended - began), strict=True):
            took[name].append(seconds)
    connection.close()
    return took


def states(round_id: str, judge: Any) -> str:
    """Return how long the state takes after each of ten grades, as the API answers it."""
    from django.test import Client

    client, path = Client(headers=judge[1]), f"/api/v2/judging-rounds/{round_id}"
    seconds = []
    for _ in range(11):
        item = post(client, f"{path}/next", {"count": 1})["items"][0]
        post(client, f"{path}/grades", {"grades": [{"item_id": item["item_id"], "grade": 1}]})
        began = time.perf_counter()
        assert client.get(f"{path}/state").status_code == 200
        seconds.append(time.perf_counter() - began)
    first, *others = seconds
    return f"{np.median(others) * 1e3:.0f} ms after a grade, at most {max(others) * 1e3:.0f}; the first {first:.1f} s"


def post(client: Any, path: str, body: dict[str, Any]) -> Any:
    answer = client.post(path, body, content_type="application/json")
    assert answer.status_code == 200, answer.content
    return answer.json()


def told(what: str, took: dict[str, list[float]]) -> None:
    for name, seconds in took.items():
        middle, late, last = np.quantile(seconds, [0.5, 0.95, 1]) * 1e3
        print(f"  {what}: {name} median {middle:.1f} ms, p95 {late:.1f} ms, longest {last:.0f} ms ({len(seconds)})")


if __name__ == "__main__":
    main()
