"""Pages beside Django's own, and what a room adds to the admin class of a model of a room below it.

The room of a model has its admin class. A room above never is imported there: its own `admin.py` calls `add_to`.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.admin import ModelAdmin
from django.db.models import Model
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path

from benchbench.site.panels import Panel


@dataclass(frozen=True, slots=True)
class Page:
    """A page below the address of a model: `view` is called with the request, `model_admin` and what `route` holds.

    With the route and the name of a page of Django's (`add/`, `benchmarks_run_change`) it stands in that one's place.
    """

    route: str
    view: Callable[..., HttpResponseBase]
    name: str

    def pattern(self, model_admin: ModelAdmin) -> URLPattern:
        return path(self.route, model_admin.admin_site.admin_view(self.view), {"model_admin": model_admin}, self.name)


@dataclass(frozen=True, slots=True)
class Addition:
    """What a room adds: pages; and for the page of a row its panels and what the template is given besides."""

    pages: Sequence[Page]
    panels: Callable[[HttpRequest, Any], list[Panel]]
    context: Callable[[HttpRequest, Any], dict[str, Any]]


ADDITIONS: defaultdict[type[Model], list[Addition]] = defaultdict(list)


def add_to(
    model: type[Model],
    *,
    pages: Sequence[Page] = (),
    panels: Callable[[HttpRequest, Any], list[Panel]] = lambda request, obj: [],
    context: Callable[[HttpRequest, Any], dict[str, Any]] = lambda request, obj: {},
) -> None:
    """Add to the admin class of `model`. Additions stand in the order of the rooms: INSTALLED_APPS."""
    ADDITIONS[model].append(Addition(pages, panels, context))
