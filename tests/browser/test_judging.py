"""Judging as a person does it: open the form in its place, state a grade, see what it leads to."""

import re

from playwright.sync_api import Page

from apps.benchmarks.launching import launch
from apps.benchmarks.models import QueryResult
from apps.datasets.models import Judgment
from apps.operations.working import wait
from benchbench.site.panels import change_url
from tests.benchmarks.conftest import make_library
from tests.browser.conftest import outside
from tests.browser.test_main_job import press
from tests.created import create_benchmark


def make_ranking() -> QueryResult:
    benchmark = create_benchmark(
        make_library(documents=20, queries=4), name="Which mode?", matrix={"search_modes": ["dense"]}
    )
    wait(launch(benchmark))
    return benchmark.runs.get().query_results.order_by("pk")[0]


def test_a_grade_is_stated_where_the_document_stands(page: Page) -> None:
    result = outside(make_ranking)
    page.goto(change_url(result))
    place = page.locator(".bb-hit").first
    place.locator("text=Judge").click()
    place.locator("[name=grade]").fill("0")
    place.locator("[name=note]").fill("It only mentions them.")
    place.locator("text=Save in the draft").click()
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
