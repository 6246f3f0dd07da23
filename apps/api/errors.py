"""The API's presentation of errors: `{detail, code, errors?, reference?}`, for errors of every kind.

`detail` is a sentence for people, `code` is stable and meant for programs, `errors` maps a field of the request
("queries[3].text") to the sentences about it, `reference` identifies a bug in the log.
"""

import logging
import re
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import Resolver404, resolve
from django.views.decorators.csrf import csrf_exempt
from psycopg.errors import ForeignKeyViolation
from redis.exceptions import ConnectionError as NoRedisError
from redis.exceptions import TimeoutError as SlowRedisError
from rest_framework.exceptions import ErrorDetail
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import exception_handler, set_rollback

from benchbench.database.failures import find_failure, was_ended
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.matrix import KEYS
from benchbench.site import error_pages
from benchbench.site.error_pages import DISK_FULL

ROOT = "/api/"
UNAVAILABLE = "PostgreSQL or Redis does not respond: try again."
RETRY_SECONDS = 5  # until the request may be repeated
DISK_FULL_STATUS = 507
MAX_IN_DETAIL = 3  # the number of errors in `detail`; `errors` has all
OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")
logger = logging.getLogger(__name__)


def present(error: Exception, context: Mapping[str, object]) -> Response | None:
    """Answer an error that a view raised; None for a bug, which Django logs and `server_error` answers."""
    reference = uuid.uuid4().hex
    if answer := _describe_error(error, reference):
        set_rollback()
        status, body = answer
        if "reference" in body:
            logger.error("PostgreSQL or Redis failed (%s): reference %s", body["code"], reference, exc_info=error)
        elif status == DISK_FULL_STATUS:
            logger.error("A disk is full.", exc_info=error)
        return Response(body, status=status, headers=_build_headers(status))
    response = exception_handler(error, context)
    if response is not None:
        response.data = _convert_body(response.data)
    return response


def _describe_error(error: BaseException | None, reference: str) -> tuple[int, dict[str, object]] | None:
    """Return the status and the body for an error; None for REST framework's errors and for bugs."""
    if isinstance(error, BenchbenchError):
        return error.status, _build_body(
            error.message, error.code, {error.field: [error.message]} if error.field else None
        )
    if error_pages.is_disk_full(error):
        return DISK_FULL_STATUS, _build_body(DISK_FULL, "disk_full")
    if failure := find_failure(error):
        return failure.status, _build_body(failure.message, failure.code, reference=reference)
    if _is_unavailable(error):
        return 503, _build_body(UNAVAILABLE, "unavailable", reference=reference)
    if isinstance(error, RequestDataTooBig):
        return 413, _build_body("The form holds too much data.", "too_large")
    if isinstance(error, SuspiciousOperation):  # a form with too many fields
        return 400, _build_body("The form cannot be read, or has too many parts.", "malformed")
    if error and isinstance(error.__cause__, ForeignKeyViolation):  # raised by the commit
        return 409, _build_body("A required object was just deleted or came into use: try again.", "conflict")
    return None


def _build_headers(status: int) -> dict[str, str] | None:
    return {"Retry-After": str(RETRY_SECONDS)} if status == 503 else None


def _is_unavailable(error: BaseException | None) -> bool:
    return isinstance(error, NoRedisError | SlowRedisError) or (error is not None and was_ended(error))


