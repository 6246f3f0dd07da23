"""Every page of the site: whatever answers a browser, found in the table of addresses."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.urls import URLPattern, URLResolver, get_resolver, reverse

# Addresses that show nothing by themselves: what they are instead.
NO_PAGES = {
    "logout": "an act",
    "autocomplete": "JSON, and asked for by a form",
    "jsi18n": "a script",
    "search": "a part of the menu, which answers what is typed",
    "view_on_site": "sends on",
    "benchmarks_benchmark_import_run": "sends on",
    "dataset_preview": "answers a form that is being filled in",
    "run_import_preview": "answers a form that is being filled in",
    "benchmark_preview": "answers a form that is being filled in",
    "dataset_export": "a file",
    "mapping_export": "a file",
    "benchmark_export": "a file",
    "run_export": "a file",
    "benchmark_manifest": "a file",
}


@dataclass(frozen=True)
class Address:
    """A named address with its parameters, and the model whose row `object_id` means, where it has one."""

    name: str
    parameters: tuple[str, ...]
    model: Any

    def url(self, values: Callable[[str], Any]) -> str:
        return reverse(self.name, kwargs={name: values(name) for name in self.parameters})


def addresses() -> Iterator[Address]:
    """Yield what the site has but the API, whose answers are JSON, and django-rq's pages, which are its own."""
    for resolver, route, pattern in _walk(get_resolver()):
        if pattern.name is None or resolver in ("api", "django_rq") or pattern.name in NO_PAGES:
            continue
        parts = route.split("/")
        name = f"{resolver}:{pattern.name}" if resolver else pattern.name
        model = apps.get_model(parts[1], parts[2]) if "object_id" in pattern.pattern.converters else None
        yield Address(name, tuple(pattern.pattern.regex.groupindex), model)


def _walk(resolver: URLResolver, route: str = "", space: str = "") -> Iterator[tuple[str, str, URLPattern]]:
    for pattern in resolver.url_patterns:
        path = route + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern, path, pattern.namespace or space)
        else:
            yield space, path, pattern
