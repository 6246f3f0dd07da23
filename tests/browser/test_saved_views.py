"""A view of the runs saved for a team, changed, updated and deleted, with a measure as its column."""

import pytest
from django.contrib.auth.models import Group, User
from django.urls import reverse
from playwright.sync_api import expect

from apps.accounts.models import SavedView
from apps.records.models import Evaluation
from tests.browser.reader import outside
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping

pytestmark = pytest.mark.thorough


def _make_runs() -> None:
    mapping = make_mapping(make_dataset({"q": [("d1", 1)]}), make_collection(documents=[{}]))
    make_benchmark(mapping, [0.5, 0.6], measures=["nDCG@10", "RR"])
    for evaluation in Evaluation.objects.all():
        evaluation.means["RR"] = evaluation.means["nDCG@10"] - 0.08106
        evaluation.save(update_fields=["means"])
    User.objects.get(username="ada").groups.add(Group.objects.create(name="search"))


def test_a_view_is_saved_updated_and_deleted(page):
    outside(_make_runs)
    address = reverse("admin:benchmarks_run_changelist")
    page.goto(f"{address}?status__exact=completed")
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("Measure").select_option("RR")
    page.get_by_label("Latency").uncheck()
    page.get_by_role("button", name="Show these").click()
    page.get_by_role("link", name="Mean RR").click()
    expect(page.locator("td.field-measured")).to_have_text([".4189", ".5189"])
    expect(page.locator("td.field-latency").first).to_be_hidden()

    page.get_by_text("Save view", exact=True).click()
    page.get_by_label("Name").fill("Nightly <b>")
    page.get_by_role("combobox", name="For").select_option(label="the team search")
    page.get_by_label("Name").press("Enter")
    expect(page.get_by_text('Saved the view "Nightly <b>".')).to_be_visible()

    page.goto(address)
    expect(page.get_by_role("columnheader", name="Mean RR")).to_have_count(0)
    page.get_by_role("link", name="Nightly <b>").click()
    expect(page.locator("td.field-measured")).to_have_text([".4189", ".5189"])
    expect(page.locator(".bb-list-head .bb-chip", has_text="Completed")).to_have_attribute("aria-current", "true")
    page.get_by_role("button", name="Filters").click()
    expect(page.get_by_label("Filters").get_by_role("link", name="Failed")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Mean RR").click()
    expect(page.locator("td.field-measured")).to_have_text([".5189", ".4189"])
    expect(page.get_by_text("changed since it was saved")).to_be_visible()
    page.get_by_text("Save view", exact=True).click()
    page.get_by_role("button", name="Update this view").click()
    expect(page.get_by_text("changed since it was saved")).to_have_count(0)

    page.get_by_text("Save view", exact=True).click()
    page.get_by_role("button", name="Delete this view").click()
    expect(page.get_by_text('Deleted the view "Nightly <b>".')).to_be_visible()
    expect(page.get_by_text("Views", exact=True)).to_have_count(0)
    assert not outside(SavedView.objects.exists)


def test_values_of_a_measure_are_seen_on_a_phone(page):
    outside(_make_runs)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{reverse('admin:benchmarks_run_changelist')}?measure=nDCG%4010&status__exact=completed&mode=dense")
    assert page.locator("tr.data-row").first.bounding_box()["y"] < 400, "rows are seen at first sight"
    cells = page.locator("td.field-measured")
    expect(cells).to_have_text([".5000", ".6000"])
    assert cells.evaluate_all("cells => cells.every(cell => cell.scrollHeight <= cell.clientHeight)")


def test_words_find_a_choice_of_a_filter(page):
    outside(lambda: [make_dataset({"q": []}, name=f"Fruit {number}") for number in range(13)])
    page.goto(reverse("admin:datasets_query_changelist"))
    page.get_by_role("button", name="Filters").click()
    chips = page.get_by_label("Filters").get_by_role("link", name="Fruit")
    expect(chips).to_have_count(13)
    page.get_by_label("Find: dataset").fill(" fruit 12 ")
    expect(chips).to_have_text(["Fruit 12"])
    chips.click()
    expect(page.locator(".bb-list-head .bb-chip")).to_contain_text("Fruit 12")
