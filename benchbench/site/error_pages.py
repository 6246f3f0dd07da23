"""Error pages: not found, not allowed, and failures of the server."""

import errno

from django.apps import apps
from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template import loader
from psycopg.errors import DiskFull

from benchbench.access import AnyUser, describe_lack
from benchbench.errors import BenchbenchError
from benchbench.site.pages import find_next_page

DENIED = "You do not have permission for this. Ask an administrator to give it to you or your group."
DISK_FULL = (
    "Nothing was saved: the disk of the site or of the database is full. Ask an administrator to free space, then "
    "send it again."
)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an unknown address, or a thing that the user may not see, with the same page."""
    missing = "This page does not exist. It may have been deleted."
    return _render_page(request, 404, "Not found", _find_message(exception, Http404) or missing)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that the user may not make."""
    sentence = _find_message(exception, PermissionDenied) or _describe_lack(request)
    return _render_page(request, 403, "Not permitted", sentence)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form that did not come from a page of this site and this sign-in."""
    sentence = (
        "Nothing was changed: the form is no longer valid. This happens after a sign-in in another tab, or if the "
        "browser blocks cookies. Go back, reload the page and send it again."
    )
    return _render_page(request, 403, "The form was not accepted", sentence)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that cannot be read, or that a page refuses. The user is unknown."""
    if isinstance(exception, RequestDataTooBig | TooManyFieldsSent | TooManyFilesSent):
        sentence = "Nothing was changed: the form is larger than the site accepts. Go back and shorten it."
        return _render_plain(413, {"title": "Too large", "sentence": sentence})
    unread = "The request was refused: the site does not accept its address or a header. Check the address."
    sentence = _find_message(exception, BadRequest) or unread
    return _render_plain(400, {"title": "Refused", "sentence": sentence})


def server_error(request: HttpRequest, reference: str) -> HttpResponse:
    """Answer a request that failed because of a bug. The page does not use the database, which may have failed."""
    sentence = "This page failed because of an error of the server. The error is in the log."
    return _render_plain(500, {"title": "The server failed", "sentence": sentence, "reference": reference})


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether an error means that a disk of this machine, or of the database, is full."""
    no_room = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return no_room or isinstance(getattr(error, "__cause__", None), DiskFull)


def disk_full() -> HttpResponse:
    """Answer a request that failed because a disk is full, with HTTP status 507."""
    return _render_plain(507, {"title": "The disk is full", "sentence": DISK_FULL})


def undone(failure: BenchbenchError, reference: str) -> HttpResponse:
    """Answer a request that PostgreSQL rolled back or cancelled; it may succeed the next time."""
    return _render_plain(failure.status, {"title": "Not done", "sentence": failure.message, "reference": reference})


def unavailable(request: HttpRequest, seconds: int) -> HttpResponse:
    """Answer while PostgreSQL or Redis is unavailable; the browser reloads a page that was requested by GET."""
    again = f"The page reloads every {seconds} s." if request.method == "GET" else "Go back and send it again."
    sentence = f"PostgreSQL or Redis does not respond. {again}"
    answer = _render_plain(503, {"title": "Not available now", "sentence": sentence})
    answer.headers["Retry-After"] = str(seconds)
    if request.method == "GET":
        answer.headers["Refresh"] = str(seconds)
    return answer


def _describe_lack(request: HttpRequest) -> str:
    """Return in words which permission the user lacks for a page of the admin: to view its rows, or to act on them."""
    match = request.resolver_match
    label, name, page = (*str(match.url_name).split("_", 2), "", "")[:3] if match else ("", "", "")
    pages: ModelAdmin | None = match.kwargs.get("model_admin") if match else None
    if pages is None and name in apps.all_models.get(label, {}):
        pages = admin.site._registry.get(apps.get_model(label, name))
    if pages is None:
        return DENIED
    missing = (act for act in ("view", page) if not getattr(pages, f"has_{act}_permission", bool)(request))
    act = next(missing, "")
    return describe_lack(f"{pages.opts.app_label}.{act}_{pages.opts.model_name}") if act else DENIED


def _find_message(exception: Exception, kind: type[Exception]) -> str:
    """Return the message that a view gave to the error. Django's own subclasses would reveal the site's routes."""
    message = exception.args[0] if type(exception) is kind and exception.args else ""
    return message if isinstance(message, str) else ""


def _render_page(request: HttpRequest, status: int, title: str, sentence: str) -> HttpResponse:
    """Render a page in the layout of the admin, or of the login for users who are not signed in to it."""
    user: AnyUser | None = getattr(request, "user", None)
    inside = bool(user and user.is_active and user.is_staff)
    came_from = find_next_page(request, request.META.get("HTTP_REFERER", ""))
    elsewhere = request.method == "POST" or came_from != request.build_absolute_uri()
    context = {
        **admin.site.each_context(request),
        "title": title,
        "sentence": sentence,
        "back": came_from if elsewhere else "",
    }
    return render(request, "errors/inside.html" if inside else "errors/outside.html", context, status=status)


def _render_plain(status: int, context: dict[str, str]) -> HttpResponse:
    return HttpResponse(loader.render_to_string("errors/plain.html", context), status=status)
