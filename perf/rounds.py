"""A judging round of 16 runs × 300 queries with 10 judges at once: server time for a grade and the next item.

A separate process serves the site, with a worker. The judges are threads of one other process; each sends the requests
of a judge's page. With pauses between grades the time of an exchange is measured, without them the throughput. CPU time
of the server does not depend on other load. At the end, the state of the round is timed after one more grade, without
a worker. To compare two versions, run this script in two checkouts in turns.
"""
# mypy: no-strict-optional

import argparse
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import throwaway

RUNS, QUERIES, DOCUMENTS, DEPTH = 16, 300, 5_000, 20
JUDGES = 10
AHEAD = 8
WATCHED = 5.0  # seconds between two looks at the state
TICK = os.sysconf("SC_CLK_TCK")
PORT = 8765


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grades", type=int, default=40, help="Grades of each judge (default: 40).")
    parser.add_argument("--orders", nargs="*", default=["depth", "decisive"])
    options = parser.parse_args()
    os.environ |= {"DEBUG": "false", "SECRET_KEY": "perf", "ALLOWED_HOSTS": "localhost,testserver"}
    throwaway.open_site()
    runs, judges = make_world()
    for order in options.orders:
        round, seconds = opened(runs, judges, order)
        print(f"{order}: opened with {round.item_count:,} items in {seconds:.1f} s; {statements(round, judges[0])}")
        with serving("worker"), serving("daphne") as server:
            sessions = [Session(round, judge, seed) for seed, judge in enumerate(judges)]
            watcher = Session(round, judges[0], 99)
            for pause in (1.0, 0.0):
                told(f"{order}, {pause:g} s between grades", measured(server, sessions, watcher, options.grades, pause))
        print(f"  state: {states(round, judges[0])}")


def make_world() -> tuple[list[Any], list[Any]]:
    """Make a benchmark of finished runs, and judges; return the runs and the judges."""
    from django.contrib.auth.models import Permission, User
    from django.utils import timezone

    from apps.collections.importing import create_collection, import_documents
    from apps.collections.records import DocumentRecord
    from apps.datasets.importing import import_dataset
    from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
    from apps.mappings.creating import create_mapping
    from apps.mappings.resolving import resolve_now
    from apps.records.models import Benchmark, ListSource, Run, StageList

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
    judges = [User.objects.create_user(f"judge{number}", is_staff=True) for number in range(JUDGES)]
    may = Permission.objects.filter(codename__in=["view_round", "add_grade", "view_grade"])
    for judge in judges:
        judge.user_permissions.set(may)
    return runs, judges


def opened(runs: list[Any], judges: list[Any], order: str) -> tuple[Any, float]:
    from apps.judging.opening import RoundOptions, open_round

    began = time.perf_counter()
    round = open_round(runs, RoundOptions(order, order=order, overlap=0.1), judges=judges, owner=judges[0])
    round.continue_after_settled = True
    round.save()
    return round, time.perf_counter() - began


