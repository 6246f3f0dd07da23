"""Why a query fails, a judgment on it, and the value that moves: by links, keys and buttons alone."""

import pytest
from django.urls import reverse
from playwright.sync_api import Locator, Page, expect

from apps.collections.records import DocumentRecord
from apps.datasets.models import Judgment, Query
from apps.datasets.records import JudgmentRecord, QueryRecord
from apps.records.models import Benchmark, QueryResult
from benchbench.site.panels import change_url
from tests.browser.reader import PATIENCE, outside, press
from tests.created import run_benchmark
from tests.library import ENCODER, import_all, make_library

pytestmark = pytest.mark.thorough


def make_misjudged() -> Benchmark:
    """Make a benchmark whose first query fails: the documents with most of its words are judged not relevant."""
    library = make_library(documents=20, queries=3)
    judgments = Judgment.objects.filter(query__key="q000")
    judgments.filter(grade__gt=1).update(grade=0)
    judgments.filter(grade=1).update(grade=3)
    matrix = {"search_modes": ["dense", "sparse"], "k_values_for_metrics": [5, 10]}
    return run_benchmark(library, name="Which mode?", matrix=matrix)


def open_link(page: Page, link: Locator) -> None:
    """Follow a link by keyboard."""
    link.first.focus()
    with page.expect_navigation():
        page.keyboard.press("Enter")


def open_worst_query(page: Page) -> None:
    """Go from a benchmark's page over its best run and the worst query there to the page of that query."""
    open_link(page, page.locator("#board tbody tr[data-run] th a"))
    open_link(page, page.locator("table.bb-queries tbody th a"))
    expect(page.locator("#ranking, #lost").first).to_be_visible()
    open_link(page, page.get_by_role("link", name="This query in every run"))


def history_of(page: Page) -> list[list[str]]:
    rows: list[list[str]] = page.locator("#history tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent.trim()))"
    )
    return rows


def test_judging_a_failing_query_moves_its_value(page):
    benchmark: Benchmark = outside(make_misjudged)
    page.goto(reverse("admin:benchmark_results", args=[benchmark.pk]))
    open_worst_query(page)
    page.locator("#values").scroll_into_view_if_needed()  # figures are drawn where they are seen
    expect(page.locator("[data-chart] .scatterlayer .point")).to_have_count(2, timeout=PATIENCE)
    assert page.locator("table.bb-ranks tbody td").count() >= 2
    (before,) = history_of(page)

    page.get_by_text("judged not relevant").first.focus()  # where the found documents turn out to be
    page.keyboard.press("Enter")
    page.locator("#judgments details .bb-act").first.focus()
    page.keyboard.press("Enter")
    form = page.locator("#judge-here form")
    expect(form).to_be_visible()
    form.locator("button[name=grade]").first.wait_for()
    local = page.url
    with page.expect_navigation():
        page.keyboard.press("3")
    assert page.url == local, "the benchmark and the version stay chosen"
    expect(page.get_by_text("Draft of version 2 of questions, with 1 change")).to_be_visible()

    press(page, "Freeze, resolve, re-score")
    page.click("button[name=finish]")
    expect(page.locator("#moves table")).to_be_visible()
    open_link(page, page.get_by_role("link", name=benchmark.name))
    open_worst_query(page)
    after, first = history_of(page)
    assert first == before
    assert (after[0], after[1]) == ("v2", "1 change: 1 judgment changed")
    assert [float(value) for value in after[2:]] > [float(value) for value in before[2:]], "the values rose"


def make_large() -> tuple[str, str]:
    """Return the addresses of a query with 100 judgments over 1,000 untitled documents, and of a ranking."""
    text = "On pears and plums, number {0}, which tells at length of a garden and of its trees. " * 40
    documents = [
        DocumentRecord(f"m{number}", "", text=f"Case {number}. " + text.format(number)) for number in range(1000)
    ]
    judged = [JudgmentRecord({"document_id": f"m{number}"}, grade=number % 3) for number in range(0, 1000, 10)]
    queries = [QueryRecord("q1", "pears of number", judgments=judged), QueryRecord("q2", "plum", judgments=judged[:3])]
    mapping = import_all(documents, queries, name="keywords", encoder=ENCODER)
    matrix = {"search_modes": ["dense", "sparse"], "k_values_for_metrics": [5, 10], "rrf_k_values": [10, 60]}
    run_benchmark(mapping, name="large", matrix=matrix)
    query = Query.objects.get(key="q1")
    return change_url(query), change_url(QueryResult.objects.filter(query=query).first())


def test_query_pages_are_short_and_find_documents(page):
    query, ranking = outside(make_large)
    page.set_viewport_size({"width": 1440, "height": 900})
    for address in (query, ranking):
        page.goto(address)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollHeight") <= 4000, address
        content = page.evaluate("document.querySelector('#main-content, main, body').innerText")
        assert "Case " in content
    page.goto(query)
    page.fill("#find input[type=search]", "Case 777.")
    page.keyboard.press("Enter")
    expect(page.locator("#find .bb-hit")).to_have_count(1)
    page.locator("#find .bb-act").click()
    with page.expect_navigation():
        page.locator("#judge-here button[name=grade]").first.wait_for()
        page.keyboard.press("2")
    expect(page.locator("#find")).to_contain_text("draft")
    page.fill("#find input[type=search]", "")
    page.keyboard.press("j")
    expect(page.locator("#find input[type=search]")).to_have_value("j")
    page.locator("h2").first.click()
    with page.expect_navigation():
        page.keyboard.press("j")
    expect(page.get_by_role("heading", name="plum", exact=True)).to_be_visible()
