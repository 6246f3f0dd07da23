"""The comparison of two runs: all of its tables is in sight."""

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, expect

from apps.benchmarks.models import Benchmark
from apps.datasets.models import Query
from tests.benchmarks.gated import GOOD, POOR, make_gated, search
from tests.browser.conftest import outside

pytestmark = pytest.mark.thorough

LONG = "How does the bill of a hospital change where a patient is moved to another ward before the end of the day?"
SCROLLED = "areas => areas.filter(area => area.scrollWidth > area.clientWidth).map(area => area.ariaLabel)"


def test_runs_are_compared_once_two_are_ticked(page: Page) -> None:
    def make() -> Benchmark:
        benchmark = search(make_gated(), GOOD, POOR)
        Benchmark.objects.update(owner=User.objects.get(username="ada"))
        return benchmark

    benchmark = outside(make)
    page.goto(reverse("admin:benchmark_results", args=[benchmark.pk]))
    compare = page.get_by_role("button", name="Compare selected")
    expect(compare).to_be_disabled()
    for ticked, run in enumerate(page.locator("input[name=run]").all(), 1):
        run.check()
        expect(compare).to_be_enabled(enabled=ticked > 1)
    page.reload()
    compare = page.get_by_role("button", name="Compare selected")
    ticks = page.locator("input[name=run]:checked").count()
    expect(compare).to_be_enabled(enabled=ticks > 1)


def test_no_column_of_two_runs_is_clipped_and_queries_are_readable(page: Page) -> None:
    def make() -> Benchmark:
        benchmark = search(make_gated(), GOOD, POOR)
        Query.objects.update(text=LONG)
        run = benchmark.runs.get(run_order=2)
        run.config |= {
            "search_mode": "hybrid",
            "use_reranker": True,
            "rrf_k": 40,
            "top_k": 100,
            "index": "chunks-of-500",
        }
        run.save()
        Benchmark.objects.update(owner=User.objects.get(username="ada"))
        return benchmark

    benchmark = outside(make)
    page.set_default_timeout(120_000)  # a page that is made for the first time, on a busy machine
    page.goto(f"{reverse('admin:run_compare')}?benchmark={benchmark.pk}")
    page.wait_for_selector(".bb-queries")
    assert page.locator(".bb-scroll").evaluate_all(SCROLLED) == []
    queries = page.locator(".bb-queries tbody th")
    assert queries.count() > 2
    assert min(queries.evaluate_all("cells => cells.map(cell => cell.clientWidth)")) > 250
    assert LONG in str(queries.first.text_content())
