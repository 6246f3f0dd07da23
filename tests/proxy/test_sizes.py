"""How large a body each address takes: as large as the site reads there, and no larger."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.urls import reverse

from apps.api.parsers import FORM_BYTES, UploadParser
from apps.api.urls import urlpatterns
from tests.proxy.conftest import COMPOSE, environment, filled_in

pytestmark = pytest.mark.thorough

DATASET, CORPUS = "BENCHMARK_DATASET_MAX_UPLOAD_BYTES", "BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES"
PAGES = {
    "admin:datasets_dataset_add": DATASET,
    "admin:dataset_preview": DATASET,
    "admin:benchmark_from_manifest": DATASET,
    "admin:collections_collection_add": CORPUS,
    "admin:run_import": CORPUS,
    "admin:run_import_preview": CORPUS,
    "admin:login": None,
    "admin:benchmarks_benchmark_add": None,
}
LOCATION = re.compile(r'location ~ "(.+)" \{\s+client_max_body_size (\d+);')
SAMPLES = {"id": "8d9f8a3e-5c0b-4e0e-9d55-1f0a5b0e2c11", "int": "7"}


def most(path: str) -> int | None:
    """Return how large a body the proxy lets through to `path`, None for what it lets through anywhere."""
    return next((int(size) for regex, size in LOCATION.findall(filled_in()) if re.search(regex, path)), None)


def limits_of_the_api() -> Iterator[tuple[str, str | None]]:
    """Yield each address of the API with the setting that limits what may be uploaded there."""
    for pattern in urlpatterns:
        parsers: list[Any] = getattr(getattr(pattern.callback, "view_class", None), "parser_classes", [])
        limits = [parser.limit for parser in parsers if issubclass(parser, UploadParser)]
        path = re.sub(r"<(\w+):\w+>", lambda found: SAMPLES[found[1]], str(pattern.pattern))
        yield f"/api/v2/{path}", limits[0] if limits else None


def test_only_uploads_may_be_large() -> None:
    limits = [*limits_of_the_api(), *((reverse(name), limit) for name, limit in PAGES.items())]
    assert {limit for _, limit in limits} == {None, DATASET, CORPUS}
    for path, limit in limits:
        assert most(path) == (limit and getattr(settings, limit) + FORM_BYTES), path


def test_what_django_reads_itself_comes_through() -> None:
    ordinary = re.search(r"^    client_max_body_size (\d+)m;", filled_in(), re.MULTILINE)
    assert ordinary is not None
    assert int(ordinary[1]) * 2**20 > settings.DATA_UPLOAD_MAX_MEMORY_SIZE


@pytest.mark.parametrize(("name", "body"), [(DATASET, "DATASET_BODY_BYTES"), (CORPUS, "CORPUS_BODY_BYTES")])
def test_another_limit_of_the_site_is_another_of_the_proxy(name: str, body: str) -> None:
    assert environment(**{name: "5000"})[body] == str(5000 + FORM_BYTES)


def test_nobody_comes_past_the_proxy() -> None:
    open_to_all = [name for name, service in COMPOSE.items() if "ports" in service]
    assert open_to_all == ["proxy"]
    assert COMPOSE["web"]["environment"]["BENCHBENCH_PROXIES"] == "${BENCHBENCH_PROXIES:-1}"
