"""The policy that forbids pages to evaluate texts: every page keeps it, unfold's shell works, and no text acts."""

import hashlib
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, expect

from apps.accounts.models import AccessToken
from apps.accounts.tokens import find_token
from apps.records.models import Schedule
from tests.admin.addresses import make_world, paths
from tests.browser.reader import PATIENCE, outside
from tests.checkout import CHECKOUT
from tests.marked import make_marked_world

pytestmark = pytest.mark.thorough

# What acts calls this; what the policy refuses is noted too, in frames and before the page has loaded as well.
WATCH = """
window.acted = [];
window.pwned = () => window.acted.push("a text was run");
document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sourceFile, lineNumber }) => {
    window.acted.push(`${violatedDirective} ${blockedURI} ${sourceFile}:${lineNumber}`);
});
"""
# Draws every figure, with the words that each first point shows under the pointer.
DRAW = """async () => {
    for (const place of document.querySelectorAll("[data-chart]")) {
        await draw(place);
        Plotly.Fx.hover(place, [{ curveNumber: 0, pointNumber: 0 }]);
    }
}"""
# Elements made of a text, links in figures, and expressions that Alpine cannot read or whose names it does not know.
LOOK = """() => {
    const found = [...window.acted];
    if (document.querySelector(".pwned")) found.push("a text became an element");
    for (const link of document.querySelectorAll("svg a")) found.push(`a figure has the link ${link.outerHTML}`);
    const silent = /^x-(?:cloak|ref|teleport|for|ignore|transition.*)$/;
    const words = new Set(["true", "false", "null", "undefined"]);
    const elements = [...document.querySelectorAll("*")].flatMap((one) => [[one, one], ...inside(one)]);
    for (const [element, place] of elements) {
        for (const { name, value } of element.attributes) {
            if (!name.startsWith("x-") || !value || silent.test(name)) continue;
            const readable = makeReadable(value).trim().replace(/;$/, "");
            if (!readable) continue;
            try { Alpine.evaluate(place, `false && (${readable})`); }
            catch (error) { found.push(`${name}="${value}": ${error.message}`); }
            if (!name.startsWith("x-on") || element !== place) continue;
            const known = Alpine.$data(place);
            const names = readable.replace(/'[^']*'/g, "").match(/(?<![.\\w$])[A-Za-z]\\w*/g) ?? [];
            const unknown = names.filter((one) => !words.has(one) && !(one in known));
            for (const one of unknown) found.push(`${name}="${value}": no ${one}`);
        }
    }
    return [...new Set(found)];
    function inside(element) {
        const parts = element instanceof HTMLTemplateElement ? element.content.querySelectorAll("*") : [];
        return [...parts].map((one) => [one, element]);
    }
}"""
SETTLED = "() => !document.querySelector('.htmx-request') && document.readyState === 'complete'"
OF_QUEUES = "$(...).actions is not a function"  # django-rq's page calls what unfold's script does not have


@pytest.fixture
def visited(page: Page) -> Page:
    """A page on which `acted` notes what texts did and what the policy refused."""
    created = page.context.new_page()
    created.set_default_timeout(PATIENCE)
    created.add_init_script(WATCH)
    return created


@pytest.mark.long
def test_no_text_acts_and_every_page_keeps_the_policy(visited: Page) -> None:
    result = outside(make_paths)
    assert len(result) > 90
    errors: list[str] = []
    visited.on("pageerror", lambda error: errors.append(str(error)))
    visited.on("console", lambda message: errors.append(message.text) if "Alpine" in message.text else None)
    faults = {name: answer for name, path in result.items() if (answer := list_faults(visited, path, errors))}
    assert faults == {}


def make_paths() -> dict[str, str]:
    ada = User.objects.get(username="ada")
    make_marked_world(ada)
    ada.refresh_from_db()
    return paths(ada)


def list_faults(page: Page, path: str, errors: list[str]) -> list[Any]:
    """Return what acted on a page, what it broke, and which of its expressions are unreadable."""
    errors.clear()
    page.goto(path)
    page.wait_for_function(SETTLED)
    if page.locator("[data-chart]").count():
        page.evaluate(
            f"async () => {{ const {{ draw }} = await import('/static/benchbench/chart.js'); await ({DRAW})(); }}"
        )
    evaluation = page.evaluate(LOOK if page.evaluate("() => Boolean(window.Alpine)") else "() => window.acted")
    return [*evaluation, *(error for error in errors if error != OF_QUEUES)]


