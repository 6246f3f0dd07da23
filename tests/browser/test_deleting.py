"""A benchmark deleted with the keyboard: first what uses it, then the typed name; then it is taken back."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from apps.records.models import Benchmark, GateOutcome, Schedule
from tests.browser.reader import outside
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping, make_schedule

pytestmark = pytest.mark.thorough


def _make_scheduled() -> Benchmark:
    mapping = make_mapping(make_dataset({"q": [("d1", 1)]}), make_collection(documents=[{}]))
    benchmark = make_benchmark(mapping, [0.5, 0.6])
    make_schedule(benchmark)
    GateOutcome.objects.create(run=benchmark.runs.first(), rules={}, outcome="failed", checks=[])
    return benchmark


def test_a_benchmark_is_deleted_by_its_name(page):
    benchmark = outside(_make_scheduled)
    page.goto(reverse("admin:benchmarks_benchmark_delete", args=[benchmark.pk]))
    user = page.get_by_role("link", name="the schedule “nightly”")
    expect(user).to_be_visible()
    question = page.get_by_role("button", name="Delete the benchmark")
    expect(question).to_have_count(0)
    outside(lambda: Schedule.objects.all().delete())
    page.reload()
    expect(page.get_by_text("1 gate outcome")).to_be_visible()
    field = page.get_by_label("Name")
    field.fill("another")
    field.press("Enter")
    expect(page.get_by_text("Nothing was deleted: type the name")).to_be_visible()
    field.fill(str(benchmark))
    field.press("Enter")
    expect(page.get_by_text("was deleted successfully")).to_be_visible()
    assert not outside(Benchmark.objects.exists)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text(f"“{benchmark}” is restored.")).to_be_visible()
    assert outside(Benchmark.objects.get) == benchmark
