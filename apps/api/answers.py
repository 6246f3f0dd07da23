"""Answers: columns of a model, a frozen dataclass that a use case returns, or a page of either.

Each field is declared once, there.
"""

from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from datetime import datetime
from inspect import getdoc
from typing import Any, get_type_hints

from django.db import models
from django.db.models import QuerySet
from drf_spectacular.contrib.rest_framework_dataclasses import OpenApiDataclassSerializerExtensions
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentIdentity
from drf_spectacular.utils import Direction
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework_dataclasses.serializers import DataclassSerializer

from apps.api.fields import Validated
from benchbench.timestamps import timestamp

TIMES = ("created_at", "updated_at")


class Moment(serializers.DateTimeField):
    """A time in UTC, regardless of the time zone of the site."""

    def to_representation(self, value: datetime) -> str:
        return timestamp(value)


class TextOrNull(serializers.CharField):
    """A text; null where it is empty."""

    def to_representation(self, value: object) -> str | None:
        return str(value) or None


class ModelAnswer(serializers.ModelSerializer):
    """The columns of a model that `Meta.fields` names, with the model's help texts or those of `Meta.extra_kwargs`."""

    serializer_field_mapping = serializers.ModelSerializer.serializer_field_mapping | {models.DateTimeField: Moment}
    owner_id = serializers.IntegerField(allow_null=True, help_text="null: it belongs to the whole staff.")

    def build_standard_field(self, field_name: str, model_field: object) -> tuple[Any, dict[str, Any]]:
        kind, options = super().build_standard_field(field_name, model_field)
        if isinstance(model_field, models.JSONField):
            return serializers.DictField, {
                name: options[name] for name in ("help_text", "allow_null") if name in options
            }
        return kind, options

    def build_property_field(self, field_name: str, model_class: object) -> tuple[Any, dict[str, Any]]:
        """Return the field of a foreign key's column, such as `dataset_id`."""
        key = getattr(model_class, field_name).field
        return self.build_standard_field(field_name, key.target_field)[0], {"allow_null": key.null}

    def include_extra_kwargs(self, kwargs: Any, extra_kwargs: Any) -> Any:
        return super().include_extra_kwargs(kwargs, extra_kwargs | {"read_only": True})


class Answer(DataclassSerializer):
    """A frozen dataclass; `Annotated[int, "..."]` gives a field its help."""

    serializer_field_mapping = {**DataclassSerializer.serializer_field_mapping, datetime: Moment}

    @property
    def serializer_dataclass_field(self) -> type[DataclassSerializer]:
        return Answer

    def build_enum_field(self, field_name: str, type_info: Any) -> tuple[Any, dict[str, Any]]:
        kind = type_info.base_type
        return serializers.ChoiceField, {"choices": getattr(kind, "choices", None) or list(map(str, kind))}

    def get_extra_kwargs(self) -> dict[str, Any]:
        hints = get_type_hints(self.dataclass_definition.dataclass_type, include_extras=True)
        help_texts = {name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")}
        undeclared = {
            name: {"help_text": text} for name, text in help_texts.items() if name not in self._declared_fields
        }
        return undeclared | super().get_extra_kwargs()


def present(shape: Any, value: Any, status: int = 200) -> Response:
    """Answer with a value in the shape of a dataclass or of a serializer."""
    answer = Answer(value, dataclass=shape) if is_dataclass(shape) else shape(value)
    return Response(answer.data, status=status)


class Page(serializers.Serializer):
    """A page of a list. A subclass adds the field that holds the rows, named after them."""

    total = serializers.IntegerField(min_value=0, help_text="Rows on all pages together.")
    page = serializers.IntegerField(min_value=1)
    per_page = serializers.IntegerField(min_value=1)


def build_page(name: str, row: type) -> type[Page]:
    """Return the page whose rows are under `name`: of a serializer, or of a dataclass."""
    rows = Answer(dataclass=row, many=True) if is_dataclass(row) else row(many=True)
    return type(f"{row.__name__.removesuffix('Answer')}Page", (Page,), {name: rows, "__doc__": f"A page of {name}."})


def answer_page(
    page: type[Page],
    rows: QuerySet[Any] | Sequence[Any],
    query: Validated,
    *,
    prepare: Callable[[Any], Sequence[Any]] = list,
    **about: Any,
) -> Response:
    """Answer with the page of `rows` that `query`, read by a `PageQuery`, asks for, each row converted by `prepare`.

    `about` has further fields of `page` by name.

    Two queries for any size, plus those of the rows' prefetches. The order must be total, or pages would overlap.
    """
    (name,) = set(page().fields) - set(Page().fields) - set(about)
    start = (query["page"] - 1) * query["per_page"]
    total = rows.count() if isinstance(rows, QuerySet) else len(rows)
    page_rows = prepare(rows[start : start + query["per_page"]]) if start < total else []
    answer = {**about, name: page_rows, "total": total, "page": query["page"], "per_page": query["per_page"]}
    return Response(page(answer).data)


class ModelAnswerSchema(OpenApiSerializerExtension):
    """An answer has all its fields."""

    target_class = ModelAnswer
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Direction) -> Any:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        for field in schema["properties"].values():
            field.pop("readOnly", None)
        return schema | {"required": [*schema["properties"]]}


class AnswerSchema(OpenApiDataclassSerializerExtensions):
    """Schema of an answer from a dataclass: its name and docstring, unless the serializer has its own."""

    target_class = "apps.api.answers.Answer"
    match_subclasses = True
    priority = 1

    @property
    def _subject(self) -> type:
        kind = type(self.target)
        return self.target.dataclass_definition.dataclass_type if kind is Answer else kind

    def get_name(self, auto_schema: AutoSchema | None = None, direction: Direction | None = None) -> str:
        return self._subject.__name__

    def get_identity(self, auto_schema: AutoSchema, direction: Direction) -> ComponentIdentity:
        return ComponentIdentity(self._subject)

    def map_serializer(self, auto_schema: AutoSchema, direction: Direction) -> Any:
        schema = super().map_serializer(auto_schema, direction)
        return schema | {"required": [*schema["properties"]], "description": getdoc(self._subject)}
