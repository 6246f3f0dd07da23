"""The main job as a person does it: upload, map, resolve, benchmark, watch, read."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from apps.execution.launching import launch
from apps.operations.working import wait
from apps.records.models import Benchmark, Evaluation
from tests.browser.reader import choose, make_benchmark, outside, press
from tests.library import ENCODER, FRUITS

pytestmark = pytest.mark.thorough

DOCUMENTS = 40
QUERIES = 64


def write_corpus(path: Path) -> Path:
    texts = [f"{FRUITS[n % 10]} {FRUITS[n % 7]} {FRUITS[n % 3]} number {n}" for n in range(DOCUMENTS)]
    lines = [json.dumps({"_id": f"d{n}", "title": f"Document {n}", "text": text}) for n, text in enumerate(texts)]
    path.write_text("\n".join(lines))
    return path


def write_dataset(path: Path) -> Path:
    queries = [
        {
            "query_key": f"q{n}",
            "query_text": f"{FRUITS[n % 10]} and {FRUITS[(n * 3) % 7]}",
            "relevant_docs": [
                {"doc_ref": {"document_id": f"d{n % DOCUMENTS}"}, "relevance_grade": 3},
                {"doc_ref": {"document_id": f"d{(n + 10) % DOCUMENTS}"}, "relevance_grade": 1},
            ],
        }
        for n in range(QUERIES)
    ]
    path.write_text(json.dumps({"schema_version": "1.0", "metadata": {"name": "Fruit questions"}, "queries": queries}))
    return path


def watch(page: Page) -> list[float]:
    """Return the values that the bar of a benchmark's page takes, until the table is final; nothing is reloaded."""
    page.wait_for_selector("[data-live-body]", state="attached")
    page.evaluate(
        """() => {
            window.neverReloaded = true;
            window.seen = [];
            const look = () => {
                const bar = document.querySelector("#bb-progress");
                if (bar && window.seen.at(-1) !== bar.value) window.seen.push(bar.value);
            };
            look();
            new MutationObserver(look).observe(document.querySelector("[data-live-body]"), {
                subtree: true, childList: true, attributes: true,
            });
        }"""
    )
    page.wait_for_selector('#board[data-active="false"]', state="attached")
    assert page.evaluate("window.neverReloaded") is True
    seen: list[float] = page.evaluate("window.seen")
    return seen


def table_of(page: Page, measures: list[str]) -> dict[str, list[str]]:
    """Return what the leaderboard says: for each run, by number, its primary value and the others above their coverage.

    Read at one moment: the page may put the same table in its place meanwhile.
    """
    cells: dict[str, list[str]] = page.evaluate(
        """many => Object.fromEntries([...document.querySelectorAll("#board tbody tr[data-run]")].map(row => {
            const values = [...row.querySelectorAll("td.bb-number")].slice(3, 3 + many);
            const said = [row.querySelector(".bb-figure"), ...values].map(cell => cell.firstChild.textContent.trim());
            return [row.dataset.run, said];
        }))""",
        len(measures),
    )
    return cells


def rounded(value: float) -> str:
    return re.sub(r"^0", "", f"{value:.4f}")


def bring_what_is_searched(page: Page, folder: Path) -> None:
    press(page, "Upload a collection")
    page.fill("[name=name]", "Fruit")
    page.set_input_files("[name=file]", write_corpus(folder / "corpus.jsonl"))
    press(page, "Upload and import")
    page.wait_for_selector(f"text=Imported {DOCUMENTS} documents")

    press(page, "Build an index")
    page.fill("[name=name]", "keywords")
    page.fill("[name=encoder]", ENCODER)
    press(page, "Create and build")
    page.wait_for_selector(".bb-status-ready")


def bring_what_is_asked(page: Page, folder: Path) -> None:
    page.goto("/admin/")
    press(page, "Upload a dataset")
    page.set_input_files("[name=file]", write_dataset(folder / "questions.json"))
    page.wait_for_selector(f"#preview >> text={QUERIES} queries")
    assert page.input_value("[name=name]") == ""
    press(page, "Import")
    page.wait_for_selector(f"text=Imported {QUERIES} queries with {2 * QUERIES} judgments")

    press(page, "Map to a collection")
    choose(page, "collection", "Fruit")
    press(page, "Map and resolve")
    page.wait_for_selector(f"text={2 * QUERIES} of {2 * QUERIES} judgments have a document")


