"""The base of every resource, the decorators of its operations, and the object that an address names.

A resource is a class of `apps/api/resources`; an operation is a method of it, such as

    @post("/<id:round_id>/close", ClosedAnswer, CloseRequest)
    def close_round(self, round: Round, data: Validated) -> Closed:

It gets the object that its address names, if any, and the request's data, if any, read by the decorator's serializer.
It returns the object that the answer presents, or the rows of a page. If status or page are unusual, it returns the
response itself.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, field
from functools import partial, wraps
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.apps import apps
from django.contrib.auth.models import User
from django.core.handlers.asgi import ASGIRequest
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import URLPattern
from django.urls import path as address
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import AuthenticationFailed, NotFound, PermissionDenied
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.viewsets import ViewSet

from apps.accounts.bin import keep_deleted
from apps.accounts.throttling import count, find_address
from apps.api.answers import Page, answer_page, present
from apps.api.errors import rename_fields
from apps.api.fields import require_empty, validate
from apps.api.idempotency import idempotent
from apps.api.matching import HEADER, TAG, compute_tag, require_match
from apps.api.parsers import StrictJSONParser, UploadParser
from benchbench.access import AnyUser, may_change, visible
from benchbench.database.failures import read_again
from benchbench.models import PublicModel
from benchbench.site.history import note, note_deleted

M = TypeVar("M", bound=Model)
Method = TypeVar("Method", bound=Callable[..., Any])
ACTS = {"get": "view", "post": "change", "put": "change", "patch": "change", "delete": "delete"}


@dataclass(frozen=True)
class Operation:
    """A decorator that makes a method of a resource the operation `method` at `path`, after the resource's `route`.

    `answer` is a serializer, a dataclass or a page, sent with `status`; an operation of several `statuses` returns the
    response itself. `request` reads the body, or the query string of a GET. `form` and its `parser` read an upload,
    instead or in addition. A POST without either takes no body. `act` is the required permission of the admin on the
    resource's model, `throttle` the rate that it counts against. Errors call fields by `names`. A POST that is not a
    "view" honours Idempotency-Key if it `keeps_answer`. `refuses` are further statuses of errors in the schema, in
    addition to the standard ones and those in the docstring. `history` is what the history of the row says of it; ""
    for an operation that it leaves out.
    """

    method: str
    path: str
    answer: Any = None
    request: type[Serializer] | None = None
    _: KW_ONLY
    form: type[Serializer] | None = None
    parser: type[UploadParser] | None = None
    status: int = 200
    statuses: Sequence[int] = ()
    act: str = ""
    history: str = ""
    throttle: str = ""
    names: Mapping[str, str | None] = field(default_factory=dict)
    keeps_answer: bool = True
    refuses: Sequence[int] = ()
    parameters: Sequence[Any] = ()
    tags: Sequence[str] | None = None

    def __call__(self, function: Method) -> Method:
        @wraps(function)
        def handle(resource: "Resource", request: Request, **ids: object) -> HttpResponseBase:
            with rename_fields(**self.names), resource.matching(request, ids) as changes:
                objects = [resource.find(**ids)] if ids else []
                if changes and HEADER in request.headers:
                    require_match(request, objects[0], changes)
                payloads = self._read(request)
                deletes = self.method == "delete" and objects
                with keep_deleted(objects[0], resource.user) if deletes else nullcontext():
                    answer = self._present(function(resource, *objects, *payloads), *payloads)
                if changes and self.method == "get":
                    answer[TAG] = compute_tag(objects[0], changes)
                return answer

        changes = self.method == "post" and self.permission != "view" and self.keeps_answer
        handler: Any = idempotent(handle) if changes else handle
        handler.operation = self
        declared: Any = extend_schema(operation_id=function.__name__, tags=self.tags, **self._build_schema())(handler)
        return declared

    @property
    def permission(self) -> str:
        return self.act or ACTS[self.method]

    @property
    def rate(self) -> str:
        """Return the rate that it counts against. A POST that only reads computes something and counts as a write."""
        return self.throttle or ("upload" if self.form else "read" if self.method == "get" else "write")

    @property
    def parsers(self) -> list[type[BaseParser]]:
        return [*([StrictJSONParser] if self.request else []), *([self.parser] if self.parser else [])]

    def _read(self, request: Request) -> list[dict[str, Any]]:
        if self.method == "get":
            return [validate(self.request, request.query_params)] if self.request else []
        if self.form and (self.request is None or isinstance(request.data, QueryDict)):
            return [validate(self.form, request.data)]
        if self.request:
            return [validate(self.request, request.data)]
        if self.method == "post":
            require_empty(request.data)
        return []

    def _present(self, result: Any, *payloads: dict[str, Any]) -> HttpResponseBase:
        if isinstance(result, HttpResponseBase):
            return result
        if isinstance(self.answer, type) and issubclass(self.answer, Page):
            return answer_page(self.answer, result, *payloads)
        return present(self.answer, result, self.status) if self.answer else Response(status=204)

    def _build_schema(self) -> dict[str, Any]:
        answers = dict.fromkeys(self.statuses or [self.status], self.answer) if self.answer else {204: None}
        responses = self.answer if isinstance(self.answer, dict) else answers
        if self.method == "get":
            query = [self.request] if self.request else []
            return {"parameters": [*query, *self.parameters], "responses": responses}
        bodies = {"application/json": self.request, "multipart/form-data": self.form}
        contents = {kind: body for kind, body in bodies.items() if body}
        return {"request": contents if self.form else self.request, "responses": responses}


get, post, put, patch, delete = (partial(Operation, method) for method in ACTS)


class Resource(ViewSet):
    """A resource of the API, with a method for each operation on it.

    The operations need the admin's permissions on `model`; their addresses begin with `route`. `find` gets the ids of
    an address and returns the object that it names; `through` is as in `benchbench.access.visible`.
    """

    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    model: ClassVar[type[Model]]
    route: ClassVar[str] = ""
    through: ClassVar[str] = ""
    kinds: ClassVar[list[type["Resource"]]] = []

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kinds.append(cls)

    @classmethod
    def list_addresses(cls) -> list[URLPattern]:
        """Return the addresses of the operations, each named after its first operation."""
        by_path: dict[str, dict[str, str]] = {}
        parsers = {}
        for name, method in vars(cls).items():
            declared = getattr(method, "operation", None)
            if isinstance(declared, Operation):
                by_path.setdefault(cls.route + declared.path, {})[declared.method] = name
                if declared.parser:
                    parsers[cls.route + declared.path] = {"parser_classes": declared.parsers}
        return [
            address(path, cls.as_view(methods, **parsers.get(path, {})), name=next(iter(methods.values())))
            for path, methods in by_path.items()
        ]

    @property
    def user(self) -> User:
        return self.request.user

    def rows(self) -> QuerySet[Any]:
        return self.model._default_manager.all()

    def newest(self) -> QuerySet[Any]:
        """Return the visible rows, newest first, in a total order."""
        return visible(self.rows().order_by("-created_at", "id"), self.user, through=self.through)

    def find(self, *args: Any, **ids: Any) -> Any:
        (pk,) = ids.values()
        return find_visible(self.rows(), pk, self.user, through=self.through)

    def find_changeable(self, rows: QuerySet[M], pk: UUID) -> M:
        """Return a row that the body of a request names for a change."""
        row = find_visible(rows, pk, self.user)
        if not may_change(row, self.user):
            noun = rows.model._meta.verbose_name
            raise PermissionDenied(f"You may not change any {noun}: ask an administrator for the permission.")
        return row

    def lock(self, row: Model) -> Model:
        """Return the row that changes of `row` lock."""
        return row

    def list_affected(self, row: Any) -> Iterable[Model]:
        """Return the other rows whose histories also have a change of `row`."""
        return ()

    @contextmanager
    def matching(self, request: Request, ids: Mapping[str, object]) -> Iterator[type[Serializer] | None]:
        """Give the serializer of changes to the row of this address, if it has one; the row is locked for If-Match."""
        changes = self.find_editing(ids)
        if changes is None or HEADER not in request.headers or request.method == "GET":
            yield changes
            return
        with transaction.atomic():
            row = self.lock(self.find(**ids))
            read_again(type(row)._base_manager.select_for_update(no_key=True), row.pk)
            yield changes

    def find_editing(self, ids: Collection[str]) -> type[Serializer] | None:
        """Return the serializer of changes to the row of an address with these ids; None without one."""
        editing = self.find_operation("PATCH") or self.find_operation("PUT")
        return editing.request if editing and ids else None

    def find_operation(self, method: str) -> Operation | None:
        """Return the operation of an HTTP method; None for a method that the address lacks (405)."""
        name = self.action_map.get("get" if method == "HEAD" else method.lower())
        return getattr(self, name).operation if name else None

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Make a chunked body readable: REST framework and Django treat a body without a length as empty."""
        if isinstance(request, ASGIRequest) and "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
            body = request._stream  # the whole of it, that daphne has taken in
            request.META["CONTENT_LENGTH"] = str(body.seek(0, os.SEEK_END))
            body.seek(0)
        return super().initialize_request(request, *args, **kwargs)

    def perform_authentication(self, request: Request) -> None:
        """Authenticate the caller. Count a refused one against its address, separately from accepted callers there."""
        try:
            super().perform_authentication(request)
        except (AuthenticationFailed, PermissionDenied):  # the latter: a session without its CSRF token
            count("failed", find_address(request))
            raise

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        is_success = isinstance(response, Response) and response.status_code < 400  # and is not a repeated answer
        operation = self.find_operation(request.method) if is_success else None
        if operation and operation.history:
            log(request, self, operation, response)
        return super().finalize_response(request, response, *args, **kwargs)

    def permission_denied(self, request: Request, message: object = None, code: object = None) -> None:
        """Count refused requests too: REST framework throttles only permitted ones."""
        self.check_throttles(request)
        super().permission_denied(request, message, code)


