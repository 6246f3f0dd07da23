"""Checks of addresses before any view: invalid ones are refused."""

from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.http import HttpRequest
from django.urls import register_converter
from django.urls.converters import UUIDConverter


def refuse_nul(get_response: Callable[[HttpRequest], object]) -> Callable[[HttpRequest], object]:
    """Refuse a query string with NUL, which PostgreSQL cannot hold: a page that filters by it would fail.

    The API has its own check, which names the parameter.
    """

    def respond(request: HttpRequest) -> object:
        if request.path.startswith("/admin/") and any(
            "\0" in text for pair in request.GET.lists() for text in (pair[0], *pair[1])
        ):
            raise BadRequest("The query string contains the character NUL (%00). Remove it.")
        return get_response(request)

    return respond


class IdConverter(UUIDConverter):
    """Path converter of UUIDs in upper or lower case, as RFC 9562 requires of readers; answers use lower case."""

    regex = f"(?i:{UUIDConverter.regex})"


register_converter(IdConverter, "id")
