"""Notes of forms that follow what is typed: prompts of an encoder, and the next times of a schedule."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.thorough
QWEN, E5 = "Qwen/Qwen3-Embedding-0.6B", "intfloat/e5-base-v2"


@pytest.mark.parametrize("form", ["retrieval_index_add", "new_evaluation"])
def test_a_button_fills_in_the_usual_prompts(page: Page, site: str, form: str) -> None:
    page.goto(reverse(f"admin:{form}"))
    page.fill("#id_encoder", QWEN)
    expect(page.locator("#field_encoder")).to_contain_text(f"{QWEN} was trained with prompts")
    page.click("text=Use these prompts")
    expect(page.locator("#id_query_prompt")).to_be_visible()
    assert page.input_value("#id_query_prompt").endswith("answer the query\nQuery: ")
    expect(page.locator("text=Use these prompts")).to_have_count(0)


def test_lines_of_several_encoders_get_their_prompts(page: Page, site: str) -> None:
    page.goto(reverse("admin:index_grid"))
    page.fill("#id_encoders", E5)
    page.click("text=Use these prompts")
    expect(page.locator("text=Use these prompts")).to_have_count(0)
    assert page.input_value("#id_encoders") == f'{E5}(query_prompt="query: ", document_prompt="passage: ")'


def test_next_times_follow_the_choice(page: Page, site: str) -> None:
    page.goto(reverse("admin:benchmarks_schedule_add"))
    note = page.locator(".bb-field-note")
    expect(note).to_contain_text(", 03:00 ")
    page.select_option("#id_when", "")
    page.fill("#id_cron", "30 4 1 * *")
    expect(note).to_contain_text(", 04:30 ")
