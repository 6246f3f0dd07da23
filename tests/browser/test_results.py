"""Previews of a slow server, which take nothing away that was chosen, and the comparison of runs in sight."""

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from apps.datasets.models import Query
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.records.models import Benchmark, Repeat, Schedule
from apps.results.exporting import export
from apps.retrieval.indexing import build_index, create_index
from apps.verdicts.schedules.repeats import end_repeat
from benchbench.site.panels import change_url
from tests.benchmarks.gated import GOOD, POOR, make_gated, pinned, search
from tests.browser.reader import MOST_PIXELS, choose, outside
from tests.created import run_benchmark
from tests.factories import make_dataset, make_schedule
from tests.library import ENCODER, make_library

pytestmark = pytest.mark.thorough

PREVIEW = "**/benchmark/preview/"
NAMES = ("keywords", "second", "third")


@pytest.fixture
def library(site: str) -> Mapping:
    def make() -> Mapping:
        mapping = make_library(documents=6, queries=2)
        for name in NAMES[1:]:
            wait(build_index(create_index(mapping.collection, name=name, encoder=ENCODER)))
        return mapping

    return outside(make)


@pytest.fixture
def form(page: Page, library: Mapping) -> Page:
    """The form of a benchmark with all its fields and its first preview; the newest index is ticked."""
    page.goto(f"/admin/benchmarks/benchmark/add/?mapping={library.pk}")
    page.wait_for_selector("#preview >> text=3 runs")
    page.click("text=Everything else")
    return page


def tick(page: Page, name: str) -> None:
    """Tick an index, and wait until its preview is asked for."""
    with page.expect_request(PREVIEW):
        page.check(f"[name=indexes][value={name}]")


def ticked(page: Page) -> list[str]:
    boxes: list[str] = page.locator("[name=indexes]:checked").evaluate_all("boxes => boxes.map(box => box.value)")
    return boxes


def test_boxes_ticked_during_a_preview_request_stay_ticked(form):
    claimed: list[Route] = []
    form.route(PREVIEW, lambda route: claimed.append(route))
    tick(form, "second")
    with form.expect_event("requestfailed") as dropped:
        tick(form, "keywords")
    assert dropped.value == claimed[0].request, "the page waits no more for an answer that is overtaken"
    assert ticked(form) == list(NAMES)
    claimed[1].continue_()
    form.wait_for_selector("#preview >> text=/indexes\\s+keywords, second, third/")
    assert ticked(form) == list(NAMES)


def test_mapping_choice_updates_indexes_and_invalid_values_are_named(form, library):
    tick(form, "second")
    form.select_option("[name=mapping]", "")
    form.wait_for_selector("#preview >> text=Choose a dataset and a collection")
    assert form.locator("[name=indexes]").count() == 0
    form.select_option("[name=mapping]", str(library.pk))
    form.wait_for_selector("#preview >> text=3 runs")
    assert form.locator("[name=indexes]").count() == 3
    assert ticked(form) == []

    form.fill("[name=top_k_values]", "many")
    form.wait_for_selector("#field_top_k_values >> text=“many” is not a whole number")
    assert "runs of" not in str(form.text_content("#preview"))
    form.fill("[name=top_k_values]", "20")
    form.wait_for_selector("#preview >> text=3 runs")
    assert form.locator("#error_top_k_values p").count() == 0


def test_run_import_offers_choices_of_its_dataset(page, tmp_path):
    outside(lambda: make_dataset({"q1": [({"document_id": "a"}, 1)]}))
    page.goto("/admin/benchmarks/benchmark/import-run/")
    run = tmp_path / "mine.run"
    run.write_text("q1 Q0 a 1 0.5 mine\n")
    page.set_input_files("[name=file]", run)
    page.wait_for_selector("#preview >> text=Fix first: Dataset")
    choose(page, "dataset", "questions")
    page.wait_for_selector("#preview >> text=1 of 1 query")
    page.wait_for_selector("[name=version] >> text=questions v1", state="attached")


LONG = "How does the bill of a hospital change where a patient is moved to another ward before the end of the day?"
SETTINGS = (
    "() => JSON.parse(parallel.textContent).data.filter(({ customdata }) => customdata).flatMap(({ text }) => text)"
)
SCROLLED = "areas => areas.filter(area => area.scrollWidth > area.clientWidth).map(area => area.ariaLabel)"


