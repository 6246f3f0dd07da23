"""The page of a running benchmark on sockets that hang: what it shows is right, and it says "Live" only while it is."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from apps.execution.launching import launch
from apps.operations.models import Operation
from apps.operations.working import wait
from tests.browser.reader import PATIENCE, make_benchmark, outside
from tests.browser.relay import NEVER, SILENT, Relay, relaying

pytestmark = pytest.mark.thorough

FRAGMENT = "**/live/*"
# Notes each state that the page says, with the reader's clock.
NOTE = """
window.said = [];
new MutationObserver(() => {
    const words = document.querySelector("[data-live-state]")?.textContent ?? "";
    if (window.said.at(-1) !== words) window.said.push(words);
}).observe(document, { subtree: true, childList: true, characterData: true });
"""


@pytest.fixture
def relay(site: str) -> Iterator[Relay]:
    with relaying(site) as created:
        yield created


@pytest.fixture
def operation(site: str) -> Operation:
    return outside(lambda: launch(make_benchmark("Behind a relay")))


def open_page(page: Page, relay: Relay, operation: Operation) -> Page:
    """Open the benchmark's page through the relay, which has the cookie of the reader's session."""
    page.add_init_script(NOTE)
    page.goto(f"{relay.address}/admin/benchmarks/benchmark/{operation.subject_id}/results/")
    return page


def announcements_of(page: Page) -> list[str]:
    evaluation: list[str] = page.evaluate("() => window.said")
    return evaluation


@pytest.mark.parametrize("sockets", [SILENT, NEVER])
def test_a_socket_that_hangs_stops_nothing(page, relay, operation, sockets):
    relay.sockets = sockets
    open_page(page, relay, operation)
    page.wait_for_selector("text=Connecting")
    outside(lambda: wait(operation))
    page.wait_for_selector('#board[data-active="false"]', state="attached", timeout=PATIENCE)
    assert "Live" not in announcements_of(page)


@pytest.mark.parametrize("sockets", [SILENT, NEVER])
def test_a_socket_that_hangs_is_tried_again(page, relay, operation, sockets):
    relay.sockets = sockets
    open_page(page, relay, operation)
    page.wait_for_selector("text=Reconnecting")
    assert "Live" not in announcements_of(page)
    relay.sockets = "through"
    page.wait_for_selector(".bb-live-state:text-is('Live')")
    assert relay.asked >= 2


@pytest.mark.long
def test_a_socket_that_falls_silent_is_left(page, relay, operation):
    open_page(page, relay, operation)
    state = page.locator(".bb-live-state")
    expect(state).to_have_text("Live", timeout=PATIENCE)
    page.wait_for_timeout(12_000)  # of a benchmark that has nothing to say
    assert set(announcements_of(page)[announcements_of(page).index("Live") :]) == {"Live"}
    relay.halts = True
    expect(state).not_to_have_text("Live", timeout=PATIENCE)
    expect(state).to_contain_text("Not up to date", timeout=PATIENCE)
    relay.halts = False
    outside(lambda: wait(operation))
    page.wait_for_selector('#board[data-active="false"]', state="attached", timeout=PATIENCE)


@pytest.mark.parametrize("event", ["online", "visibilitychange", "pageshow"])
def test_a_reader_who_is_back_sees_the_present(page, relay, operation, event):
    open_page(page, relay, operation)
    page.wait_for_selector(".bb-live-state:text-is('Live')")
    target = "document" if event == "visibilitychange" else "window"
    kind = "PageTransitionEvent" if event == "pageshow" else "Event"
    with page.expect_request(FRAGMENT, timeout=PATIENCE):  # which nothing else sends while the page is live
        page.evaluate(f"() => {target}.dispatchEvent(new {kind}('{event}', {{ persisted: true }}))")
    page.wait_for_selector(".bb-live-state:text-is('Live')")


def test_a_page_without_network_is_not_live(page, relay, operation):
    open_page(page, relay, operation)
    page.wait_for_selector(".bb-live-state:text-is('Live')")
    page.context.set_offline(True)
    expect(page.locator(".bb-live-state")).not_to_have_text(
        "Live", timeout=9000
    )  # by silence it would take ten seconds
    with page.expect_response(FRAGMENT, timeout=4500):  # by polling it would take five seconds
        page.context.set_offline(False)
    page.wait_for_selector(".bb-live-state:text-is('Live')")


def test_a_machine_that_slept_asks_at_once(page, relay, operation):
    page.clock.install()
    open_page(page, relay, operation)
    page.wait_for_selector(".bb-live-state:text-is('Live')")
    with page.expect_request(FRAGMENT, timeout=PATIENCE):
        page.clock.fast_forward(3_600_000)
    page.wait_for_selector(".bb-live-state:text-is('Live')")


def test_an_old_body_is_not_called_live(page, relay, operation):
    second = page.context.new_page()  # which may be shown errors
    second.set_default_timeout(PATIENCE)
    open_page(second, relay, operation)
    second.wait_for_selector(".bb-live-state:text-is('Live')")
    second.route(FRAGMENT, lambda route: route.fulfill(status=503, body=""))
    second.evaluate("() => window.dispatchEvent(new Event('online'))")
    second.wait_for_selector("text=Not up to date")
    second.unroute(FRAGMENT)
    second.wait_for_selector(".bb-live-state:text-is('Live')")
