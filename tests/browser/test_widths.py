"""Lists and histories fit a laptop and a phone: nothing is cut off, and the page does not scroll sideways."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import expect

from apps.collections.models import Document
from apps.datasets.models import Judgment
from apps.records.models import Run, Schedule
from benchbench.site.history import note
from benchbench.site.panels import build_list_url
from tests.browser.reader import outside
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping, make_schedule

pytestmark = pytest.mark.thorough
SENTENCE = "Uploaded questions_of_the_whole_department_2026-11-21_final_corrected.jsonl with 81 queries. " * 2
OVERFLOWING = """[document.documentElement, ...document.querySelectorAll(".bb-scroll, .simplebar-content-wrapper")]
    .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth + 1).map((one) => one.className || "page")"""


def make_rows() -> Any:
    text = {"title": "", "text": "Statin use after breast cancer and survival. " * 20, "external_id": "M" * 40}
    dataset = make_dataset({"q": [({"document_id": "M" * 40}, 1)]}, name="Questions of the department")
    benchmark = make_benchmark(
        make_mapping(dataset, make_collection("A library of many papers", [text])), [0.5, 0.6], name="Nightly " * 6
    )
    make_schedule(benchmark, name="Weekly run of the questions")
    note(User.objects.get(username="ada"), [dataset], SENTENCE)
    return dataset


def test_lists_and_histories_fit_laptop_and_phone(page):
    dataset = outside(make_rows)
    names = ("datasets_dataset_history", "dataset_history")
    histories = [reverse(f"admin:{name}", args=[dataset.pk]) for name in names]
    lists = [build_list_url(Document), build_list_url(Schedule), reverse("admin:admin_logentry_changelist")]
    lists += [build_list_url(Judgment), build_list_url(Run, measure="nDCG@10")]
    for address in (*histories, *lists):
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(address)
            expect(page.locator("#content")).to_be_visible()
            cut = page.evaluate(OVERFLOWING)
            assert not cut or (width == 390 and address == histories[1] and "page" not in cut), (address, width, cut)
