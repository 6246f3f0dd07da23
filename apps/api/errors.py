"""Errors as the API presents them: `{detail, code, errors?}`, whoever raised them."""

from typing import Any

from rest_framework.exceptions import ErrorDetail
from rest_framework.response import Response
from rest_framework.views import exception_handler, set_rollback

from benchbench.errors import BenchbenchError


def present(error: Exception, context: dict[str, Any]) -> Response | None:
    """Answer an error that a view raised; None for a fault of ours, which is none of the client's.

    `detail` is a sentence for people, `code` is stable and for programs, `errors` maps a field of the request to the
    sentences about it.
    """
    if isinstance(error, BenchbenchError):
        set_rollback()
        named = {error.field: [error.message]} if error.field else {}
        return Response(_body(error.message, error.code, named), status=error.status)
    response = exception_handler(error, context)
    if response is not None:
        response.data = _in_shape(response.data)
    return response


def _in_shape(data: Any) -> dict[str, Any]:
    """Return what REST framework says about one of its own errors in the shape of ours."""
    if isinstance(data, list):
        return _body(" ".join(map(str, data)), "invalid")
    detail = data.get("detail")
    if isinstance(detail, ErrorDetail):
        return _body(str(detail), detail.code)
    return _body(f"The request is not valid: see {', '.join(data)}.", "invalid", data)


def _body(detail: str, code: str, errors: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"detail": detail, "code": code} | ({"errors": errors} if errors else {})