def make_compared() -> Benchmark:
    """Make a benchmark of ada's with two runs."""
    benchmark = search(make_gated(), GOOD, POOR)
    Benchmark.objects.update(owner=User.objects.get(username="ada"))
    return benchmark


def test_runs_are_compared_once_two_are_ticked(page):
    benchmark = outside(make_compared)
    page.goto(reverse("admin:benchmark_results", args=[benchmark.pk]))
    compare = page.get_by_role("button", name="Compare selected")
    expect(compare).to_be_disabled()
    for ticked, run in enumerate(page.locator("input[name=run]").all(), 1):
        run.check()
        expect(compare).to_be_enabled(enabled=ticked > 1)
    page.reload()
    compare = page.get_by_role("button", name="Compare selected")
    ticks = page.locator("input[name=run]:checked").count()
    expect(compare).to_be_enabled(enabled=ticks > 1)


def test_the_list_compares_runs_in_one_click(page):
    outside(make_compared)
    page.goto(reverse("admin:benchmarks_run_changelist"))
    compare = page.get_by_role("button", name="Compare", exact=True)
    expect(compare).to_be_hidden()
    for row in page.locator("input.action-select").all()[:2]:
        row.check()
    compare.click()
    expect(page.get_by_role("heading", name="Comparison of 2 runs")).to_be_visible()


LOSS = "against_baseline: {nDCG@10: {may_lose: 0.01}}"
COUNT_CLICKS = "addEventListener('click', () => sessionStorage.clicks = 1 + Number(sessionStorage.clicks ?? 0), true)"


def make_red_gate() -> None:
    benchmark = make_compared()
    baseline = pinned(benchmark.runs.get(run_order=1))
    ranks = [2] * 5 + [9] + [2] * 4 + [3] * 10  # q06 loses the most
    worse = search(benchmark.mapping, ranks, name="night", completed_at=timezone.now())
    schedule = make_schedule(benchmark, repeats=0, rules=LOSS, baseline="main", owner=baseline.approved_by)
    end_repeat(str(Repeat.objects.create(schedule=schedule, due_at=timezone.now(), benchmark=worse).pk))
    assert Schedule.objects.get().state == "red", Repeat.objects.get().result


def test_four_clicks_from_red_gate_to_query(page):
    outside(make_red_gate)
    page.add_init_script(COUNT_CLICKS)
    page.goto("/admin/")
    page.locator(".bb-task", has_text="turned red").get_by_role("link").click()
    page.get_by_role("link", name="query by query").click()
    page.locator(".bb-queries tbody th a").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("q06")
    assert 0 < int(page.evaluate("sessionStorage.clicks")) <= 4


def test_a_comparison_follows_its_choice_of_measure(page):
    benchmark = outside(make_compared)
    page.goto(f"{reverse('admin:run_compare')}?benchmark={benchmark.pk}")
    page.get_by_label("Measure").select_option("RR")
    expect(page.locator("#differences-of-runs .bb-hint").first).to_contain_text("RR, run −")


def test_an_equal_run_opens_and_is_compared(page):
    def make() -> Benchmark:
        matrix = {"search_modes": ["dense", "sparse"], "top_k_values": [20, 30, 40]}
        benchmark = run_benchmark(make_library(documents=12, queries=4), name="How deep?", matrix=matrix)
        Benchmark.objects.update(owner=User.objects.get(username="ada"))
        return benchmark

    page.goto(reverse("admin:benchmark_results", args=[outside(make).pk]))
    expect(page.locator("tr[data-run]")).to_have_count(2)
    expect(page.get_by_label("Compare run 3")).to_be_hidden()
    page.get_by_text("+ 2 equal").first.click()
    for run in (1, 3):
        page.get_by_label(f"Compare run {run}").check()
    page.get_by_role("button", name="Compare selected").click()
    expect(page.get_by_role("heading", name="Comparison of 2 runs")).to_be_visible()
    page.go_back()
    page.get_by_text("Settings and nDCG@10").click()
    settings = page.locator("[data-chart=parallel][data-linked] .point")  # linked: it listens to clicks
    texts = page.evaluate(SETTINGS)
    expect(settings).to_have_count(len(texts))
    for number, rows in (
        (0, 1),
        (4, 1),
        (0, 2),
        (4, 2),
    ):  # a mode, also a depth that only folded runs have, then neither
        settings.nth(number).scroll_into_view_if_needed()
        box = settings.nth(number).bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(page.locator("[data-chart=parallel] .hovertext")).to_contain_text(texts[number])
        page.mouse.down()
        page.mouse.up()
        expect(page.locator("tr[data-run]:not([hidden])")).to_have_count(rows)
    expect(page.locator("#brushed")).to_be_hidden()


