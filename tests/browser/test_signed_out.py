"""A session that ends while a form is filled in: the page says so, and nothing that was typed is lost."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from apps.records.models import Benchmark
from tests.browser.reader import outside
from tests.library import make_library

pytestmark = pytest.mark.thorough


def test_input_is_sent_after_signing_in_again(page: Page, site: str) -> None:
    mapping = outside(lambda: make_library(documents=6, queries=2))
    page.goto(f"{reverse('admin:benchmarks_benchmark_add')}?mapping={mapping.pk}")
    page.wait_for_selector("#preview >> text=runs")
    page.context.clear_cookies(name="sessionid")
    page.fill("[name=name]", "kept")
    note = page.locator("#bb-signed-out")
    expect(note).to_contain_text("You are signed out. Sign in in another tab, then continue here")
    with page.context.expect_page() as opened:
        note.locator("a").click()
    login = opened.value
    login.fill("[name=username]", "ada")
    login.fill("[name=password]", "ada")
    login.click("[type=submit]")
    login.wait_for_selector("#preview")
    assert page.input_value("[name=name]") == "kept"
    page.fill("[name=description]", "It was typed before.")
    expect(note).to_have_count(0)
    page.click("text=Create")
    page.wait_for_url("**/results/")
    created = outside(lambda: Benchmark.objects.get(name="kept"))
    assert created.description == "It was typed before."
