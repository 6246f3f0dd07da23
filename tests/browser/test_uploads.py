"""Uploads: files that are too large are refused before they are sent, and each error is shown once."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import expect

from apps.collections.models import Collection
from apps.datasets.models import DatasetVersion
from tests.browser.reader import PATIENCE, outside
from tests.files.samples import write_file

pytestmark = pytest.mark.thorough


@pytest.fixture
def site(serve: Callable[..., str]) -> str:
    return serve(BENCHMARK_DATASET_MAX_UPLOAD_BYTES="1000")


def test_a_file_that_is_too_large_is_not_sent(page, tmp_path):
    file = tmp_path / "questions.csv"
    page.goto(reverse("admin:datasets_dataset_add"))
    sent = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    file.write_text("x" * 2_000_000)
    page.set_input_files("[name=file]", str(file))
    error = page.locator("#error_file")
    assert "The file has 1.9 MB; the limit is 1000\u00a0bytes. Import larger files" in (error.text_content() or "")
    assert page.input_value("[name=file]") == ""
    assert sent == []
    file.write_text("query,document,grade\nWhat?,d1,1\n")
    with page.expect_response("**/preview/"):
        page.set_input_files("[name=file]", str(file))
    assert error.text_content() == ""


def test_collection_is_named_after_its_file(page, tmp_path):
    file = tmp_path / "shop.v2.csv"
    file.write_text("id,text\n1,Pear\n")
    page.goto(reverse("admin:collections_collection_add"))
    page.set_input_files("[name=file]", str(file))
    expect(page.locator("#preview")).to_contain_text("the collection “shop.v2”", timeout=PATIENCE)
    page.goto(reverse("admin:collections_collection_add"))
    page.fill("[name=name]", "Shop")
    page.set_input_files("[name=file]", str(file))
    expect(page.locator("#preview")).to_contain_text("the collection “Shop”", timeout=PATIENCE)


def test_a_taken_name_is_refused_once_with_its_remedy(page, tmp_path):
    for number, grade in enumerate((1, 2)):
        page.goto(reverse("admin:datasets_dataset_add"))
        page.set_input_files(
            "[name=file]", write_file(tmp_path / "fruit.csv", f"query,document,grade\npear,d1,{grade}\n")
        )
        page.wait_for_selector("#preview >> text=1 query with 1 judgment")
        if number:
            refusal = page.get_by_text("is frozen with other content")
            expect(refusal).to_have_count(1)
            expect(refusal).to_be_visible()  # its fold is open
            expect(page.get_by_role("button", name="Import", exact=True)).to_have_count(0)
            page.click("text=Import as version 2")
            expect(refusal).to_have_count(0)
        page.get_by_role("button", name="Import", exact=True).click()
        page.wait_for_url("**/change/")
    assert list(DatasetVersion.objects.order_by("number").values_list("number", "label")) == [(1, ""), (2, "2")]


def test_a_refused_form_has_each_error_once(page, tmp_path):
    outside(lambda: Collection.objects.create(name="fruit", owner=User.objects.get(username="ada")))
    page.goto(reverse("admin:collections_collection_add"))
    page.set_input_files("[name=file]", str(write_file(tmp_path / "fruit.csv", "id,text\nd1,A pear.\n")))
    refusal, link = page.get_by_text("You already have a collection"), page.get_by_role("link", name="Name")
    page.wait_for_selector("#preview >> text=1 document")
    for _ in range(2):  # by the preview; by the form that is sent
        expect(refusal).to_have_count(1)
        expect(link).to_have_count(1)
        with page.expect_response("**/add/"):
            page.click("button:has-text('Upload and import')")
        page.wait_for_selector("#form_faults .bb-faulty")
    page.click("text=Name it fruit (2)")
    expect(refusal).to_have_count(0)
    expect(link).to_have_count(0)
    page.click("button:has-text('Upload and import')")
    page.wait_for_url("**/change/")
    assert set(Collection.objects.values_list("name", flat=True)) == {"fruit", "fruit (2)"}
