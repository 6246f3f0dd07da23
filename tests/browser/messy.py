"""Files as people have them, and the form of a new evaluation that reads them."""

import zipfile
from pathlib import Path

from playwright.sync_api import Page

QUEPID = "query,docid,rating\r\npear,docs/pears.md,2\r\nplum,docs/plums.md,1\r\n"
PAGES = {"docs/pears.md": "# Pears\n\nA pear is a fruit.", "docs/plums.md": "# Plums\n\nA plum is blue."}


def pack(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def start(page: Page, encoder: str) -> None:
    page.fill("[name=encoder]", encoder)
    page.click("button:has-text('Start')")
