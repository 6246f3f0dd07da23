"""A real browser on a real server with a real worker, all on the database of the test."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.browser.reader import PATIENCE, sign_in

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser() -> str | None:
    """Return the Chromium of this machine: the one CHROMIUM names, one on the PATH, or Playwright's own."""
    labelled = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if labelled:
        return labelled
    with sync_playwright() as playwright:
        bundled = playwright.chromium.executable_path
    return bundled if Path(bundled).exists() else None


@pytest.fixture(scope="package")  # no longer: while it lives, its event loop forbids other tests to run one
def browser() -> Iterator[Browser]:
    executable = find_browser()
    if executable is None:
        sentence = "There is no Chromium here: install one (Debian: apt-get install chromium), or name it in CHROMIUM."
        if os.environ.get("BENCHBENCH_REQUIRE_BROWSER") == "1":
            pytest.fail(sentence)
        pytest.skip(sentence)
    # The synchronous API runs an event loop in this thread, in which Django would refuse to touch the database.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        yield playwright.chromium.launch(executable_path=executable, args=arguments)
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


def is_error(message: ConsoleMessage) -> bool:
    """Return whether a message is an error of ours: not a refused socket, nor a request that is given up or cut off."""
    cut = ("Failed to load resource: net::ERR_FAILED", "Failed to load resource: net::ERR_INTERNET_DISCONNECTED")
    expected = ("WebSocket connection", "htmx:afterRequest", "htmx:sendAbort", *cut)
    return message.type == "error" and not message.text.startswith(expected)


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    """A page whose reader is logged in as a superuser; an error in its console fails the test."""
    # Hashed as the site does it, not as the tests' settings do.
    password = PBKDF2PasswordHasher().encode("ada", "salt", iterations=1000)
    ada = User.objects.create(username="ada", password=password, is_staff=True, is_superuser=True)
    context = browser.new_context(base_url=site, viewport={"width": 1280, "height": 900})
    sign_in(context, ada, site)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if is_error(message) else None)
    yield page
    context.close()
    assert errors == []
