"""What a site says of itself: health, metrics, and the batch in each line of a log."""

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client, override_settings
from django.urls import reverse
from django.utils.html import strip_tags
from prometheus_client.parser import text_string_to_metric_families
from pythonjsonlogger.json import JsonFormatter

from apps.operations import metrics as counters
from apps.operations import queueing, views, working
from apps.operations.launching import start_operation
from apps.operations.leasing import claim
from apps.operations.models import Operation, Priority
from benchbench.database.probing import Probe
from benchbench.errors import BenchbenchError
from benchbench.logs import FORMATTERS, WithOperation
from tests.factories import make_collection, make_dataset, make_mapping
from tests.operations.adding import start_adding
from tests.pages import one_line
from tests.proxy.nginx import COMPOSE

Metrics = dict[tuple[str, frozenset[tuple[str, str]]], float]
TOKEN = "long and random"


def read_metrics(client: Client, **headers: str) -> Metrics:
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.content
    families = text_string_to_metric_families(answer.content.decode())
    samples = [sample for family in families for sample in family.samples]
    return {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}


def metric(metrics: Metrics, name: str, **labels: str) -> float:
    return metrics[name, frozenset(labels.items())]


class TestHealth:
    @pytest.fixture(autouse=True)
    def no_earlier_answer(self, monkeypatch):
        monkeypatch.setattr(views, "PROBE", Probe())

    def test_a_process_is_healthy_by_answering(self, client):
        answer = client.get("/healthz")
        assert (answer.status_code, answer.content) == (200, b"ok\n")

    @pytest.mark.django_db
    def test_it_is_ready_where_all_is_there(self, client):
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (200, {"database": "ok", "tables": "ok", "redis": "ok"})

    @pytest.mark.django_db
    def test_readiness_names_only_the_unavailable_service(self, client, monkeypatch):
        nowhere = {**settings.RQ_QUEUES["default"], "URL": "redis://127.0.0.1:1/0"}
        monkeypatch.setitem(settings.RQ_QUEUES, "default", nowhere)
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (503, {"database": "ok", "tables": "ok", "redis": "unavailable"})

    @pytest.mark.django_db(transaction=True)
    def test_it_is_not_ready_without_postgresql(self, client, monkeypatch):
        connection.close()
        for name, value in {"HOST": "127.0.0.1", "PORT": "1"}.items():
            monkeypatch.setitem(connection.settings_dict, name, value)
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert answer.json() == {"database": "unavailable", "tables": "unavailable", "redis": "ok"}

    def test_docker_compose_asks_whether_it_is_ready(self):
        """What it asks fails with the services: only `/readyz` does."""
        assert re.findall(r"http://localhost:8000(/[^\"]*)", COMPOSE["web"]["healthcheck"]["test"][-1]) == ["/readyz"]

    @override_settings(SECURE_SSL_REDIRECT=True)
    def test_a_probe_from_within_is_not_sent_to_https(self, client):
        assert client.get("/healthz").status_code == 200
        assert client.get("/admin/login/").status_code == 301


@pytest.mark.django_db
class TestMetrics:
    def test_metrics_require_a_superuser_or_the_token(self, client):
        User.objects.create_user("staff", password="x", is_staff=True)
        User.objects.create_superuser("boss", password="x")
        assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 403
        client.login(username="staff", password="x")
        assert client.get("/metrics").status_code == 403
        client.login(username="boss", password="x")
        assert read_metrics(client)
        with override_settings(BENCHBENCH_METRICS_TOKEN=TOKEN):
            assert read_metrics(Client(), Authorization=f"Bearer {TOKEN}")
            assert Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}r"}).status_code == 403

    @override_settings(BENCHBENCH_METRICS_TOKEN=TOKEN)
    def test_they_count_queues_workers_batches_vectors_and_errors(self, client):
        queueing.announce_worker("here", ["gpu"])
        counters.count_batch("benchmark", "done", 2.5)
        counters.count_batch("benchmark", "done", 7000)
        counters.count_batch("benchmark", "failed", 0.01)
        counters.count_vectors("queries", cached=3, encoded=5)
        counters.count({("benchbench_server_errors",): 1})

        metrics = read_metrics(client, Authorization=f"Bearer {TOKEN}")
        assert metric(metrics, "benchbench_workers", queue="gpu") == 1
        assert metric(metrics, "benchbench_queue_jobs", queue="gpu") == 0
        assert metric(metrics, "benchbench_batches_total", kind="benchmark", outcome="done") == 2
        assert metric(metrics, "benchbench_batches_total", kind="benchmark", outcome="failed") == 1
        bounds = ("0.1", "1.0", "5.0", "3600.0", "+Inf")
        up_to = {end: metric(metrics, "benchbench_batch_seconds_bucket", kind="benchmark", le=end) for end in bounds}
        assert up_to == {"0.1": 1, "1.0": 1, "5.0": 2, "3600.0": 2, "+Inf": 3}
        assert metric(metrics, "benchbench_batch_seconds_sum", kind="benchmark") == pytest.approx(7002.51)
        assert metric(metrics, "benchbench_vector_lookups_total", of="queries", result="miss") == 5
        assert metric(metrics, "benchbench_server_errors_total") == 1


