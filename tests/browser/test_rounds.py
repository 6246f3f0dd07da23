"""Judging a hit, and a round: by keys, by touch, without a connection, two at once; and what closing changes."""

import os
import re
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, Route, expect

from apps.datasets.models import Judgment
from apps.judging.llm.calibration import draw_sample
from apps.judging.models import Grade, Round
from apps.records.models import QueryResult
from benchbench.site.panels import change_url
from tests.browser.reader import PATIENCE, outside, press, sign_in
from tests.created import run_benchmark
from tests.judging.rounds import grade_sample, judged_by_model, make_orchard, make_simulated, open_for
from tests.library import make_library

pytestmark = pytest.mark.thorough

SETTLED = 220  # milliseconds, in which a second key is taken for a bounce
HELD_ITEMS = "JSON.parse(document.getElementById('judging-data').textContent).held"
READY = "() => !document.querySelector('[data-say=grade]').disabled"
# Press a key, and report after how many milliseconds the next item is painted.
PRESS = """async (key) => {
    const item = document.getElementById("judging-item");
    const before = item.innerHTML;
    const start = performance.now();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    if (item.innerHTML === before) return -1;
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    return performance.now() - start;
}"""


def opened_for(*names: str, **options: Any) -> Round:
    benchmark = make_orchard()
    ada = User.objects.get(username="ada")
    opened = open_for(benchmark, list(User.objects.filter(username__in=["ada", *names])), owner=ada, **options)
    Round.objects.update(continue_after_settled=True)  # else it stops by itself once its question is settled
    return opened


def judge(page: Page, opened: Round) -> None:
    page.goto(reverse("admin:round_judge", args=[opened.pk]))
    page.wait_for_function(READY)


def expect_message(page: Page, words: str) -> None:
    expect(page.locator("#judging-said")).to_contain_text(words, timeout=PATIENCE)


def expect_saved(page: Page) -> None:
    expect(page.locator("#judging-connection")).to_have_text("Everything is saved.", timeout=PATIENCE)


def count(opened: Round) -> int:
    return outside(lambda: Grade.objects.filter(item__round=opened).count())


def test_thirty_grades_by_keyboard_alone(page):
    opened = outside(lambda: opened_for(guidelines="**Read** the whole text where the passage leaves a doubt."))
    judge(page, opened)
    look(page, "judge")
    waits = []
    begun = time.monotonic()
    for index in range(30):
        page.wait_for_timeout(SETTLED)
        waits.append(page.evaluate(PRESS, str(index % 3)))
    took = time.monotonic() - begun
    assert min(waits) >= 0, "each key graded an item that was there already"
    print(f"key to next item: median {sorted(waits)[15]:.1f} ms, most {max(waits):.1f} ms; {took / 30:.2f} s per grade")
    expect_message(page, "2 Relevant. Next: ")
    assert page.evaluate("document.activeElement.id") == "judging-item"
    expect_saved(page)
    assert count(opened) == 30

    # Undo; a note; can't judge; skip; and undo once more after the page was loaded again.
    page.keyboard.press("u")
    expect_message(page, "Withdrawn: 2 Relevant. Back to: ")
    page.wait_for_timeout(SETTLED)
    page.keyboard.press("n")
    page.keyboard.type("Not 2 but 0.")
    page.keyboard.press("Escape")
    page.keyboard.press("0")
    expect_message(page, "0 Not relevant. ")
    tap(page, "c")
    tap(page, "s")
    expect_saved(page)
    rows = outside(lambda: list(Grade.objects.order_by("-graded_at")[:3].values_list("kind", "grade", "note")))
    assert rows == [("skip", None, ""), ("cannot_judge", None, ""), ("grade", 0, "Not 2 but 0.")]
    judge(page, opened)
    for _ in range(11):
        page.keyboard.press("u")
    expect_message(page, "Nothing to undo.")
    expect_saved(page)
    assert count(opened) == 32 - 10
    page.keyboard.press("f")
    assert page.locator(".bb-full").evaluate("box => box.open")
    page.wait_for_selector("text=Read the whole text where")
    page.keyboard.press("g")
    page.wait_for_selector("text=Read the whole text where", state="hidden")
    page.goto(reverse("admin:round_grades", args=[opened.pk]))
    look(page, "grades")
    page.click("text=Withdraw all 22")
    page.wait_for_selector("text=Withdrawn: 22 grades.")
    assert count(opened) == 0


def test_grades_survive_a_lost_connection_and_count_once(page):
    opened = outside(opened_for)
    judge(page, opened)
    answers: list[bool] = []

    def lose_the_answer(route: Route) -> None:
        """Let the server have it, and the page not know: it sends it again."""
        if answers:
            route.continue_()
        else:
            answers.append(True)
            route.fetch()
            route.abort()

    page.route("**/judge/exchange/", lose_the_answer)
    tap(page, "2")
    page.wait_for_function(
        "() => document.getElementById('judging-connection').textContent.startsWith('No connection')"
    )
    page.context.set_offline(True)
    for grade in "101":
        tap(page, grade)
    expect(page.locator("#judging-connection")).to_contain_text("wait in this browser")
    look(page, "offline")
    page.keyboard.press("u")
    page.wait_for_timeout(SETTLED)
    assert count(opened) == 1
    page.context.set_offline(False)
    expect_saved(page)
    rows = outside(lambda: list(Grade.objects.order_by("graded_at").values_list("grade", flat=True)))
    assert rows == [2, 1, 0]

    # What waits when the page is left is sent when it is opened again.
    page.unroute("**/judge/exchange/")
    page.route("**/judge/exchange/", lambda route: route.abort())
    tap(page, "2")
    page.wait_for_timeout(SETTLED)
    page.unroute("**/judge/exchange/")
    judge(page, opened)
    expect_saved(page)
    assert count(opened) == 4