def log(request: Request, view: Resource, operation: Operation, response: Response) -> None:
    """Log a request in the history of each row. Many judgments in one request are one entry."""
    models = {f"{model._meta.model_name}_id": model for model in apps.get_models() if issubclass(model, PublicModel)}
    sentence = f"API: {operation.history}"
    if operation.method in ("patch", "put") and isinstance(request.data, dict):
        sentence = f"{sentence.rstrip('.')}: {', '.join(request.data)}."
    names = [name for name in view.kwargs if name in models]
    if operation.permission == "delete":
        note_deleted(request.user, view.model, view.kwargs[names[-1]], sentence)
        return
    keys = {name: view.kwargs[name] for name in names[-1:]}
    if response.status_code == 201 and isinstance(response.data, dict):  # the new row too, not only that of the address
        name = f"{view.model._meta.model_name}_id"
        if name in models and (pk := response.data.get(name) or response.data.get("id")):
            keys[name] = pk
    rows = [row for name, pk in keys.items() for row in models[name]._default_manager.filter(pk=pk)]
    note(request.user, [*rows, *(affected for row in rows for affected in view.list_affected(row))], sentence)


def find_visible(rows: QuerySet[M], pk: UUID | int, user: AnyUser, *, through: str = "") -> M:
    """Return the row `pk` of `rows`, which a nested address narrows to those of its parent; `through` as in `visible`.

    Raises NotFound if the row does not exist, PermissionDenied if the user may not see it. Ids are random, so this
    difference reveals nothing.
    """
    row = visible(rows.filter(pk=pk), user, through=through).first()
    if row is not None:
        return row
    noun = rows.model._meta.verbose_name
    if rows.filter(pk=pk).exists():
        raise PermissionDenied(f"The {noun} {pk} belongs to another user: ask its owner to share it with your team.")
    raise NotFound(f"The {noun} {pk} does not exist.")
