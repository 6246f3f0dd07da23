"""Judging as a person does it: open the page of a hit, grade it by key, see what it leads to."""

import re

import pytest
from playwright.sync_api import Page

from apps.benchmarks.models import QueryResult
from apps.datasets.models import Judgment
from benchbench.site.panels import change_url
from tests.benchmarks.conftest import make_library
from tests.browser.conftest import outside
from tests.browser.test_main_job import press
from tests.created import run_benchmark

pytestmark = pytest.mark.thorough


def make_ranking() -> QueryResult:
    benchmark = run_benchmark(
        make_library(documents=20, queries=4), name="Which mode?", matrix={"search_modes": ["dense"]}
    )
    return benchmark.runs.get().query_results.order_by("pk")[0]


def test_a_hit_is_graded_on_its_page(page: Page) -> None:
    result = outside(make_ranking)
    page.goto(change_url(result))
    page.locator(".bb-hit").first.locator("text=Judge").click()
    page.wait_for_selector(".bb-passage")
    page.keyboard.press("n")
    page.keyboard.type("It only mentions them.")
    page.keyboard.press("Escape")
    page.keyboard.press("0")
    page.wait_for_selector("text=Draft of version 2 of questions, with 1 change")
    assert page.locator(".bb-hit").first.locator("text=in the draft: 0").is_visible()
    judged = outside(lambda: Judgment.objects.get(since=2))
    assert (judged.grade, judged.judge, judged.note) == (0, "ada", "It only mentions them.")

    press(page, "Freeze as version 2")
    page.wait_for_selector("text=Judgments changed")
    press(page, "Freeze for good")
    press(page, "Resolve the mapping again")
    press(page, "Re-score on v2")
    page.wait_for_url(re.compile(r"version=2"))
    page.wait_for_selector("#moved >> text=1 judgment changed")
    page.click(".bb-board tbody th a")
    page.wait_for_url(re.compile(r"version=2"))
    assert page.locator("[aria-label='Dataset version of the values'] [aria-current]").text_content() == "v2"