def tap(page: Page, grade: str) -> None:
    page.wait_for_timeout(SETTLED)
    page.keyboard.press(grade)


def test_touch_judgments_are_adjudicated_and_change_the_leaderboard(page, browser, site):
    grace = outside(lambda: User.objects.create_user("grace", is_staff=True, is_superuser=True))
    opened = outside(lambda: opened_for("grace", overlap=0.05, depth=3, budget=10))
    phone = browser.new_context(base_url=site, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    sign_in(phone, grace, site)
    second = phone.new_page()
    second.set_default_timeout(PATIENCE)
    judge(second, opened)
    assert second.evaluate("document.documentElement.scrollWidth <= innerWidth")
    judge(page, opened)
    both = {id for one in (page, second) for id in one.evaluate(HELD_ITEMS)}
    assert len(both) >= 10
    for one, grade in ((second, "2"), (page, "0")):
        while not one.locator("[data-say=grade]").first.is_disabled():
            one.wait_for_timeout(SETTLED)
            if one is second:
                one.locator(f"[data-grade='{grade}']").tap()
            else:
                one.keyboard.press(grade)
        expect_saved(one)
        one.wait_for_selector(".bb-grading-end")
    look(page, "end")
    phone.close()
    graded = outside(lambda: [tuple(row) for row in Grade.objects.values_list("item", "judge_name")])
    assert len(set(graded)) == len(graded)
    shared = outside(lambda: list(opened.items.filter(wanted=2).values_list("pk", flat=True)))
    assert {item for item, _ in graded if sum(another == item for another, _ in graded) > 1} <= set(shared)

    page.goto(reverse("admin:judging_round_change", args=[opened.pk]))
    page.wait_for_selector("text=to adjudicate.")
    look(page, "round")
    page.click(".bb-menu > summary")
    page.click("text=Adjudicate >> nth=0")
    page.wait_for_function(READY)
    page.wait_for_selector("text=Grades of its judges")
    look(page, "adjudicate")
    while not page.locator("[data-say=grade]").first.is_disabled():
        tap(page, "1")
    page.wait_for_selector("text=No items are left to decide")
    page.wait_for_selector(".bb-button-primary >> text=what happens next")
    expect_saved(page)

    page.goto(reverse("admin:round_close", args=[opened.pk]))
    look(page, "close")
    page.click(".bb-button-primary")
    page.wait_for_url(re.compile("version=2"))
    page.wait_for_selector("text=The round is closed")
    page.wait_for_selector("#moved")


def test_a_round_shows_its_model_and_three_verdicts(page):
    def make() -> Round:
        ada = User.objects.get(username="ada")
        opened = open_for(make_simulated(), [ada], owner=ada, order="random", measure="P@5")
        draw_sample(opened, 30, ada)
        grade_sample(opened, ada)
        judged_by_model(opened)
        return opened

    opened = outside(make)
    page.goto(reverse("admin:judging_round_change", args=[opened.pk]))
    page.wait_for_selector("#llm >> text=Graded by people and the model: 30 pairs")
    page.wait_for_selector("#verdicts >> text=Open a round with the order “queries”")
    look(page, "models")


def look(page: Page, name: str) -> None:
    """Keep pictures of a page for anyone who wants to see it, where BENCHBENCH_PICTURES names a folder."""
    folder = os.environ.get("BENCHBENCH_PICTURES")
    if not folder:
        return
    for dark, width in ((False, 1280), (True, 1280), (False, 390), (True, 390)):
        page.set_viewport_size({"width": width, "height": 844 if width == 390 else 900})
        page.evaluate("(dark) => document.documentElement.classList.toggle('dark', dark)", dark)
        page.wait_for_timeout(300)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        print(name, dark, width, "sideways", wide)
        page.screenshot(path=f"{folder}/{name}-{'dark' if dark else 'light'}-{width}.png")
    page.evaluate("document.documentElement.classList.remove('dark')")
    page.set_viewport_size({"width": 1280, "height": 900})


def make_ranking() -> QueryResult:
    benchmark = run_benchmark(
        make_library(documents=20, queries=4), name="Which mode?", matrix={"search_modes": ["dense"]}
    )
    return benchmark.runs.get().query_results.order_by("pk")[0]


def test_a_hit_is_graded_on_its_page(page):
    result = outside(make_ranking)
    page.goto(change_url(result))
    page.locator(".bb-hit").first.locator("text=Judge").click()
    page.wait_for_selector(".bb-passage")
    page.keyboard.press("n")
    page.keyboard.type("It only mentions them.")
    page.keyboard.press("Escape")
    page.keyboard.press("0")
    page.wait_for_selector("text=Draft of version 2 of questions, with 1 change")
    assert page.locator(".bb-hit").first.locator("text=in the draft: 0").is_visible()
    judged = outside(lambda: Judgment.objects.get(since=2))
    assert (judged.grade, judged.judge, judged.note) == (0, "ada", "It only mentions them.")

    press(page, "Freeze, resolve, re-score")
    page.wait_for_selector("text=Judgments changed")
    press(page, "Freeze, resolve, re-score")
    page.wait_for_url(re.compile(r"moved/\?version=2"))
    page.click("#moves h2 a")
    page.wait_for_selector("#moved >> text=1 judgment changed")
    page.click(".bb-board tbody th a")
    page.wait_for_url(re.compile(r"version=2"))
    assert page.locator("[aria-label='Dataset version of the values'] [aria-current]").text_content() == "v2"