@pytest.mark.django_db
class TestWorkers:
    def look(self, user: User) -> str:
        client = Client()
        client.force_login(user)
        answer = client.get(reverse("admin:workers"))
        assert answer.status_code == 200
        return answer.content.decode()

    def test_workers_page_lists_workers_and_their_operations(self):
        boss = User.objects.create_superuser("boss")
        assert "No workers are running" in self.look(boss)

        operation = start_adding({})
        queueing.announce_worker("here:1", ["gpu"])
        queueing.announce_worker("here:2", ["default"], waits="Its code is older than the tables.")
        assert claim(operation.batches.get().pk, "here:1") is not None
        page = self.look(boss)
        assert f"/operation/{operation.pk}/change/" in page
        assert "Its code is older than the tables." in page

    def test_workers_page_names_work_that_waits(self):
        mapping = make_mapping(make_dataset(), make_collection(), name="on the shelf")
        pieces: Any = {"subject_id": mapping.pk, "batches": [({}, 1)], "priority": Priority.HIGH}
        operation = start_operation(Operation.Kind.RESOLVE, **pieces)
        assert claim(operation.batches.get().pk, "here:1") is not None
        operation.batches.update(waits_for="Waits for the host here.")
        page = " ".join(strip_tags(self.look(User.objects.create_superuser("boss"))).split())
        assert "resolve on the shelf, batch 0 Waits for the host here. high" in page

    def test_workers_page_hides_operations_the_user_cannot_view(self):
        staff = User.objects.create_user("staff", is_staff=True)
        staff.user_permissions.add(Permission.objects.get(codename="view_operation"))
        operation = start_adding({})
        assert claim(operation.batches.get().pk, "here:1") is not None
        page = self.look(User.objects.get(pk=staff.pk))
        assert "another user’s operation" in one_line(page)
        assert str(operation.pk) not in page


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What is logged, as LOG_FORMAT=json writes it."""
    declared = FORMATTERS["json"]
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter(declared["format"], style="{", rename_fields=declared["rename_fields"]))
    handler.addFilter(WithOperation())
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)


def test_second_stop_signal_gives_the_batch_back(transactional_db, monkeypatch):
    def stop(*_: Any) -> None:
        raise SystemExit

    monkeypatch.setattr(working, "find_handler", lambda _: SimpleNamespace(perform=stop))
    batch = start_adding({}).batches.get()
    assert working.perform_batch(batch.pk, owner="me")
    batch.refresh_from_db()
    assert (batch.state, batch.attempts, batch.error) == ("pending", 0, "")


def test_a_batch_is_counted_and_named_in_the_log(lines, transactional_db, monkeypatch):
    class Handler:
        @staticmethod
        def perform(*_: Any) -> None:
            raise BenchbenchError("The shelf is empty.")

    monkeypatch.setattr(working, "find_handler", lambda operation: Handler)
    operation = start_adding({})
    batch = operation.batches.get()
    assert working.perform_batch(batch.pk, owner="me")

    (line,) = [json.loads(line) for line in lines.getvalue().splitlines() if "shelf" in line]
    assert (line["operation"], line["batch"], line["worker"]) == (str(operation.pk), batch.ordinal, "me")
    assert line["level"] == "ERROR"
    assert counters.load_counts()["benchbench_batches", operation.kind, "failed"] == 1


@pytest.mark.parametrize("installed", [True, False])
def test_a_batch_is_a_span_of_opentelemetry(installed, transactional_db, monkeypatch):
    spans: list[tuple[str, dict[str, Any]]] = []

    @contextmanager
    def span(name: str, attributes: dict[str, Any]) -> Iterator[None]:
        spans.append((name, attributes))
        yield
        spans.append((name, {"ended": True}))

    trace = SimpleNamespace(get_tracer=lambda _: SimpleNamespace(start_as_current_span=span))
    monkeypatch.setitem(sys.modules, "opentelemetry", SimpleNamespace(trace=trace) if installed else None)
    monkeypatch.setattr(working, "find_handler", lambda _: SimpleNamespace(perform=lambda *_: None))
    operation = start_adding({})
    batch = operation.batches.get()
    assert working.perform_batch(batch.pk, owner="me")

    facts = {"operation": str(operation.pk), "batch": batch.ordinal, "worker": "me"}
    name = f"batch {operation.kind}"
    messages = [(name, {f"benchbench.{key}": fact for key, fact in facts.items()}), (name, {"ended": True})]
    assert spans == (messages if installed else [])
