"""Configurations over several datasets: the page, and what it refuses."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from apps.records.models import Benchmark
from apps.results.comparison.datasets import compare_over_datasets
from tests.created import run_benchmark
from tests.library import make_library
from tests.site import text_of

MATRIX = {"search_modes": ["dense", "sparse", "hybrid"]}


def run_on(name: str, matrix: Any = MATRIX, **options: Any) -> Benchmark:
    mapping = make_library(seed=len(name))
    for model, row in ((Dataset, mapping.dataset), (Collection, mapping.collection), (Mapping, mapping)):
        model.objects.filter(pk=row.pk).update(name=name)  # so that the next may be made
    return run_benchmark(Mapping.objects.get(pk=mapping.pk), name=f"on {name}", matrix=matrix, **options)


@pytest.fixture
def benchmarks(transactional_db: None) -> list[Benchmark]:
    return [run_on(name) for name in ("first", "second", "third")]


def open_page(client: Client, benchmarks: list[Benchmark]) -> Any:
    return client.get(reverse("admin:benchmarks_across"), {"benchmark": [row.pk for row in benchmarks]}, follow=True)


def test_configurations_are_ranked_over_datasets(benchmarks: list[Benchmark], admin_client: Client) -> None:
    across = compare_over_datasets(benchmarks)
    assert across.values.shape == (3, 3)
    for row, benchmark in zip(across.values, benchmarks, strict=True):
        assert sorted(row) == sorted(run.evaluations.get().means["nDCG@10"] for run in benchmark.runs.all())
    displayed = text_of(open_page(admin_client, benchmarks))
    assert "With 3 datasets no pair can be significant" in displayed
    for label, rank, _ in across.rows:
        assert f"{label} {rank:.2f}" in displayed
    assert "Friedman" in displayed
    acted = admin_client.post(
        reverse("admin:benchmarks_benchmark_changelist"),
        {"action": "compare_over_datasets", "_selected_action": [row.pk for row in benchmarks]},
        follow=True,
    )
    assert "Configurations over 3 datasets" in text_of(acted)


def test_what_cannot_be_ranked_is_refused(benchmarks: list[Benchmark], admin_client: Client) -> None:
    first, second, _ = benchmarks
    again = run_benchmark(first.mapping, name="again", matrix=MATRIX)
    alone = run_on("alone", {"search_modes": ["dense"]})
    dropped = run_on("dropped", unresolved="drop")
    for chosen, sentence in (
        ([first], "each of another dataset"),
        ([first, again], "each of another dataset"),
        ([first, alone], "Fewer than two configurations have a rank in every benchmark"),
        ([second, dropped], "They treat unresolved judgments differently"),
    ):
        assert escape(sentence) in open_page(admin_client, chosen).text


def test_hidden_benchmarks_are_not_compared(benchmarks: list[Benchmark], client: Client, make_staff: Any) -> None:
    Benchmark.objects.update(owner=make_staff("grace"))
    client.force_login(make_staff("ada"))
    assert open_page(client, benchmarks).status_code == 404
    assert client.get(reverse("admin:benchmarks_across"), {"benchmark": "x"}).status_code == 404
