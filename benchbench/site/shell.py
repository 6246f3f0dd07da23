"""The shell of the admin: unfold's site, whose command palette also finds rows."""

from collections.abc import Callable, Iterator
from functools import wraps
from time import perf_counter
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin import sites
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.dataclasses import SearchResult
from unfold.settings import get_config
from unfold.sites import UnfoldAdminSite

MAX_FOUND = 5  # rows of a model
LEAST_LETTERS = 2  # nearly every row has any one letter
MOST_LETTERS = 200
FOR_JUDGES = ("", "Judging")  # groups of the menu


class Site(UnfoldAdminSite):
    """The site of the admin pages."""

    def admin_view(self, view: Callable[..., HttpResponse], cacheable: bool = False) -> Callable[..., HttpResponse]:
        """Return a page for staff; it sends a user whose session ended to the login with the reason."""
        page = super().admin_view(view, cacheable)

        @wraps(page)
        def explaining(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
            is_opened = request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"  # not a part of an open page
            if is_opened and settings.SESSION_COOKIE_NAME in request.COOKIES and not request.user.is_authenticated:
                messages.info(request, "Your session ended: log in to go on.")
            return page(request, *args, **kwargs)

        return explaining

    def get_sidebar_list(self, request: HttpRequest) -> list[dict[str, Any]]:
        """Return the menu; of users with the role judge alone, what judging needs."""
        from benchbench.access import judges_alone  # which needs models; this module is loaded before them

        groups = super().get_sidebar_list(request)
        if judges_alone(request.user):
            return [group for group in groups if group.get("title", "") in FOR_JUDGES]
        return groups

    def search(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        """Render the pages of the menu and rows that match `?s=`: of each model the first few that the user may see.

        unfold's own search has no limit, and caches results for users who may lose access meanwhile.
        """
        start, term = perf_counter(), request.GET.get("s", "").strip()[:MOST_LETTERS]
        if len(term) < LEAST_LETTERS:
            return HttpResponse()
        matches = [*self._find_pages(request, term.lower()), *self._find_rows(request, term)]
        results = Paginator(matches, max(len(matches), 1))
        context = {"page_obj": results, "results": results.page(1), "page_counter": 0}
        context["execution_time"] = perf_counter() - start
        return TemplateResponse(request, "unfold/helpers/command_results.html", context)

    def _find_pages(self, request: HttpRequest, term: str) -> Iterator[SearchResult]:
        for group in self.get_sidebar_list(request):
            for item in group["items"]:
                if item["has_permission"] and term in item["title"].lower():
                    yield SearchResult(item["title"], group.get("title", ""), item["link"], item["icon"])

    def _find_rows(self, request: HttpRequest, term: str) -> Iterator[SearchResult]:
        icons: dict[str, str] = get_config()["COMMAND"]["search_models"]
        owners = {model._meta.label_lower: owner for model, owner in self._registry.items()}
        for label, icon in icons.items():
            owner = owners[label]
            if owner.has_view_permission(request):
                rows, _ = owner.get_search_results(request, owner.get_queryset(request), term)
                for row in rows[:MAX_FOUND]:
                    yield SearchResult(
                        getattr(row, "heading", str(row)), owner.describe_found(row), owner.find_url(row), icon
                    )


class ShellConfig(AppConfig):
    """The app `unfold`, with our site."""

    name = "unfold"

    def ready(self) -> None:
        admin.site = sites.site = Site()
