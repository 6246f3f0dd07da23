"""Two people who edit one query at once, each in a browser."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from apps.datasets.models import Query
from tests.browser.reader import outside
from tests.factories import make_dataset

pytestmark = pytest.mark.thorough


def test_refused_form_can_be_sent_again(page: Page) -> None:
    outside(lambda: make_dataset({"q": [("d1", 1)]}))
    query = outside(Query.objects.get)
    page.goto(reverse("admin:query_edit", args=[query.pk]))
    outside(lambda: Query.objects.update(notes="by another", split="test"))
    page.fill("#id_notes", "mine")
    page.get_by_role("button", name="Save in the draft").click()
    expect(page.get_by_text("changed this to “by another” after you opened the page")).to_be_visible()
    expect(page.locator("#id_notes")).to_have_value("mine")
    expect(page.locator("#id_split")).to_have_value("test")
    page.get_by_role("button", name="Save in the draft").click()
    page.wait_for_url(lambda url: "/edit/" not in url)
    stored = outside(lambda: Query.objects.get(until=None))
    assert (stored.notes, stored.split) == ("mine", "test")
