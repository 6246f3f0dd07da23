"""What drf-spectacular cannot see of an endpoint: its errors, and which requests may be repeated."""

from inspect import getdoc
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.permissions import SAFE_METHODS

from apps.api.idempotency import HEADER

BODIES = ("POST", "PUT", "PATCH")
ERRORS = {
    "400": "The request is not valid; `errors` says where.",
    "401": "Nobody, or nobody known, is asking.",
    "403": "The user may not, or not with this token, or the thing is somebody else's.",
    "404": "There is no such thing, or not under this parent.",
    "409": "The state of the thing forbids it.",
    "413": "The body is too large.",
    "415": "The body is of a type that is not read here.",
    "429": "Too many requests: wait as many seconds as Retry-After says.",
}


class Error(serializers.Serializer):
    """Every error has this shape."""

    detail = serializers.CharField(help_text="A sentence for people: what is wrong, and what to do.")
    code = serializers.CharField(help_text="Stable, for programs.")
    errors = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="Sentences by the field of the request that they are about.",
    )
    reference = serializers.CharField(required=False, help_text="Of a fault of the server, as it is in its log.")


def refusals(*statuses: int) -> dict[int, OpenApiResponse]:
    """Return the errors of an operation besides those that the base of endpoints may answer, for its `responses`."""
    return {status: OpenApiResponse(Error, ERRORS[str(status)]) for status in statuses}


class Schema(AutoSchema):
    """Adds to each operation the errors that the base of endpoints may answer, and its headers."""

    def get_override_parameters(self) -> list[Any]:
        if not getattr(self._handler(), "idempotent", False):
            return []
        return [
            OpenApiParameter(
                HEADER,
                {"type": "string", "pattern": "^[!-~]{1,200}$"},
                OpenApiParameter.HEADER,
                description="Sent again with the same body, the request is done once and answered alike.",
            )
        ]

    def get_summary(self) -> str | None:
        """The first line of the method's docstring; the others are the description."""
        return super().get_summary() or self._docstring()[0]

    def get_description(self) -> str:
        return self._docstring()[1]

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        bodies = super()._get_response_bodies(direction)
        for status in map(str, self._errors()):
            if status not in bodies:
                answer = OpenApiResponse(Error, ERRORS[status])
                bodies[status] = self._get_response_for_code(answer, status, direction=direction)
        return dict(sorted(bodies.items()))

    def _errors(self) -> list[int]:
        errors = [401, 429]
        if self.view.permission_classes:
            errors.append(403)
            errors += [409] if self.method not in SAFE_METHODS else []
        if self.method in BODIES:
            errors += [400, 413, 415]
        elif any(parameter["in"] == "query" for parameter in self._get_parameters()):
            errors.append(400)
        if "{" in self.path:
            errors.append(404)
        return errors

    def _handler(self) -> Any:
        return getattr(self.view, self.method.lower(), None)

    def _docstring(self) -> tuple[str, str]:
        summary, _, more = (getdoc(self._handler()) or "").partition("\n")
        return summary, more.strip()
