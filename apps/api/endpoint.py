"""The base of every endpoint, and the object that its address names."""

import os
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.apps import apps
from django.core.handlers.asgi import ASGIRequest
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from rest_framework.exceptions import AuthenticationFailed, NotFound, PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.throttling import address_of, count
from apps.api.idempotency import idempotent
from apps.judging.models import Grade
from apps.operations.models import Operation
from benchbench.access import visible
from benchbench.models import PublicModel
from benchbench.site.history import note, note_deleted

M = TypeVar("M", bound=Model)
ACTS = {"GET": "view", "POST": "change", "PUT": "change", "PATCH": "change", "DELETE": "delete"}


class Endpoint(APIView):
    """An address and what can be asked of it: one method of the class for each method of HTTP.

    `acts` says which permission of the admin on `model` a method needs where that is another than in ACTS; a subclass
    has that of each of its methods then. `throttles` names the rate that a method counts against where it is not read
    or write. A POST that does more than look honours Idempotency-Key where `keeps_answers`. `refuses` is the
    statuses of errors that the schema shows for every method, besides those that it knows and docstrings mention.
    """

    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    model: ClassVar[type[Model]]
    acts: ClassVar[dict[str, str]] = {}
    throttles: ClassVar[dict[str, str]] = {}
    keeps_answers: ClassVar[bool] = True
    refuses: ClassVar[tuple[int, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if hasattr(cls, "model"):
            cls.acts = {method: act for method, act in (ACTS | cls.acts).items() if hasattr(cls, method.lower())}
            if cls.keeps_answers and cls.acts.get("POST", "view") != "view":
                cls.post = idempotent(cls.post)

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
            log(request, self, response)
        return super().finalize_response(request, response, *args, **kwargs)

    def permission_denied(self, request: Request, message: Any = None, code: Any = None) -> None:
        """Count what is refused as any other request: REST framework throttles only what is permitted."""
        self.check_throttles(request)
        super().permission_denied(request, message, code)


def log(request: Request, view: Endpoint, response: Response) -> None:
    """Write down what a request did, on the history of each row, by the first line of its endpoint's docstring.

    Many judgments in one request are one act. Grades are not logged: each has a row with its judge and its time.
    """
    if view.model is Grade:
        return
    models = {f"{model._meta.model_name}_id": model for model in apps.get_models() if issubclass(model, PublicModel)}
    sentence = f"API: {(getattr(view, request.method.lower()).__doc__ or '').strip().splitlines()[0]}"
    names = [name for name in view.kwargs if name in models]
    if request.method == "DELETE" and names and models[names[-1]] is view.model:
        note_deleted(request.user, view.model, view.kwargs[names[-1]], sentence)
        return
    keys = {name: view.kwargs[name] for name in names[-1:]}
    if response.status_code == 201 and isinstance(response.data, dict):  # the new row too, besides that of the address
        name = f"{view.model._meta.model_name}_id"
        if name in models and (pk := response.data.get(name) or response.data.get("id")):
            keys[name] = pk
    rows: list[Any] = [row for name, pk in keys.items() for row in models[name]._default_manager.filter(pk=pk)]
    subjects = [subject for row in rows if isinstance(row, Operation) and (subject := row.subject)]
    note(request.user, [*rows, *subjects], sentence)


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
