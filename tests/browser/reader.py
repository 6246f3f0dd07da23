"""A reader of pages in a browser."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from playwright.sync_api import BrowserContext, Page

from apps.records.models import Benchmark
from tests.created import create_benchmark
from tests.library import make_library

PATIENCE = 180_000  # milliseconds, which only a page that hangs takes
MOST_PIXELS = 4_000  # the height of a page at first sight
T = TypeVar("T")


def outside(work: Callable[[], T]) -> T:
    """Do `work` in a thread of its own: this one runs Playwright's event loop, in which Channels cannot send."""

    def alone() -> T:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(alone).result()


def sign_in(context: BrowserContext, user: User, address: str) -> None:
    """Sign a user in to the site at `address`, in all pages of a context."""
    client = Client()
    client.force_login(user)
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": address}])


def press(page: Page, label: str) -> None:
    page.click(f".bb-button:has-text('{label}')")


def choose(page: Page, field: str, text: str) -> None:
    """Choose from a list with search, as a person does: open it, type, take what it finds."""
    page.click(f"#field_{field} .select2-selection")
    page.fill(".select2-search__field", text)
    page.click(f".select2-results__option:has-text('{text}')")


def make_benchmark(name: str) -> Benchmark:
    library = make_library(documents=12, queries=16)
    return create_benchmark(library, name=name, matrix={"search_modes": ["dense", "sparse"]})