@pytest.mark.parametrize("width", [390, 1280])
def test_long_title_and_menu_stay_in_sight(page, width):
    def make() -> Benchmark:
        benchmark = search(make_gated(), GOOD)
        Benchmark.objects.update(
            owner=User.objects.get(username="ada"), name="Which of both is better? " * 7 + "x" * 25
        )
        return benchmark

    page.set_viewport_size({"width": width, "height": 800})
    page.goto(reverse("admin:benchmark_results", args=[outside(make).pk]))
    assert page.evaluate("() => { const h1 = document.querySelector('h1'); return h1.scrollWidth <= h1.clientWidth; }")
    assert page.evaluate(
        "() => { const h1 = document.querySelector('h1'); return h1.scrollHeight <= h1.clientHeight; }"
    )
    page.locator(".bb-menu > summary").click()
    box = page.locator(".bb-menu > div").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width


def test_comparison_columns_are_unclipped_and_queries_readable(page):
    def make() -> Benchmark:
        benchmark = search(make_gated(), GOOD, POOR)
        Query.objects.update(text=LONG)
        run = benchmark.runs.get(run_order=2)
        run.config |= {
            "search_mode": "hybrid",
            "use_reranker": True,
            "rrf_k": 40,
            "top_k": 100,
            "index": "chunks-of-500",
        }
        run.save()
        Benchmark.objects.update(owner=User.objects.get(username="ada"))
        return benchmark

    benchmark = outside(make)
    page.set_default_timeout(120_000)  # a page that is made for the first time, on a busy machine
    page.goto(f"{reverse('admin:run_compare')}?benchmark={benchmark.pk}")
    page.wait_for_selector(".bb-queries")
    assert page.locator(".bb-scroll").evaluate_all(SCROLLED) == []
    queries = page.locator(".bb-queries tbody th")
    assert queries.count() > 2
    assert min(queries.evaluate_all("cells => cells.map(cell => cell.clientWidth)")) > 250
    assert LONG in str(queries.first.text_content())
    page.click(".bb-contents >> text=Measures")  # which opens the panel, and so loads it
    expect(page.locator("#panel-measures tbody tr").first).to_be_visible()


def test_keys_walk_the_queries_of_a_report(page, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(outside(lambda: "".join(map(str, export(search(make_gated(), GOOD, POOR), "html")))))
    page.goto(file.as_uri())
    for key, number in (("j", 0), ("j", 1), ("k", 0), ("k", 0)):
        page.keyboard.press(key)
        assert page.evaluate("[...document.querySelectorAll('article')].indexOf(document.activeElement)") == number


def test_pages_of_runs_are_short_on_a_phone(page):
    mapping = outside(lambda: make_library(documents=30, queries=30))
    benchmark = outside(
        lambda: run_benchmark(mapping, name="Which mode?", matrix={"search_modes": ["dense", "sparse"]})
    )
    first, second = outside(lambda: list(benchmark.runs.order_by("run_order")))
    comparison = f"{reverse('admin:run_compare')}?run={first.pk}&run={second.pk}"
    page.set_viewport_size({"width": 390, "height": 844})
    documents = reverse("api_docs")
    for address in (change_url(first), comparison, "/admin/datasets/judgment/", reverse("admin:measures"), documents):
        page.goto(address, wait_until="networkidle")
        assert page.evaluate("document.documentElement.scrollHeight") <= MOST_PIXELS, address
        assert page.evaluate("document.documentElement.scrollWidth") == 390, address
