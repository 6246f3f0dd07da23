"""Every page of the site, found in the table of addresses: a new one is tried by the tests that visit all."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db.models import Model
from django.urls import URLPattern, URLResolver, get_resolver, reverse

# What addresses are that show nothing by themselves; a new one is taken for a page until it is here.
ACTS = ("logout", "stop_job", "confirm_action", "actions")
FILES = ("dataset_export", "mapping_export", "benchmark_export", "run_export", "benchmark_manifest")
PREVIEWS = ("collection_preview", "dataset_preview", "evaluation_preview", "evaluation_documents")
PREVIEWS += ("run_import_preview", "benchmark_preview")
PREVIEWS += ("round_preview", "round_llm_preview")
NO_PAGES = {
    **dict.fromkeys(ACTS, "an act"),
    **dict.fromkeys(FILES, "a file"),
    **dict.fromkeys(
        (*PREVIEWS, "index_grid_preview", "collection_try_answer"), "answers a form that is being filled in"
    ),
    **dict.fromkeys(("view_on_site", "benchmarks_benchmark_import_run"), "sends on"),
    "autocomplete": "JSON, and asked for by a form",
    "home_json": "JSON",
    "jsi18n": "a script",
    "round_exchange": "JSON, with what a judge said",
    "round_decide": "JSON, with what was decided",
    "metrics": "figures for a monitor, in its own format",
}
# By path and view, those that have no name, and that nothing which visits all addresses visits.
UNNAMED = {
    ("", "RedirectView"): "sends on to the admin",
    ("healthz", "healthz"): "for a monitor: tests/operations/test_monitoring.py",
    ("readyz", "readyz"): "for a monitor: tests/operations/test_monitoring.py",
    ("metrics", "metrics"): "for a monitor: tests/operations/test_monitoring.py",
    ("admin/MODEL/<path:object_id>/", "RedirectView"): "sends on from where Django had the page of a row until 1.8",
    ("admin/(?P<url>.*)$", "catch_all_view"): "finds nothing",
    ("api/v2/", "not_found"): "finds nothing",
    ("^api(?!/docs$)(?:/|$)", "not_found"): "finds nothing",
}
# Parts of pages, asked for by themselves.
FRAGMENTS = {
    *("search", "operation_progress", "dataset_shape", "benchmark_live", "benchmark_verdict", "benchmark_choices"),
    *("run_coverage", "run_sections", "run_content", "run_import_choices", "round_state_fragment", "round_text"),
    *("round_choices", "round_llm_judges", "round_verdicts", "index_prompts", "schedule_times"),
}


@dataclass(frozen=True)
class Address:
    """A named address with its parameters, and the model of whose admin it is a part, if of any."""

    name: str
    parameters: tuple[str, ...]
    model: type[Model] | None

    @property
    def is_full(self) -> bool:
        """Whether it is a page by itself."""
        return self.name.rpartition(":")[2] not in FRAGMENTS

    def url(self, values: Callable[[str], Any]) -> str:
        return reverse(self.name, kwargs={name: values(name) for name in self.parameters})


def addresses() -> Iterator[Address]:
    """Yield the pages and their fragments, but what the API has, whose answers are JSON."""
    yield from (address for address in every_address() if address.name.rpartition(":")[2] not in NO_PAGES)


def every_address() -> Iterator[Address]:
    """Yield the same, and acts and files in addition."""
    models = {model._meta.label_lower: model for model in apps.get_models()}
    yield from _walk(get_resolver(), models)


def unnamed(resolver: URLResolver | None = None, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield path and view of each pattern without a name, of the API too; MODEL stands for any of the admin."""
    for pattern in (resolver or get_resolver()).url_patterns:
        path = above + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            model = path.removeprefix("admin/").rstrip("/")
            yield from unnamed(pattern, "admin/MODEL/" if model in _models() else path)
        elif not pattern.name:
            yield path, getattr(pattern.callback, "view_class", pattern.callback).__name__


def _models() -> set[str]:
    return {model._meta.label_lower.replace(".", "/") for model in apps.get_models()}


def _walk(
    resolver: URLResolver, models: dict[str, type[Model]], space: str = "", model: type[Model] | None = None
) -> Iterator[Address]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLPattern):
            if pattern.name:  # what lacks it is of UNNAMED
                yield Address(space + pattern.name, tuple(pattern.pattern.regex.groupindex), model)
        elif pattern.namespace != "api":
            inner = f"{space}{pattern.namespace}:" if pattern.namespace else space
            label = str(pattern.pattern).strip("/").replace("/", ".")
            yield from _walk(pattern, models, inner, models.get(label))


def one_line(markup: str) -> str:
    """Return markup with white space as single spaces, and none at the inner edges of elements."""
    return re.sub(r"(<\w[^>]*>) | (?=</|>)", r"\1", " ".join(markup.split()))
