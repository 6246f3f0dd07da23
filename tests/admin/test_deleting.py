"""The pages that delete a row: what uses it before the question, what goes with it, the typed name."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from apps.datasets.models import Dataset
from apps.operations.models import Operation
from apps.records.models import Baseline, Benchmark, GateOutcome
from benchbench.site.panels import change_url
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping, make_round, make_schedule

pytestmark = pytest.mark.django_db
QUESTION = '<input type="hidden" name="post" value="yes">'


@pytest.fixture
def benchmark(admin_user: User) -> Benchmark:
    mapping = make_mapping(make_dataset({"q": [("d1", 1)]}), make_collection(documents=[{}]))
    return make_benchmark(mapping, [0.5, 0.6])


def _delete_url(row: Model) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_delete", args=[row.pk])


def _read(client: Client, row: Model) -> str:
    return client.get(_delete_url(row)).content.decode()


def test_users_of_a_row_replace_the_question(admin_client: Client, benchmark: Benchmark) -> None:
    first = benchmark.runs.get(run_order=1)
    schedule, round = make_schedule(benchmark), make_round(first)
    mapping = benchmark.mapping
    results = reverse("admin:benchmark_results", args=[benchmark.pk])
    for row, users in (
        (benchmark, [change_url(schedule), change_url(round), *map(change_url, first.baselines.all())]),
        (mapping, [results, change_url(round)]),
        (mapping.dataset, [results, change_url(round)]),
        (mapping.collection, [change_url(mapping)]),
    ):
        page = _read(admin_client, row)
        assert QUESTION not in page, row
        assert [address for address in users if f'<li><a href="{address}">' not in page] == []


def test_active_operations_keep_a_dataset(admin_client: Client, benchmark: Benchmark) -> None:
    mapping = benchmark.mapping
    benchmark.delete()
    operation = Operation.objects.create(kind=Operation.Kind.RESOLVE, subject_id=mapping.pk)
    for row in (mapping, mapping.dataset):
        page = _read(admin_client, row)
        assert QUESTION not in page
        assert change_url(operation) in page


def test_users_of_others_are_counted_but_not_named(client: Client, make_staff: Any, benchmark: Benchmark) -> None:
    make_schedule(benchmark, name="not to be told", owner=User.objects.create_user("grace"))
    client.force_login(make_staff("bea"))
    page = _read(client, benchmark)
    assert "<li>1 schedule, which others own</li>" in page
    assert "not to be told" not in page


def test_contents_are_counted_and_gates_need_a_name(admin_client: Client, benchmark: Benchmark) -> None:
    Baseline.objects.all().delete()
    page = _read(admin_client, benchmark)
    assert QUESTION in page
    assert "<li>2 runs</li>" in page
    assert 'name="name"' not in page
    GateOutcome.objects.create(run=benchmark.runs.first(), rules={}, outcome="failed", checks=[])
    page = _read(admin_client, benchmark)
    assert "<li>1 gate outcome</li>" in page
    assert 'name="name"' in page
    for name, left in (("", 1), (f"{benchmark} 2", 1), (str(benchmark), 0)):
        answer = admin_client.post(_delete_url(benchmark), {"post": "yes", "name": name}, follow=True)
        assert ("Nothing was deleted: type the name" in answer.content.decode()) == left
        assert Benchmark.objects.count() == left


def test_dataset_goes_with_its_mappings_and_their_judgments(admin_client: Client) -> None:
    dataset = make_dataset({"q": [("d1", 1), ("d2", 0)]})
    make_mapping(dataset, make_collection(documents=[{}]))
    page = _read(admin_client, dataset)
    for count in ("1 dataset version", "1 query", "2 judgments", "1 mapping"):
        assert f"<li>{count}</li>" in page
    admin_client.post(_delete_url(dataset), {"post": "yes"})
    assert not Dataset.objects.exists()