@pytest.mark.long
def test_from_files_to_a_verdict(page, manage, tmp_path):
    page.goto("/admin/")
    manage("manage.py", "worker")
    bring_what_is_searched(page, tmp_path)
    bring_what_is_asked(page, tmp_path)

    press(page, "New benchmark")
    page.fill("[name=name]", "Does hybrid pay?")
    page.click("text=Everything else")
    page.fill("[name=top_k_values]", "5")
    page.wait_for_selector("text=less than the greatest k to measure at")
    page.fill("[name=top_k_values]", "20, 40")
    page.wait_for_selector("#preview >> text=6 runs")
    press(page, "Start")
    seen = watch(page)

    benchmark = Benchmark.objects.get()
    assert benchmark.status == "completed"
    assert seen == sorted(seen)
    assert len(seen) >= 2, "the bar moved"
    measures = ["nDCG@10", "P@10", "R@10", "RR", "AP"]
    means = {str(one.run.run_order): one.means for one in Evaluation.objects.filter(run__benchmark=benchmark)}
    assert len(means) == 6
    expected = {run: [rounded(values[name]) for name in measures] for run, values in means.items()}
    assert table_of(page, measures[1:]) == expected
    page.locator("[data-chart=figure]").scroll_into_view_if_needed()  # it is drawn when it comes near the window
    page.wait_for_selector("[data-chart] .scatterlayer .point")
    ticks = page.locator("[data-chart=figure] .ytick text").all_text_contents()
    assert any(tick.startswith(".") for tick in ticks), ticks
    assert not any(tick.startswith("0.") for tick in ticks), ticks
    page.reload()
    assert table_of(page, measures[1:]) == expected

    page.click("#board tbody tr[data-run] a >> nth=0")
    page.click("#queries tbody a >> nth=0")
    page.wait_for_selector(".bb-hit mark")


def test_the_page_goes_on_when_the_socket_is_lost(page):
    operation = outside(lambda: launch(make_benchmark("Without a socket")))
    page.add_init_script(
        # The policy of the page lets it connect to its own site alone, which would answer.
        "window.WebSocket = class extends EventTarget { constructor() { super(); setTimeout(() => this.close()); }"
        " close() { this.dispatchEvent(new CloseEvent('close', { code: 1006 })); } };"
    )
    page.goto(f"/admin/benchmarks/benchmark/{operation.subject_id}/results/")
    page.wait_for_selector("text=Reconnecting")
    outside(lambda: wait(operation))
    page.wait_for_selector('#board[data-active="false"]', state="attached")
    page.wait_for_selector("text=2 of 2 completed")


def test_no_page_is_wider_than_a_phone(page):
    operation = outside(lambda: wait(launch(make_benchmark("Narrow"))))
    benchmark = Benchmark.objects.get(pk=operation.subject_id)
    run = benchmark.runs.get(run_order=1)
    page.set_viewport_size({"width": 390, "height": 800})
    for path in (
        "/admin/",
        f"/admin/benchmarks/benchmark/{benchmark.pk}/results/",
        f"/admin/benchmarks/run/{run.pk}/change/",
        f"/admin/benchmarks/queryresult/{run.query_results.all()[0].pk}/change/",
        f"/admin/mappings/mapping/{benchmark.mapping_id}/change/",
        "/admin/benchmarks/benchmark/add/",
    ):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


def test_leaderboard_fits_a_laptop_and_shows_names_on_phones(page):
    operation = outside(lambda: wait(launch(make_benchmark("Wide"))))
    page.goto(f"/admin/benchmarks/benchmark/{operation.subject_id}/results/")
    board = page.locator("#board-scroll")
    assert board.evaluate("board => board.scrollWidth - board.clientWidth") == 0
    page.set_viewport_size({"width": 390, "height": 800})
    board.evaluate("board => board.scrollTo(board.scrollWidth, 0)")
    assert board.evaluate("board => board.scrollLeft") > 0
    places = [one.bounding_box() for one in (board, board.locator("tbody th").first, board.locator("thead .bb-name"))]
    left, *names = [position["x"] for position in places if position]
    assert [round(name - left) for name in names] == [1, 1], "beside the frame's line"
