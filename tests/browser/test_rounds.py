"""Judging a round as people do it: by keys, by touch, without a connection, two at once; and what closing changes."""

import os
from typing import Any

from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, expect

from apps.judging.models import Grade, Round
from tests.browser.conftest import PATIENCE, outside
from tests.judging.rounds import make_orchard, open_for

SETTLED = 220  # milliseconds, in which a second key is taken for a bounce
READY = "!document.querySelector('[data-say=grade]').disabled"
# Press a key, and tell after how many milliseconds the next item is painted.
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
    return open_for(benchmark, list(User.objects.filter(username__in=["ada", *names])), owner=ada, **options)


def judge(page: Page, opened: Round) -> None:
    page.goto(reverse("admin:round_judge", args=[opened.pk]))
    page.wait_for_function(READY)


def said(page: Page, words: str) -> None:
    expect(page.locator("#judging-said")).to_contain_text(words, timeout=PATIENCE)


def kept(page: Page) -> None:
    expect(page.locator("#judging-connection")).to_have_text("Everything is kept.", timeout=PATIENCE)


def count(opened: Round) -> int:
    return outside(lambda: Grade.objects.filter(item__round=opened).count())


def test_thirty_grades_by_keyboard_alone(page: Page) -> None:
    opened = outside(opened_for)
    judge(page, opened)
    waits = []
    for place in range(30):
        page.wait_for_timeout(SETTLED)
        waits.append(page.evaluate(PRESS, str(place % 3)))
    assert min(waits) >= 0, "each key graded an item that was there already"
    print(f"key to next item: median {sorted(waits)[15]:.1f} ms, most {max(waits):.1f} ms")
    kept(page)
    assert count(opened) == 30
    look(page, "judge")


def look(page: Page, name: str) -> None:
    """Keep pictures of a page for whoever wants to see it, where BENCHBENCH_PICTURES names a folder."""
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
