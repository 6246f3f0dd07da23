"""Twenty clients at the same time, against a site that is made to be busy."""

import json
import time
from collections import Counter

import httpx
import pytest

from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.records.models import Benchmark, QueryResult
from benchbench.client import Client, ClientError
from tests.at_once import at_once
from tests.client.fruit import questions

pytestmark = pytest.mark.thorough

CLIENTS = 20
MATRIX = {"search_modes": ["dense"], "score_thresholds": [None, 0.9]}
BUSY = {
    "BENCHBENCH_API_RATE_READ": "100000/min",
    "BENCHBENCH_API_RATE_WRITE": "100000/min",
    "BENCHBENCH_API_RATE_UPLOAD": "8/s",
    "BENCHBENCH_API_RATE_START": "15/s",
    "BENCHMARK_MAX_RUNNING_PER_USER": "8",
    "BENCHBENCH_BATCH_SECONDS": "5",
}


@pytest.fixture
def statuses(monkeypatch):
    """Count every answer, those too that a client does not show."""
    counted = Counter()
    send = httpx.Client.send

    def counting(self, *arguments, **options):
        answer = send(self, *arguments, **options)
        counted[answer.status_code] += 1
        return answer

    monkeypatch.setattr(httpx.Client, "send", counting)
    return counted


def test_twenty_clients_at_once_lose_nothing(serve, manage, token, library, tmp_path, statuses):
    site = serve(**BUSY)
    manage("manage.py", "worker")
    same = tmp_path / "same.json"
    same.write_text(json.dumps(questions()))

    def whole_job(number):
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(questions(number=number)))
        with Client(site, token=token) as client:
            mapping = client.resolve(client.map(client.upload(file, name=f"own {number}"), library.pk))
            shared = client.map(client.upload(same, name="shared"), library.pk)
            once_it_may_be(lambda: client.resolve(shared))
            benchmark = client.create_benchmark(f"own {number}", mapping, MATRIX)
            started = once_it_may_be(lambda: client.start(benchmark))
            assert client.wait(started, timeout=600)["status"] == "completed"
            recall = [run["metrics_flat"]["recall@10"] for run in client.results(benchmark)["runs"]]
            assert recall == pytest.approx([8 / 9, 7 / 18])
            return shared["dataset_id"], shared["id"]

    begun = time.monotonic()
    shared = at_once(CLIENTS, whole_job)
    print(f"\n{CLIENTS} clients took {time.monotonic() - begun:.1f} s: {dict(sorted(statuses.items()))}")
    assert len(set(shared)) == 1
    assert set(statuses) <= {200, 201, 202, 409, 429}
    assert statuses[201] == 3 * CLIENTS + 2
    assert (Dataset.objects.count(), Mapping.objects.count()) == (CLIENTS + 1, CLIENTS + 1)
    assert set(Mapping.objects.values_list("status", "mapped_count")) == {("partial", 7)}
    assert list(Benchmark.objects.values_list("status", flat=True)) == ["completed"] * CLIENTS
    assert QueryResult.objects.filter(error="").count() == CLIENTS * 2 * 3


def once_it_may_be(act):
    """Try again while as many run as one user may run, or while another client has the mapping resolved."""
    while True:
        try:
            return act()
        except ClientError as error:
            if error.status != 409:
                raise
            time.sleep(1)


def test_one_of_twenty_starts_a_benchmark(site, token, library, questions_file, statuses):
    with Client(site, token=token) as client:
        mapping = client.resolve(client.map(client.upload(questions_file, name="fruits"), library.pk))
        benchmark = client.create_benchmark("which", mapping, MATRIX)
        statuses.clear()

        def start(number):
            try:
                return client.start(benchmark)["operation_uuid"]
            except ClientError as error:
                return error.code

        answer = at_once(CLIENTS, start)
    operation = Operation.objects.get(subject_id=benchmark["id"])
    assert sorted(answer) == sorted([str(operation.pk)] + ["conflict"] * (CLIENTS - 1))
    assert statuses == {200: 1, 409: CLIENTS - 1}
