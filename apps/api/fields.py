"""Serializers and fields that read strictly: unknown keys and other types are errors."""

from collections.abc import Mapping
from re import ASCII, fullmatch
from typing import Any, TypeAlias
from uuid import UUID

from django.http import QueryDict
from drf_spectacular.extensions import OpenApiSerializerExtension, OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import Direction
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.settings import api_settings

from benchbench.decimals import list_some
from benchbench.reading.ids import parse_uuid
from benchbench.reading.strict_json import kind
from benchbench.site.lengths import LONGEST_TEXT

EXACT = 2**53
MOST_PAGES = 1_000_000
MOST_ITEMS = 10_000  # of any list; a field may allow fewer
GREATEST = 2**31 - 1  # what a column of numbers holds

Validated: TypeAlias = dict[str, Any]  # what a serializer made of a request: by field, a value of the field's type


class StrictSerializer(serializers.Serializer):
    """Serializer that refuses unknown keys, and repeated keys in forms and query strings."""

    def to_internal_value(self, data: object) -> Any:
        for key in data if isinstance(data, Mapping) else ():
            if key not in self.fields:
                raise ValidationError({key[:40]: [f"Unknown key: use {', '.join(self.fields)}."]})
        plain = self._parse_form(data) if isinstance(data, QueryDict) else data
        for key, value in plain.items() if isinstance(plain, Mapping) else ():
            if isinstance(value, list) and len(value) > MOST_ITEMS:  # REST framework reads all before it counts them
                raise ValidationError({key: [f"A list has at most {MOST_ITEMS:,} items, not {len(value):,}."]})
        return super().to_internal_value(plain)

    def _parse_form(self, form: QueryDict) -> dict[str, object]:
        """Return a form as an object; REST framework would read an empty value as missing."""
        plain: dict[str, object] = {}
        for key, values in form.lists():
            many = isinstance(self.fields[key], serializers.ListField)
            if len(values) > 1 and not many:
                raise ValidationError({key: [f"{key} is given twice: give it once."]})
            plain[key] = values if many else values[0]
        return plain


def validate(serializer: type[serializers.Serializer], data: object) -> Validated:
    """Return what a request states, read by its serializer; raise ValidationError with a sentence for each fault."""
    reading = serializer(data=data)
    reading.is_valid(raise_exception=True)
    return reading.validated_data


def require_empty(data: object) -> None:
    """Refuse a body where none is expected, so that a key without effect is not overlooked."""
    if data:
        keys = list_some([repr(str(key)[:40]) for key in data]) if isinstance(data, Mapping) else kind(data)
        raise ValidationError({api_settings.NON_FIELD_ERRORS_KEY: [f"No key is allowed here: leave out {keys}."]})


def as_int(data: object) -> Any:
    """Return 5 for 5.0, which are one number in JSON, and anything else as it is: a float past 2^53 may be inexact."""
    return int(data) if isinstance(data, float) and data.is_integer() and abs(data) <= EXACT else data


def is_from_form(field: Any) -> bool:
    """Whether the field is of a form or a query string, where every value is a string."""
    return isinstance(getattr(field.root, "initial_data", None), QueryDict)


class Text(serializers.CharField):
    """A string, and no number that REST framework would turn into one."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        if len(data) > (longest := max(self.max_length or 0, LONGEST_TEXT)):
            self.fail("max_length", max_length=longest)
        return super().to_internal_value(data)


class Key(Text):
    """A key or an id that users give: kept as it is written, white space around it too. A blank one is refused."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def run_validation(self, data: object = serializers.empty) -> Any:
        if isinstance(data, str) and not data.strip():
            self.fail("blank")
        return super().run_validation(data)


class Identifier(serializers.UUIDField):
    """A UUID as a string of its usual form; REST framework takes numbers and other forms too."""

    def to_internal_value(self, data: Any) -> UUID:
        try:
            return parse_uuid(data)
        except ValueError:
            return self.fail("invalid", value=data)


class Int(serializers.IntegerField):
    """A whole number, as exact as it was written; in JSON no string."""

    def to_internal_value(self, data: object) -> int:
        if is_from_form(self) and isinstance(data, str) and fullmatch(r"-?\d{1,18}", data, ASCII):
            return int(data)
        number = as_int(data)
        if not isinstance(number, int) or isinstance(number, bool):
            self.fail("invalid")
        return number


class Number(serializers.FloatField):
    """A number; in JSON no string."""

    def to_internal_value(self, data: object) -> float:
        if not isinstance(data, int | float) or isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


class VersionNumber(Int):
    """The number of a version of a dataset, which may be left out."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, min_value=1, max_value=GREATEST, **options)


class Flag(serializers.BooleanField):
    """true or false; REST framework's other words for them are refused."""

    def to_internal_value(self, data: Any) -> bool:
        if is_from_form(self) and data in ("true", "false"):
            return bool(data == "true")
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class PageQuery(StrictSerializer):
    """Query parameters of a paginated list; subclasses add filters."""

    page = Int(min_value=1, max_value=MOST_PAGES, default=1, help_text="From 1. A page after the last one is empty.")
    per_page = Int(min_value=1, max_value=100, default=50)


class StrictSchema(OpenApiSerializerExtension):
    """Schema extension: other keys are refused."""

    target_class = StrictSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Direction) -> Any:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return schema | {"additionalProperties": False}


class TextSchema(OpenApiSerializerFieldExtension):
    """Schema extension: a text of spaces counts as blank."""

    target_class = Text
    match_subclasses = True

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Direction) -> dict[str, str]:
        blank = self.target.allow_blank or not (self.target.trim_whitespace or isinstance(self.target, Key))
        return {"type": "string"} if blank else {"type": "string", "pattern": r"\S"}
