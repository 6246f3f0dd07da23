"""An encoder whose name is misspelt: the start page says so, and leads to the form where it is corrected."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from tests.browser.messy import PAGES, QUEPID, pack, start
from tests.browser.reader import PATIENCE
from tests.files.samples import write_file

pytestmark = pytest.mark.thorough
MISSPELT = "sentence-transformers/all-MiniLM-L60"


class Hub(ThreadingHTTPServer):
    """The Hugging Face Hub without any model; with status 503 it is out of order."""

    status = 404


class Answer(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        self.send_response(self.server.status)
        if self.server.status == 404:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def settings_of_hub(hub: Hub) -> dict[str, str]:
    return {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}"}


@pytest.fixture
def site(serve: Callable[..., str], settings_of_hub: dict[str, str]) -> str:
    return serve(**settings_of_hub)


def test_misspelt_encoder_is_corrected_and_tried_again(page, manage, hub, settings_of_hub, tmp_path):
    page.goto(reverse("admin:new_evaluation"))
    page.set_input_files("[name=corpus]", str(pack(tmp_path / "handbook.zip", PAGES)))
    page.set_input_files("[name=queries]", str(write_file(tmp_path / "quepid.csv", QUEPID)))
    start(page, f"{MISSPELT}6")
    expect(page.locator("#form_faults")).to_contain_text("was not found", timeout=PATIENCE)
    expect(page.locator("#form_faults")).to_contain_text("Check the name")

    hub.status = 503  # so the site cannot know
    start(page, MISSPELT)
    page.wait_for_url("**/evaluate/*-*/")
    hub.status = 404
    manage("manage.py", "worker", **settings_of_hub)
    page.wait_for_selector("text=Try again opens the form with your choices, to correct them.")
    page.goto("/admin/")
    task = page.locator(".bb-task", has_text=f"The model '{MISSPELT}' was not found")
    task.get_by_role("link", name="Try again").click()
    page.get_by_role("link", name="Try again").click()
    expect(page.locator("[name=encoder]")).to_have_value(MISSPELT)
    start(page, "keyword:pear,plum")
    page.wait_for_url("**/results/")
    page.wait_for_selector(".bb-verdict-sentence")
