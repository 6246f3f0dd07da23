from collections.abc import Callable
from functools import wraps
from typing import Any

from csp.decorators import csp_update
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.views.decorators import staff_member_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, include, path, re_path
from django.views.generic import RedirectView
from django_rq.urls import get_admin_urlpatterns, get_api_urlpatterns
from drf_spectacular.views import SpectacularSwaggerSplitView

from apps.api.errors import not_found
from apps.operations.views import healthz, metrics, readyz
from benchbench.site.presets import QUEUES

# Errors of the API are JSON, wherever they are raised; those of pages are pages.
handler400 = "apps.api.errors.bad_request"
handler403 = "benchbench.site.error_pages.forbidden"
handler404 = "benchbench.site.error_pages.not_found"
handler500 = "apps.api.errors.server_error"


def for_superusers(page: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Refuse staff who are not superusers. The admin itself sends other users to the login."""

    @wraps(page)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated and not request.user.is_superuser:
            raise PermissionDenied("Only superusers can open the queues, which show and stop all jobs.")
        return page(request, *args, **kwargs)

    return guarded


def list_queue_pages() -> list[URLPattern]:
    """Return django-rq's pages, which show all users' jobs and can delete and rerun them."""
    patterns = [*get_api_urlpatterns(), *get_admin_urlpatterns()]
    for pattern in patterns:
        pattern.callback = csp_update(QUEUES)(for_superusers(pattern.callback))
    return patterns


docs = SpectacularSwaggerSplitView.as_view(  # its script is a file, not a part of the page
    url_name="api:schema",
    title="API | BenchBench",
    template_name="api/docs.html",
    template_name_js="api/docs.js",
    throttle_classes=[],
)
urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("healthz", healthz),
    path("readyz", readyz),
    path("metrics", metrics),
    path("admin/rq/", include((list_queue_pages(), "django_rq"))),
    path("admin/", admin.site.urls),
    *([path("sso/", include("apps.accounts.openid"))] if settings.BENCHBENCH_OIDC_ISSUER else []),
    path("api/v2/", include("apps.api.urls")),
    path("api/docs/", staff_member_required(docs), name="api_docs"),
    re_path(r"^api(?!/docs$)(?:/|$)", not_found),  # /api/docs is sent on to where it ends in a slash, as pages are
]
