"""Every page against axe-core, in light on a wide screen, in dark on a narrow one; and how long it is on each."""

import json
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.contrib.auth.models import User
from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as StillWaitingError

from tests.admin.addresses import make_world, paths
from tests.browser.reader import MOST_PIXELS, PATIENCE, outside
from tests.everywhere import make_row_everywhere

pytestmark = pytest.mark.thorough

WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
GRAVE = ("serious", "critical")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
OF_LOOKS = ["color-contrast", "scrollable-region-focusable", "target-size"]  # what another theme or width can change
# Of rows that are made of the same elements, such as those of a list, the first is looked at.
CHECK = """async ([rules, dark, whole]) => {
    document.documentElement.classList.toggle("dark", dark);
    const rows = new Set();
    const repeated = [...document.querySelectorAll("tbody tr")].filter((row) => {
        const nameless = row.innerHTML.replace(/ (id|href|value|name|title|for|aria-label)="[^"]+"/g, " $1");
        const made = row.className + nameless.replace(/>[^<]*[^<\\s][^<]*</g, ">words<");
        return rows.has(made) || !rows.add(made);
    });
    const asked = { resultTypes: ["violations"], runOnly: rules, preload: false };
    const exclude = [["#swagger-ui"], ...(whole ? [] : [["#nav-sidebar"]]), ...repeated];  // the first is its maker's
    const { violations } = await axe.run({ exclude }, asked);
    const told = (nodes) => nodes.map(({ target, failureSummary }) => [target.join(" "), failureSummary]);
    return violations.map(({ id, impact, nodes }) => [id, impact, told(nodes)]);
}"""
REFUSED = "Content Security Policy"  # what the browser says of what it does not load or run
SETTLED = "() => window.axe && document.querySelector('main') && !document.querySelector('.htmx-request')"
ROWS = 25  # of each list, as many as it shows
HEIGHT = "() => document.documentElement.scrollHeight"
FITS = "() => document.documentElement.scrollWidth <= innerWidth"
LANDMARKS = """() => ["main", "a[href='#main-content']"].map((one) => document.querySelectorAll(one).length)"""


# Three tests, so that two processes share them. What is not part of Django's pages is the third.
KINDS = {"lists": ("changelist", "history", "delete"), "forms": ("add", "change"), "pages of ours": ()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.long
def test_no_page_has_a_grave_fault(page, kind):
    hits = {name: path for name, path in outside(make_paths).items() if kind_of(name) == kind}
    assert len(hits) > 20
    context = page.context
    context.add_init_script(AXE_SCRIPT)
    visitor = Visitor(context.new_page())  # which may be shown an error, where `page` may not
    faults = {name: visitor.faults_of(name, path) for name, path in hits.items()}
    if kind == "pages of ours":
        faults["not found"] = visitor.faults_of("not found", "/admin/nowhere/", status=404)
        context.clear_cookies()
        faults["sign in"] = visitor.faults_of("sign in", "/admin/login/")
    faults = {name: message for name, message in faults.items() if message}
    assert not faults, json.dumps(faults, indent=1)


def kind_of(name: str) -> str:
    return next((kind for kind, layouts in KINDS.items() if layout_of(name) in layouts), "pages of ours")


def make_paths() -> dict[str, str]:
    ada = User.objects.get(username="ada")
    make_world(ada)
    for number in range(ROWS):
        make_row_everywhere(number)
    result = paths(ada)
    assert len(result) > 90
    # Django's page for what was done by hand: the same for every model, and here without a row.
    _, *histories = (name for name in result if layout_of(name) == "history")
    return {name: path for name, path in result.items() if name not in histories}


class Visitor:
    """Looks at pages: at each in light, and in dark and narrow at the first of each layout; once at the sidebar."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.set_default_timeout(PATIENCE)
        # Figures are pictures with a name. Not by a route: then nothing is cached, and each page loads every file.
        page.context.new_cdp_session(page).send("Network.setBlockedURLs", {"urls": ["*/plotly.min.js"]})
        self.layouts: set[str] = set()
        self.refused: list[str] = []
        page.on("console", lambda message: self.refused.append(message.text) if REFUSED in message.text else None)

    def faults_of(self, name: str, path: str, *, status: int = 200) -> list[Any]:
        """Return what is wrong with a page."""
        self.page.set_viewport_size(WIDE)
        answer = self.page.goto(path)
        assert answer
        if answer.status != status:
            return [f"answers {answer.status}"]
        try:
            self.page.wait_for_function(SETTLED)
        except StillWaitingError:
            return ["still loads a fragment, or has no main part"]
        landmarks = self.page.evaluate(LANDMARKS)
        faults: list[Any] = [*self.refused]
        self.refused.clear()
        faults += [] if landmarks == [1, 1] else ["has no main landmark, or no link to it"]
        faults += self._check(RULES, dark=False, complete=not self.layouts)
        faults += self._find_height()
        self.page.set_viewport_size(NARROW)
        faults += self._find_height()
        if (layout := layout_of(name)) not in self.layouts:
            faults += self._check(OF_LOOKS, dark=True, complete=not self.layouts)
            if not name.startswith("django_rq:"):  # those are another maker's
                faults += self._find_width()
            self.layouts.add(layout)
        return faults

    def _find_height(self) -> list[str]:
        height = self.page.evaluate(HEIGHT)
        return [f"has {height} pixels at a width of {self.page.viewport_size}"] if height > MOST_PIXELS else []

    def _find_width(self) -> list[str]:
        """Return that a page stays wider than the window: figures and tables adapt to it a moment later."""
        try:
            self.page.wait_for_function(FITS)
        except StillWaitingError:
            return ["is wider than a phone"]
        return []

    def _check(self, rules: list[str], *, dark: bool, complete: bool) -> list[Any]:
        evaluation = self.page.evaluate(CHECK, [rules, dark, complete])
        return [(id, "dark" if dark else "light", nodes) for id, impact, nodes in evaluation if impact in GRAVE]


OWN_LAYOUTS = ("run_change", "queryresult_change", "_query_change", "_document_change")


def layout_of(name: str) -> str:
    """Return which pages look alike: the lists of all models, their forms, and each page of ours by itself."""
    route = name.partition(" ")[0]
    verb = route.rpartition("_")[2]
    ours = route.count("_") < 2 or "?" in name or route.endswith(OWN_LAYOUTS)
    return verb if verb in ("changelist", "add", "change", "delete", "history") and not ours else name
