"""Times on pages, which show the zone of the site."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.template import Context, Template
from django.test import Client
from django.utils import timezone

from apps.records.models import Benchmark, Repeat
from benchbench.site.panels import build_list_url, change_url
from tests.checkout import CHECKOUT
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping, make_schedule

TIME = re.compile(r"(?<![\d\"=T-])\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?(?P<zone> (?:UTC|CES?T))?")
HIDDEN = re.compile(r"<(script|template).*?</\1>|<[^>]*>", re.DOTALL)
ENDED = datetime(2026, 1, 2, 3, 5, tzinfo=UTC)


@pytest.fixture(params=["UTC", "Europe/Berlin"])
def zone(request: pytest.FixtureRequest, settings: Any) -> str:
    settings.TIME_ZONE = request.param
    timezone.get_default_timezone.cache_clear()
    return {"UTC": "2026-01-02 03:05 UTC", "Europe/Berlin": "2026-01-02 04:05 CET"}[request.param]


def test_templates_leave_the_format_to_the_site() -> None:
    """A format that a template states would leave the zone out."""
    declared = re.compile(r"\|(?:date|time):\"[^\"]*[HGgh]:?i")
    assert [path.name for path in (CHECKOUT / "templates").rglob("*.html") if declared.search(path.read_text())] == []


def test_formats_of_times_have_a_zone(zone: str) -> None:
    for text in ('{{ at|date:"DATETIME_FORMAT" }}', '{{ at|date:"SHORT_DATETIME_FORMAT" }}', "{{ at }}"):
        assert Template(text).render(Context({"at": ENDED})) == zone


def test_pages_and_lists_show_the_zone(db: None, zone: str, admin_client: Client) -> None:
    dataset = make_dataset({"q1": [({"document_id": "d1"}, 1)]}, name="Fruit")
    mapping = make_mapping(dataset, make_collection("Shelf", [{"title": "On pears"}]))
    benchmark = make_benchmark(mapping, [0.4, 0.6], name="ended", started_at=ENDED, completed_at=ENDED)
    schedule = make_schedule(benchmark, repeats=1)
    Repeat.objects.update(due_at=ENDED)
    assert str(Repeat.objects.get()) == f"{schedule} at {zone}"
    pages = [build_list_url(Benchmark), change_url(benchmark), change_url(mapping.dataset), change_url(schedule)]
    result = 0
    for page in pages:
        visible = re.sub(
            r"<(script|template).*?</\1>|<[^>]*>", " ", admin_client.get(page).content.decode(), flags=re.S
        )
        for time in TIME.finditer(visible):
            assert time["zone"] is not None, visible[time.start() - 60 : time.end() + 20]
            result += 1
    assert result >= len(pages)
