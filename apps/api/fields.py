"""Serializers and fields that read strictly: unknown keys and other types are errors."""

from collections.abc import Mapping
from re import ASCII, fullmatch
from typing import Any, ClassVar
from uuid import UUID

from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from drf_spectacular.extensions import OpenApiSerializerExtension, OpenApiSerializerFieldExtension
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.settings import api_settings

from apps.api import sentences
from benchbench.reading.strict_json import kind, storable

EXACT = 2**53
GREATEST = 2**31 - 1  # what a column of numbers holds


class Spoken:
    """Whatever reads a part of a request: it says what is wrong with it in our words."""

    default_error_messages: ClassVar[dict[str, Any]] = sentences.FIELD


class StrictList(Spoken, serializers.ListSerializer):
    default_error_messages = sentences.LIST


class StrictSerializer(Spoken, serializers.Serializer):
    """Refuses keys that it does not know, and in forms and query strings keys that stand twice."""

    default_error_messages = sentences.OBJECT

    class Meta:
        list_serializer_class = StrictList

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, Mapping):
            sentence = f"{sentences.KEY} is {kind(data)}: send an object with {self._known()}."
            raise ValidationError({api_settings.NON_FIELD_ERRORS_KEY: [sentence]})
        for key in data:
            if key not in self.fields:
                raise ValidationError({key[:40]: [f"There is no key {key[:40]!r} here; there are {self._known()}."]})
        return super().to_internal_value(self._plain(data) if isinstance(data, QueryDict) else data)

    def _plain(self, form: QueryDict) -> dict[str, Any]:
        """Return a form as the object that it states: REST framework would read an empty value as none at all."""
        plain: dict[str, Any] = {}
        for key, values in form.lists():
            many = isinstance(self.fields[key], serializers.ListField)
            if len(values) > 1 and not many:
                raise ValidationError({key: [f"{key} is given twice: give it once."]})
            plain[key] = values if many else values[0]
        return plain

    def _known(self) -> str:
        return ", ".join(self.fields)


def valid(serializer: type[serializers.Serializer], data: Any) -> dict[str, Any]:
    """Return what a request states, read by its serializer; raise ValidationError with a sentence for each fault."""
    reading = serializer(data=data)
    reading.is_valid(raise_exception=True)
    return reading.validated_data


def require_empty(data: Any) -> None:
    """Refuse a body where nothing can be stated: a key that does nothing must not look as if it did."""
    if data:
        keys = ", ".join(repr(str(key)[:40]) for key in data) if isinstance(data, Mapping) else kind(data)
        raise ValidationError({api_settings.NON_FIELD_ERRORS_KEY: [f"No key is allowed here: leave out {keys}."]})


def typed(field: Any, data: Any, kinds: tuple[type, ...], wanted: str) -> Any:
    """Return `data` where it is of one of the JSON types `kinds`; true and false are numbers for Python only."""
    if isinstance(data, kinds) and not (isinstance(data, bool) and bool not in kinds):
        return data
    got = "a file" if isinstance(data, UploadedFile) else repr(data[:40]) if from_form(field) else kind(data)
    raise ValidationError([f"{sentences.KEY} must be {wanted}, not {got}."])


def as_whole(data: Any) -> Any:
    """Return 5 for 5.0, which are one number in JSON, and anything else as it is: a float past 2^53 may be inexact."""
    return int(data) if isinstance(data, float) and data.is_integer() and abs(data) <= EXACT else data


def from_form(field: Any) -> bool:
    """Whether the field is of a form or a query string, where every value is a string."""
    return isinstance(getattr(field.root, "initial_data", None), QueryDict)


class Text(Spoken, serializers.CharField):
    default_error_messages = sentences.TEXT

    def to_internal_value(self, data: Any) -> str:
        text = typed(self, data, (str,), "a string")
        if not storable(text):  # of a form or an address: such JSON is refused as a whole
            raise ValidationError([sentences.UNSTORABLE])
        return super().to_internal_value(text)


class Identifier(Spoken, serializers.UUIDField):
    default_error_messages = sentences.UUID

    def to_internal_value(self, data: Any) -> UUID:
        return super().to_internal_value(typed(self, data, (str,), "a string"))  # REST framework takes numbers too


class Whole(Spoken, serializers.IntegerField):
    default_error_messages = sentences.NUMBER

    def to_internal_value(self, data: Any) -> int:
        if from_form(self) and isinstance(data, str) and fullmatch(r"-?\d{1,18}", data, ASCII):
            return int(data)
        return typed(self, as_whole(data), (int,), "a whole number")


class VersionNumber(Whole):
    """The number of a version of a dataset, which may be left out."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, min_value=1, max_value=GREATEST, **options)


class Flag(Spoken, serializers.BooleanField):
    words: ClassVar[dict[str, bool]] = {"true": True, "false": False}
    default_error_messages = sentences.FLAG

    def to_internal_value(self, data: Any) -> bool:
        if from_form(self) and data in self.words:
            return self.words[data]
        return typed(self, data, (bool,), "true or false")


class Choice(Spoken, serializers.ChoiceField):
    default_error_messages = sentences.CHOICE

    def fail(self, key: str, **told: Any) -> None:
        choices = ", ".join(str(choice) for choice in self.choices)
        super().fail(key, **{name: str(value)[:40] for name, value in told.items()}, choices=choices)


class ListOf(Spoken, serializers.ListField):
    default_error_messages = sentences.LIST


class AnyObject(Spoken, serializers.DictField):
    default_error_messages = sentences.OBJECT


class AnyJSON(Spoken, serializers.JSONField):
    default_error_messages = sentences.JSON


class FilePart(Spoken, serializers.FileField):
    default_error_messages = sentences.FILE


class AnyValue(Spoken, serializers.Field):
    """What a subclass, or the use case, reads by itself."""


class StrictSchema(OpenApiSerializerExtension):
    """Says in the schema that other keys are refused."""

    target_class = StrictSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> Any:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return schema | {"additionalProperties": False}


class TextSchema(OpenApiSerializerFieldExtension):
    """Says in the schema that a text of spaces counts as blank."""

    target_class = Text
    match_subclasses = True

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, str]:
        blank = self.target.allow_blank or not self.target.trim_whitespace
        return {"type": "string"} if blank else {"type": "string", "pattern": r"\S"}