@csrf_exempt
def not_found(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    """Answer an unknown address of the API."""
    path, without = request.path[:200], request.path.rstrip("/")
    remedy = f"leave out the final slash ({without})" if _is_address(without) else "/api/docs/ lists all addresses"
    return JsonResponse(_build_body(f"{path} does not exist: {remedy}.", "not_found"), status=404)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that Django refuses before a view sees it, such as one for an unknown host."""
    if not request.path.startswith(ROOT):
        return error_pages.bad_request(request, exception)
    detail = "The request was refused before it was read: the site does not accept its Host or another header."
    return JsonResponse(_build_body(detail, "malformed"), status=400)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer an error that no view answered, and log it with a reference: to the API as JSON, elsewhere as a page.

    It is a bug, a full disk, or a failure of PostgreSQL or Redis.
    """
    reference = uuid.uuid4().hex
    logger.exception("%s %s failed: reference %s", request.method, request.path, reference)
    error = sys.exc_info()[1]
    if not request.path.startswith(ROOT):
        if error_pages.is_disk_full(error):
            return error_pages.disk_full()
        if failure := find_failure(error):
            return error_pages.undone(failure, reference)
        if _is_unavailable(error):
            return error_pages.unavailable(request, RETRY_SECONDS)
        return error_pages.server_error(request, reference)
    fault = (
        500,
        _build_body("The server failed. Give an administrator the reference.", "server_error", reference=reference),
    )
    status, body = _describe_error(error, reference) or fault
    return JsonResponse(body, status=status, headers=_build_headers(status))


def _is_address(path: str) -> bool:
    try:
        return len(path) < 200 and resolve(path).func is not not_found
    except Resolver404:
        return False


def _convert_body(data: object) -> dict[str, object]:
    """Return the body of one of REST framework's own errors in our format."""
    detail = data.get("detail") if isinstance(data, dict) else None
    if isinstance(detail, ErrorDetail):
        return _build_body(str(detail), detail.code)
    faults = list(_yield_faults(data))
    sentences = [
        sentence if not field or sentence.startswith(field) else f"{field}: {sentence}" for field, sentence in faults
    ]
    more = f" There are {len(sentences) - MAX_IN_DETAIL} more errors." if len(sentences) > MAX_IN_DETAIL else ""
    errors: dict[str, list[str]] = {}
    for field, sentence in faults:
        if field:
            errors.setdefault(field, []).append(sentence)
    return _build_body(" ".join(sentences[:MAX_IN_DETAIL]) + more, "invalid", errors)


def _yield_faults(data: object, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield each sentence with its field: "queries[3].text", or "" for the whole request."""
    if isinstance(data, dict):
        for key, inner in data.items():
            if key == api_settings.NON_FIELD_ERRORS_KEY:
                yield from _yield_faults(inner, field)
            else:
                # REST framework names the invalid items of a list by number.
                yield from _yield_faults(
                    inner, f"{field}[{key}]" if isinstance(key, int) else f"{field}.{key}".lstrip(".")
                )
    elif isinstance(data, list):
        for index, inner in enumerate(data):
            if isinstance(inner, dict):
                yield from _yield_faults(inner, f"{field}[{index}]")
            else:
                yield from _yield_faults(inner, field)
    else:
        yield field, str(data)


def _build_body(
    detail: str, code: str, errors: Mapping[str, object] | None = None, *, reference: str = ""
) -> dict[str, object]:
    body: dict[str, object] = {"detail": detail, "code": code}
    if errors:
        body["errors"] = errors
    if reference:
        body["reference"] = reference
    return body


@contextmanager
def rename_fields(**keys: str | None) -> Iterator[None]:
    """Rename the field of an error to the request's key: `rename_fields(mapping="mapping_id")`.

    The keywords are the use cases' names of the keys. None marks a part of the address, which has no key.
    """
    try:
        yield
    except BenchbenchError as error:
        if error.field in keys:
            key = keys[error.field]
            error.message = error.message.removeprefix(f"{error.field}: ") if key else error.message
            error.field = key
        raise


@contextmanager
def prefix_matrix_fields(matrix: Mapping[str, object]) -> Iterator[None]:
    """Give an error about a key of a matrix its whole path: `config_matrix.search_modes`."""
    try:
        yield
    except BenchbenchError as error:
        if (error.field or "").partition("[")[0] in {*KEYS, *matrix}:
            error.field = f"config_matrix.{error.field}"
        raise


@contextmanager
def rename_options() -> Iterator[None]:
    """Rename command options in an error to keys: `order_by`, not `--order-by`."""
    try:
        yield
    except BenchbenchError as error:
        error.message = OPTION.sub(lambda match: match[1].replace("-", "_"), error.message)
        raise
