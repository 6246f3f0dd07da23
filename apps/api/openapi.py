"""The parts of the schema that drf-spectacular cannot derive: errors of an endpoint, and repeatable requests."""

import json
import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from inspect import getdoc
from pathlib import Path
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentIdentity, ResolvedComponent
from drf_spectacular.utils import Direction, OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.permissions import SAFE_METHODS

from apps.api.answers import Answer
from apps.api.idempotency import HEADER, REPLAYED
from apps.api.matching import HEADER as MATCH
from apps.api.matching import TAG

EXAMPLES = Path(__file__).with_name("examples")
FORM = "multipart/form-data"
BODIES = ("POST", "PUT", "PATCH")
WARNINGS = "Export-Warnings"
ERRORS = {  # by status: what its component is called, and what it means
    "400": ("Invalid", "The request is not valid; `errors` says where."),
    "401": ("Unknown", "Not signed in, or the token is unknown."),
    "403": ("Forbidden", "Not allowed for this user or this token, or the object belongs to another user."),
    "404": ("NotFound", "The object does not exist, or belongs to another parent."),
    "409": ("Conflict", "The state of the object does not allow it."),
    "413": ("TooLarge", "The body is too large."),
    "415": ("UnreadType", "The type of the body is not accepted here."),
    "429": ("TooOften", "Too many requests: wait as many seconds as Retry-After says."),
    "503": ("Away", "PostgreSQL or Redis does not answer: wait as many seconds as Retry-After says."),
}
WAIT: dict[str, object] = {
    "Retry-After": {"schema": {"type": "integer", "minimum": 1}, "required": True, "description": "In seconds."}
}
ERROR_HEADERS: dict[str, dict[str, object]] = {
    "401": {"WWW-Authenticate": {"schema": {"type": "string"}, "required": True, "description": "How to sign in."}},
    "429": WAIT,
    "503": WAIT,
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
    reference = serializers.CharField(required=False, help_text="Of an error of the server, as in its log.")


def build_header(
    name: str, description: str, *statuses: int, schema: Mapping[str, object], always: bool = True
) -> OpenApiParameter:
    """Return a header of the answers of these statuses, for the `parameters` of an operation."""
    return OpenApiParameter(
        name, schema, OpenApiParameter.HEADER, required=always, description=description, response=list(statuses)
    )


def list_file_headers(lost: str) -> list[OpenApiParameter]:
    """Return the headers of an answer that is a file; `lost` describes their list of sentences."""
    listed = {"type": "string", "contentMediaType": "application/json"}
    return [
        build_header(WARNINGS, f"A JSON list of sentences: {lost}", 200, schema=listed),
        build_header("Content-Disposition", "The name of the file.", 200, schema={"type": "string"}),
    ]


def put_example(target: Any, examples: dict[str, object], name: str) -> None:
    """Insert the example of that name, if it exists."""
    if name in examples:
        target["example"] = examples[name]


def build_part_header(file_name: str) -> dict[str, Any]:
    """Return a header of a part of a form: for some files the ending of the name gives the format."""
    return {"schema": {"type": "string"}, "example": f'form-data; name="file"; filename="{file_name}"'}


@cache
def load_example(name: str) -> dict[str, Any]:
    """Return the recorded request and answer of an operation, or each error for "errors"."""
    file = EXAMPLES / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


class Schema(AutoSchema):
    """Schema that adds to each operation the errors of the resources' base class, its headers, and its examples."""

    def get_operation(self, *args: Any) -> Any:
        operation = super().get_operation(*args)
        if operation and (example := load_example(operation["operationId"])):
            for parameter in operation.get("parameters", ()):
                put_example(parameter, example["parameters"], parameter["name"])
            for media_type, body in operation.get("requestBody", {}).get("content", {}).items():
                put_example(body, example["request"], media_type)
                if media_type == FORM:
                    body["encoding"] = {
                        "file": {"headers": {"Content-Disposition": build_part_header(example["file_name"])}}
                    }
                    self._put_in_fields(body["schema"], example["request"][FORM])
            for status, answer in operation["responses"].items():
                put_example(answer.get("content", {}).get("application/json"), example["response"], status)
        return operation

    def _put_in_fields(self, form: dict[str, str], example: Mapping[str, object]) -> None:
        """Insert the example of a form at its fields too: the interactive page shows it only there."""
        fields = self.registry[form["$ref"].rpartition("/")[2], ResolvedComponent.SCHEMA].schema["properties"]
        for name, value in example.items():
            fields[name] |= {"example": value}

    def get_override_parameters(self) -> list[Any]:
        return [*self._list_tags(), *self._list_keys()]

    def _list_tags(self) -> list[OpenApiParameter]:
        """Return the header that a change of a row may have, or the one with what it then holds."""
        if not self.view.find_editing(re.findall(r"{\w+}", self.path)):
            return []
        if self.method == "GET":
            note = f"The state of what a change can change, for the header {MATCH} of a change."
            return [build_header(TAG, note, 200, schema={"type": "string"})]
        note = f"The {TAG} with which the row was read. 409 (`stale`) if it was changed since."
        return [OpenApiParameter(MATCH, {"type": "string"}, OpenApiParameter.HEADER, description=note)]

    def _list_keys(self) -> list[OpenApiParameter]:
        if not getattr(self._get_handler(), "idempotent", False):
            return []
        note = "true: this is the answer to the request that came first with the key."
        return [
            OpenApiParameter(
                HEADER,
                {"type": "string", "pattern": "^[!-~]{1,200}$"},
                OpenApiParameter.HEADER,
                description="A repeated request with the same key and body is done once and gets the same answer.",
            ),
            build_header(REPLAYED, note, 200, 201, 202, schema={"type": "string", "const": "true"}, always=False),
        ]

    def get_summary(self) -> str | None:
        """Return the first line of the method's docstring; the others are the description."""
        return super().get_summary() or self._get_docstring()[0]

    def get_description(self) -> str:
        return self._get_docstring()[1]

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, object]:
        answer = self.get_response_serializers()
        bodies = (
            {"200": self._get_response_for_code(answer, "200")}
            if is_dataclass(answer)
            else super()._get_response_bodies(direction)
        )
        refused = {status for status in bodies if status in ERRORS} | set(map(str, self._list_errors()))
        return dict(sorted((bodies | {status: self._build_refusal(status) for status in refused}).items()))

    def _build_refusal(self, status: str) -> Any:
        """Return a reference to the schema's answer of this status, which all operations share."""
        name, description = ERRORS[status]
        component = ResolvedComponent(name, ResolvedComponent.RESPONSE, object=ComponentIdentity(status))
        if component not in self.registry:
            answer = self._get_response_for_code(OpenApiResponse(Error, description), status)
            put_example(answer["content"]["application/json"], load_example("errors"), status)
            headers = ERROR_HEADERS.get(status)
            component.schema = {"headers": headers, **answer} if headers else answer
            self.registry.register(component)
        return component.ref

    def _list_errors(self) -> list[int]:
        errors = [401, 429, 503]
        if self.view.permission_classes:
            errors.append(403)
            errors += [409] if self.method not in SAFE_METHODS else []
        if self.method in BODIES:
            errors += [400, 413, 415]
        elif any(parameter["in"] == "query" for parameter in self._get_parameters()):
            errors.append(400)
        if "{" in self.path:
            errors.append(404)
        codes = [
            int(status) for status in re.findall(r"\b4\d\d\b", getdoc(self._get_handler()) or "") if status in ERRORS
        ]
        return [*errors, *codes, *self._get_handler().operation.refuses]

    def _get_response_for_code(self, serializer: object, *args: Any, **kwargs: Any) -> Any:
        answer = Answer(dataclass=serializer) if is_dataclass(serializer) else serializer
        return super()._get_response_for_code(answer, *args, **kwargs)

    def _get_handler(self) -> Any:
        return getattr(self.view, self.view.action)

    def _get_docstring(self) -> tuple[str, str]:
        summary, _, more = (getdoc(self._get_handler()) or "").partition("\n")
        return summary, more.strip()
