"""A file that is too large is informed so before it is sent."""

from collections.abc import Callable

import pytest
from django.urls import reverse

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
    assert page.input_value("[name=name]") == "shop.v2"
    page.fill("[name=name]", "Shop")
    page.set_input_files("[name=file]", str(file))
    assert page.input_value("[name=name]") == "Shop"
