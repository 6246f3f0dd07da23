"""A query tried and tuned by sliders, with the keyboard, up to a benchmark of both searches; and other small forms."""

import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from tests.browser.reader import PATIENCE, outside
from tests.library import make_library

pytestmark = pytest.mark.thorough


def test_moved_sliders_show_another_ranking(page, manage):
    library = outside(make_library)
    manage("manage.py", "worker")
    page.goto(reverse("admin:collection_try", args=[library.collection.pk]))
    page.fill("[name=q]", "pear plum")
    page.select_option("[name=way]", "sparse")
    page.get_by_role("button", name="Search", exact=True).click()
    answers = page.locator(".bb-tried .bb-hits")
    expect(answers).to_have_count(1, timeout=PATIENCE)
    expect(page.locator("#field_rrf_k")).to_be_hidden()
    before = answers.text_content()

    slider = page.locator("#id_k1")
    expect(slider).to_be_hidden()
    assert page.locator(".bb-tried").bounding_box()["y"] < 450, "results are seen without scrolling"
    page.get_by_text("Tune, compare").click()
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#field_k1 output")).to_have_text("1.45")
    expect(page.get_by_role("heading", name="bm25(k1=1.45)")).to_be_visible()
    expect(answers).to_be_visible(timeout=PATIENCE)
    expect(answers).not_to_have_text(before or "")
    expect(slider).to_be_focused()
    assert "k1=1.45" in page.url

    page.select_option("[name=other_way]", "weighted")
    expect(answers).to_have_count(2, timeout=PATIENCE)
    expect(page.locator("#field_other_dense")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollHeight") <= 4_000
    expect(page.locator(".bb-hit:visible")).to_have_count(8)
    page.get_by_label("All 10 documents").first.check()
    expect(page.locator(".bb-hit:visible")).to_have_count(14)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("link", name="Make a benchmark of these two").click()
    expect(page.locator("[name=lexical]")).to_have_value("bm25(k1=1.45), bm25")
    expect(page.locator("#preview")).to_contain_text(re.compile(r"\b4 runs"), timeout=PATIENCE)


def test_cron_expression_is_shown_where_it_counts(page):
    page.goto("/admin/benchmarks/schedule/add/")
    expect(page.locator("[name=cron]")).to_be_hidden()
    page.select_option("[name=when]", "")
    expect(page.locator("[name=cron]")).to_be_visible()
