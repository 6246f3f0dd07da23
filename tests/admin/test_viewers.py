"""Who may only view is offered nothing that would refuse: every link and button of every page is tried."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.template.response import SimpleTemplateResponse
from django.test import Client
from django.urls import resolve, reverse

from tests.admin.addresses import make_world, paths
from tests.admin.conftest import APPS

pytestmark = pytest.mark.thorough

REFUSED = "No action selected"  # what Django answers to an action that the user may not take


class Offers(HTMLParser):
    """What a page offers: addresses that links and fragments get, and buttons that post, with what they send."""

    def __init__(self, page: str, text: str) -> None:
        super().__init__()
        self.page = page
        self.links: set[str] = set()
        self.posts: list[tuple[str, dict[str, str]]] = []
        self._form: dict[str, str] | None = None
        self._sent: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        for name in ("href", "hx-get"):
            if name in given and (tag == "a" or name == "hx-get"):
                self.links.add(urljoin(self.page, given[name].partition("#")[0]))
        if tag == "form":
            self._form, self._sent = given, {}
        if self._form is None or self._form.get("method", "").lower() != "post":
            return
        if tag == "input" and given.get("type") == "hidden":
            self._sent[given.get("name", "")] = given.get("value", "")
        if given.get("type", "submit" if tag == "button" else "") == "submit":
            self.posts.append((urljoin(self.page, self._form.get("action", "")), self._sent))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None


@pytest.fixture
def viewer(transactional_db: None) -> User:
    """Staff who see every row and change none, on a site where there is one of everything."""
    make_world(User.objects.create_superuser("ada"))
    user = User.objects.create_user("vera", is_staff=True)
    seen = Permission.objects.filter(content_type__app_label__in=APPS, codename__startswith="view_")
    user.user_permissions.set(seen)
    return user


def test_nothing_that_a_page_offers_is_refused(client: Client, viewer: User) -> None:
    client.force_login(viewer)
    answers = {path: client.get(path) for path in paths(User.objects.get(username="ada")).values()}
    offered = {
        path: Offers(path, answer.content.decode()) for path, answer in answers.items() if answer.status_code == 200
    }
    assert len(offered) > 60
    tried = {kind_of(path) for path in offered}
    refused = []
    for path, offers in offered.items():
        refused += [(path, link) for link in fresh(offers.links, tried) if answers_403(client, link)]
        refused += [(path, post) for post in offers.posts if is_refused(client, *post)]
    assert not refused, "\n".join(map(str, refused))


def fresh(links: set[str], tried: set[Any]) -> Iterator[str]:
    """Yield the links of this site of a kind that was not tried."""
    for link in sorted(links):
        parts = urlsplit(link)
        if not parts.netloc and parts.path.startswith("/admin/") and kind_of(link) not in tried:
            tried.add(kind_of(link))
            yield link


def kind_of(link: str) -> tuple[Any, ...]:
    """Return what links have in common that lead to one page, with the same parameters."""
    parts = urlsplit(link)
    match = resolve(parts.path)
    return (match.view_name, getattr(match.func, "model_admin", None), *sorted(parse_qs(parts.query)))


def answers_403(client: Client, link: str) -> bool:
    """Tell whether a link is refused, which is so before its page is made: that takes most of the time, and is not."""
    with patch.object(SimpleTemplateResponse, "rendered_content", ""):
        return client.get(link).status_code == 403


def is_refused(client: Client, action: str, sent: dict[str, str]) -> bool:
    """Tell whether a form is refused that is sent as it stands; what it does is undone."""
    if urlsplit(action).path == reverse("admin:logout"):
        return False
    with transaction.atomic():
        answer = client.post(action, sent, follow=True)
        transaction.set_rollback(True)
    return answer.status_code == 403 or REFUSED in answer.content.decode()
