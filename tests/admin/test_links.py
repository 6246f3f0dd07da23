"""Links of pages: a reader who may view some kinds of rows alone follows none that is refused."""

import re
from collections.abc import Iterator
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.judging.models import Round
from apps.mappings.models import Mapping
from apps.records.models import Benchmark, Schedule
from apps.retrieval.models import Index
from tests.everywhere import make_row_everywhere

OWNED = (Benchmark, Collection, Dataset, Index, Mapping, Round, Schedule)
MOST_PAGES = 400
KINDS = {
    "results": ("view_run", "view_benchmark"),
    "rankings": ("view_run", "view_benchmark", "view_queryresult"),
    "datasets": ("view_dataset",),
    "queries": ("view_query", "view_judgment"),
    "documents": ("view_document", "view_collection"),
    "rounds": ("view_round", "view_dataset"),
    "work": ("view_operation", "view_schedule", "view_baseline"),
}


def yield_links(text: str) -> Iterator[str]:
    for address in re.findall(r'\b(?:href|hx-get)="([^"#]+)', text):
        if address.startswith(("/admin/", "/api/")) and "/logout" not in address:
            yield unescape(address)


def crawl(client: Client) -> tuple[set[str], dict[str, str]]:
    """Return the pages that can be reached, one of each path and parameters, and the origins of refused ones."""
    start = reverse("admin:index")
    seen, pages, refused = {start}, [(start, "")], {}
    while pages and len(seen) < MOST_PAGES:
        address, origin = pages.pop()
        answer = client.get(address)
        if answer.status_code in (403, 404):
            refused[address] = origin
        if answer.status_code != 200 or "html" not in answer["Content-Type"] or answer.streaming:
            continue
        for link in yield_links(answer.text):
            path, _, query = link.partition("?")
            if link.startswith("?") or (key := path + "?" + "&".join(re.findall(r"(\w+)=", query))) in seen:
                continue
            seen.add(key)
            pages.append((link, address))
    return seen, refused


@pytest.mark.thorough
@pytest.mark.parametrize("kinds", KINDS)
def test_no_link_is_refused(client: Client, db: None, kinds: str) -> None:
    make_row_everywhere(0)
    for model in OWNED:
        model.objects.update(owner=None)
    reader = User.objects.create_user("vera", is_staff=True)
    reader.user_permissions.set(Permission.objects.filter(codename__in=KINDS[kinds]))
    client.force_login(reader)
    seen, refused = crawl(client)
    assert len(seen) > 10
    assert not refused, "\n".join(f"{link} on {page}" for link, page in refused.items())