@contextmanager
def serving(what: str) -> Iterator[int]:
    """A worker, or the site on PORT, as a process of its own; its id."""
    commands = {
        "worker": [sys.executable, "manage.py", "worker"],
        "daphne": [sys.executable, "-m", "daphne", "-p", str(PORT), "benchbench.asgi:application"],
    }
    process = subprocess.Popen(commands[what], cwd=throwaway.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_up(what)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def until_up(what: str) -> None:
    """Wait until the site answers, or a worker has said that it lives."""
    from apps.operations.queueing import find_workers

    for _ in range(600):
        time.sleep(0.1)
        if what == "worker" and find_workers("default"):
            return
        with suppress(OSError):
            socket.create_connection(("localhost", PORT), timeout=1).close()
            return
    raise SystemExit(f"{what} did not start within a minute.")


class Session:
    """The open page of a judge, with a connection to the site that is served, or `here` in this process."""

    def __init__(self, round: Any, judge: Any, seed: int, *, here: bool = False) -> None:
        from django.test import Client
        from django.urls import reverse

        judge_url, self.state_url = (
            reverse(f"admin:{name}", args=[round.pk]) for name in ("round_judge", "round_state_fragment")
        )
        self.client, self.here = Client(), here
        self.client.force_login(judge)
        self.connection = http.client.HTTPConnection("localhost", PORT, timeout=60)
        self.draw = np.random.default_rng(seed)
        script = r'<script id="judging-data" type="application/json">(.*?)</script>'
        self.data = json.loads(re.findall(script, self.ask("GET", judge_url).decode(), re.S)[0])
        self.held: list[int] = self.data["held"]

    def ask(self, method: str, path: str, body: Any = None) -> bytes:
        data = "" if body is None else json.dumps(body)
        if self.here:
            own = self.client.generic(method, path, data, content_type="application/json")
            assert own.status_code == 200, own.content[:500]
            return own.content
        token = "a" * 32
        cookie = f"sessionid={self.client.cookies['sessionid'].value}; csrftoken={token}"
        headers = {"Cookie": cookie, "X-CSRFToken": token, "Content-Type": "application/json"}
        self.connection.request(method, path, data, headers)
        answer = self.connection.getresponse()
        read = answer.read()
        assert answer.status == 200, (answer.status, read[:500])
        return read

    def grade(self) -> float:
        """Grade the first item that the page holds, and get the next one; return the seconds."""
        item, *have = self.held
        said = {"key": "1", "item": item, "kind": "grade", "grade": int(self.draw.random() < 0.2), "seconds": 5.0}
        began = time.perf_counter()
        answer = json.loads(
            self.ask("POST", self.data["url"], {"entries": [said], "present_ids": have, "count": AHEAD})
        )
        seconds = time.perf_counter() - began
        assert not answer["refused"]
        assert item not in answer["held"]
        self.held = answer["held"]
        return seconds


def measured(server: int, sessions: list[Session], watcher: Session, grades: int, pause: float) -> dict[str, Any]:
    """Let all judges grade at once; return the seconds of each exchange, and the CPU of server and PostgreSQL."""

    def grading(session: Session) -> list[float]:
        taken = []
        for _ in range(grades):
            time.sleep(pause * session.draw.uniform(0.5, 1.5))
            taken.append(session.grade())
        return taken

    ended = threading.Event()
    looks: list[float] = []
    looking = threading.Thread(target=watching, args=(watcher, ended, looks))
    began, before, load = time.perf_counter(), cpu_of(server), cpu_of_postgres()
    looking.start()
    with ThreadPoolExecutor(JUDGES) as pool:
        seconds = [second for part in pool.map(grading, sessions) for second in part]
    took = time.perf_counter() - began
    ended.set()
    looking.join()
    count = len(seconds)
    return {
        "seconds": seconds,
        "a second": count / took,
        "looks": looks,
        "cpu": (cpu_of(server) - before) / count,
        "postgres": (cpu_of_postgres() - load) / count,
    }


def watching(watcher: Session, ended: threading.Event, looks: list[float]) -> None:
    """Look at the state again and again, as open pages of the round do."""
    while not ended.wait(WATCHED):
        began = time.perf_counter()
        watcher.ask("GET", watcher.state_url)
        looks.append(time.perf_counter() - began)


def cpu_of(pid: int, *, children: bool = False) -> float:
    """Return the seconds of CPU that a process has used; with `children` those of its children that have ended too."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if children else 13])) / TICK


def cpu_of_postgres() -> float:
    """Return those of PostgreSQL and all its processes, which come and go with connections."""
    from django.db import connection

    connection.ensure_connection()
    own = connection.connection.info.backend_pid
    postmaster = Path(f"/proc/{own}/stat").read_text().rpartition(")")[2].split()[1]
    others = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return cpu_of(int(postmaster), children=True) + sum(cpu_of(int(pid)) for pid in others)


def statements(round: Any, judge: Any) -> str:
    """Return how many statements an exchange takes, as a judge's page makes it."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    page = Session(round, judge, 0, here=True)
    with CaptureQueriesContext(connection) as captured:
        page.grade()
    ours = [row["sql"] for row in captured if row["sql"].split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE")]
    return f"{len(ours)} statements an exchange"


def states(round: Any, judge: Any) -> str:
    """Return how long the state takes after each of ten grades where no worker is, as its page shows it."""
    time.sleep(25.0)  # until the worker counts as gone
    page, seconds = Session(round, judge, 0, here=True), []
    for _ in range(11):
        page.grade()
        began, cpu = time.perf_counter(), time.process_time()
        page.ask("GET", page.state_url)
        seconds.append((time.perf_counter() - began, time.process_time() - cpu))
    (first, _), *others = seconds
    wall, cpu = np.median(np.array(others), axis=0) * 1e3
    return f"{wall:.0f} ms after a grade ({cpu:.0f} ms CPU of the process); the first {first:.1f} s"


def told(what: str, result: dict[str, Any]) -> None:
    middle, late, last = np.quantile(result["seconds"], [0.5, 0.95, 1]) * 1e3
    look = np.median(result["looks"]) * 1e3 if result["looks"] else np.nan
    print(
        f"  {what}: exchange median {middle:.0f} ms, p95 {late:.0f} ms, longest {last:.0f} ms;"
        f" CPU {result['cpu'] * 1e3:.1f} ms of the server, {result['postgres'] * 1e3:.1f} of PostgreSQL;"
        f" {result['a second']:.1f} a second; the state's page {look:.0f} ms; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
