"""Words and numbers on every page: no bare key, identifier, machine's time or letters of HTML; "5 %" and ".5189".

Documents have no titles here: a page that names one does so by the beginning of its text, not by its id.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client

from apps.collections.models import Document
from apps.datasets.formats.registry import FORMATS
from benchbench.site.panels import change_url
from tests.admin.addresses import make_world, paths

pytestmark = pytest.mark.thorough

UNREAD_TAGS = ("script", "style", "template", "svg")
MACHINE_TAGS = ("code", "pre", "textarea")
EXEMPT = (
    "django_rq:",  # another maker's pages
    "admin:admin_logentry_change",  # shows by which id the log is searched for an object that is gone
)
REFUSED = {
    "an identifier": re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"),
    "a machine's time": re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d"),
    "per cent without its blank": re.compile(r"\d%"),
    "a Python value": re.compile(r"^(?:None|True|False|nan|inf|\[\]|{}|<.*>)$"),
    "a zero before the point": re.compile(r"(?<![\w.])0\.\d{3,}"),  # of a measure, score or p; times have two decimals
    "a mark of Markdown": re.compile(r"`[^`]+`"),
    "the start of an identifier": re.compile(r"^[A-Za-z ]+: [0-9a-f]{8}$"),
    "a hyphen for a missing value": re.compile(r"^-$"),
    "bare JSON": re.compile(r'^[\[{]$|^[\[{]["\x27]|^"\w+":?$'),
}
# Markup that a reader would see as letters: HTML that was not marked as such.
LETTERS = re.compile(r"&lt;/?[a-z][^&<]*&gt;|&amp;[a-z]+;")
NAMES = re.compile(r"<a [^>]*href=\"([^\"]*)\"[^>]*>(.*?)</a>|<h[1-4][^>]*>(.*?)</h[1-4]>", re.S)


class Reader(HTMLParser):
    """The texts that a page shows, each with whether it is written for machines, such as a command."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[tuple[str, bool]] = []
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in UNREAD_TAGS + MACHINE_TAGS:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, text: str) -> None:
        if text.strip() and not set(self._open) & set(UNREAD_TAGS):
            self.texts.append((" ".join(text.split()), bool(self._open)))


def list_choice_keys() -> set[str]:
    """Return the stored values of fields with choices that are not what a reader sees of them."""
    fields = [field for model in apps.get_models() for field in model._meta.fields]
    keys = {str(key) for field in fields for key, _ in field.flatchoices}
    labels = {str(label).casefold() for field in fields for _, label in field.flatchoices}
    return {key for key in keys - labels if not key.isdigit()} | {key for key in FORMATS if "-" in key}


def find_faults(page: str, keys: set[str]) -> Iterator[str]:
    for text, is_for_machines in Reader(page).texts:
        if not is_for_machines:
            yield from (f"{fault}: {text}" for fault, pattern in REFUSED.items() if pattern.search(text))
            if text in keys:
                yield f"a choice's key: {text}"
        elif "manage.py" in text and REFUSED["an identifier"].search(text):
            yield f"an identifier: {text}"


def yield_names(page: str) -> Iterator[tuple[str, str]]:
    """Yield the links and headings of a page: an address, empty for a heading, and a text."""
    for href, *contents in NAMES.findall(page):
        yield href.partition("?")[0], unescape(" ".join(re.sub(r"<[^>]+>", " ", "".join(contents)).split()))


def test_pages_show_words_and_numbers_for_people(client: Client, transactional_db: None) -> None:
    ada = User.objects.create_superuser("ada")
    make_world(ada)
    Document.objects.exclude(text="").update(title="")
    ids = {*Document.objects.exclude(text="").values_list("external_id", flat=True)}
    addresses = {change_url(document) for document in Document.objects.all()}
    client.force_login(ada)
    keys = list_choice_keys()
    faults, links = defaultdict(list), 0
    for name, path in paths(ada).items():
        answer = client.get(path, follow=True)
        assert answer.status_code == 200, name
        page = answer.content.decode()
        hits = [f"HTML as letters: {letters}" for letters in LETTERS.findall(page)]
        if not name.startswith(EXEMPT) and answer["Content-Type"].startswith("text/html"):
            hits += find_faults(page, keys)
            names = [(href, text) for href, text in yield_names(page) if not href or href in addresses]
            links += sum(href in addresses for href, _ in names)
            hits += [f"the id of a document: {text}" for _, text in names if text in ids]
        for fault in hits:
            faults[fault].append(name)
    assert links > 20
    assert not faults, "\n".join(f"{fault} on {', '.join(names)}" for fault, names in faults.items())