def test_the_shell_works_under_the_policy(visited: Page) -> None:
    outside(lambda: make_world(User.objects.get(username="ada")))
    schedule = outside(Schedule.objects.get)
    page, sidebar = visited, visited.locator("#nav-sidebar")
    page.goto("/admin/")
    page.locator("span.material-symbols-outlined:visible", has_text="dock_to_right").click()
    expect(sidebar).to_be_hidden()
    page.reload()
    expect(sidebar).to_be_hidden()
    page.locator("span.material-symbols-outlined:visible", has_text="dock_to_right").click()
    expect(sidebar).to_be_visible()

    page.click("text=unfold_more")
    page.click("a:visible:has-text('Dark')")
    page.reload()
    expect(page.locator("html.dark")).to_have_count(1)

    page.wait_for_function(SETTLED)  # before that, nothing hears the keys
    page.keyboard.press("Control+k")
    page.wait_for_function("() => document.activeElement.matches('input')")
    page.keyboard.type(schedule.benchmark.name)
    page.locator("#command-results-list a[href*='/admin/benchmarks/benchmark/']").first.wait_for()
    page.wait_for_load_state("networkidle")  # earlier letters found other rows
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/admin/benchmarks/benchmark/"))

    page.goto(f"/admin/benchmarks/schedule/{schedule.pk}/change/")
    assert page.get_attribute("#schedule_form", "action") == f"/admin/benchmarks/schedule/{schedule.pk}/change/"
    page.fill("[name=name]", "every night")
    page.click("[name=_save]")
    page.wait_for_selector("text=every night")

    page.goto("/admin/benchmarks/schedule/")
    page.click("text=Filters")
    expect(page.locator("#changelist-filter, #filter-form").first).to_be_visible()
    page.keyboard.press("Escape")
    page.check(".action-select >> nth=0")
    run = page.locator("#changelist-actions button[name=index]")
    expect(run).to_be_hidden()
    page.select_option("#changelist-actions select", "run_selected")
    expect(run).to_be_visible()
    assert page.evaluate("() => window.acted") == []


def test_new_token_is_copied_by_a_click(visited: Page) -> None:
    visited.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visited.goto(reverse("admin:accounts_accesstoken_add"))
    visited.get_by_label("Name").fill("pipeline")
    visited.get_by_role("button", name="Make the token").click()
    visited.get_by_role("button", name="Copy").click()
    expect(visited.get_by_role("button", name="Copied")).to_be_visible()
    copied = visited.evaluate("() => navigator.clipboard.readText()")
    assert outside(lambda: find_token(copied)) == outside(AccessToken.objects.get)
    assert visited.evaluate("() => window.acted") == []


# The ways in which markup acts where it is not escaped.
ACTING = (
    "<i x-data x-init='pwned()'></i>",
    "<i x-data x-init='window.pwned()'></i>",
    "<i x-data x-init='$el.ownerDocument.defaultView.pwned()'></i>",
    "<i x-data x-html='`<img src=x onerror=pwned()>`'></i>",
    "<i hx-on:load='pwned()' hx-get='/healthz' hx-trigger='load[pwned()]' hx-vals='js:{a: pwned()}'></i>",
    "<img src=x onerror='pwned()'>",
    "<a id=script href='javascript:pwned()'>a</a>",
)


def test_markup_in_a_page_would_not_run(visited: Page) -> None:
    visited.goto("/admin/")
    visited.evaluate(
        """async (texts) => {
            document.getElementById("content").insertAdjacentHTML("beforeend", texts.join(""));
            htmx.process(document.body);
            document.getElementById("script").click();
            await new Promise((done) => setTimeout(done, 1000));
        }""",
        ACTING,
    )
    assert "a text was run" not in visited.evaluate("() => window.acted")


def test_alpine_is_the_package_that_is_named() -> None:
    folder = CHECKOUT / "static/unfold/js/alpine"
    text = (folder / "LICENSE").read_text()
    assert hashlib.sha256((folder / "alpine.js").read_bytes()).hexdigest() in text
    assert re.search(r"@alpinejs/csp \d+\.\d+\.\d+,", text)
