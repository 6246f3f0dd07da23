"""The base of every endpoint, and the object that its address names."""

import os
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.core.handlers.asgi import ASGIRequest
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from rest_framework.exceptions import AuthenticationFailed, NotFound, PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.access.logging import log
from apps.api.access.throttling import address_of, count
from benchbench.access import visible

M = TypeVar("M", bound=Model)


class Endpoint(APIView):
    """An address and what can be asked of it: one method of the class for each method of HTTP.

    `acts` says for each method which permission of the admin on `model` it needs: view, add, change or delete.
    `throttles` names the rate that a method counts against where it is not read or write.
    """

    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    model: ClassVar[type[Model]]
    acts: ClassVar[dict[str, str]] = {}
    throttles: ClassVar[dict[str, str]] = {}

    def act(self, method: str) -> str | None:
        return self.acts.get("GET" if method == "HEAD" else method)

    def only_reads(self, method: str) -> bool:
        """Whether a token that only reads will do: for what needs no more than to view, a POST too.

        And for a method that there is not, which is refused as such.
        """
        return method in SAFE_METHODS or self.act(method) in ("view", None)

    def throttle_scope(self, method: str) -> str:
        """Return the rate; a POST that only reads computes something, and counts as a write."""
        return self.throttles.get(method, "read" if method in SAFE_METHODS else "write")

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Let a body be read that came in chunks: REST framework and Django take one of no stated length for none."""
        if isinstance(request, ASGIRequest) and "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
            body = request._stream  # the whole of it, that daphne has taken in
            request.META["CONTENT_LENGTH"] = str(body.seek(0, os.SEEK_END))
            body.seek(0)
        return super().initialize_request(request, *args, **kwargs)

    def perform_authentication(self, request: Request) -> None:
        """Find out who asks; whoever is refused counts for the address, beside those there who are let in."""
        try:
            super().perform_authentication(request)
        except (AuthenticationFailed, PermissionDenied):  # the latter: a session without its CSRF token
            count("failed", address_of(request))
            raise

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        did = isinstance(response, Response) and response.status_code < 400  # and is no kept answer, sent again
        if did and self.acts and not self.only_reads(request.method):
            log(request, self, response, self.kwargs)
        return super().finalize_response(request, response, *args, **kwargs)

    def permission_denied(self, request: Request, message: Any = None, code: Any = None) -> None:
        """Count what is refused as any other request: REST framework throttles only what is permitted."""
        self.check_throttles(request)
        super().permission_denied(request, message, code)


def find_visible(rows: QuerySet[M], pk: UUID | int, user: Any, *, through: str = "") -> M:
    """Return the row `pk` of `rows`, which a nested address narrows to those of its parent; `through` as in `visible`.

    Raises NotFound where there is none, PermissionDenied where it belongs to somebody else. An id is random, so that
    telling the two apart gives nothing away.
    """
    row = visible(rows.filter(pk=pk), user, through=through).first()
    if row is not None:
        return row
    noun = rows.model._meta.verbose_name
    if rows.filter(pk=pk).exists():
        raise PermissionDenied(f"The {noun} {pk} belongs to somebody else: ask its owner to share it with your team.")
    raise NotFound(f"There is no {noun} {pk} here.")
