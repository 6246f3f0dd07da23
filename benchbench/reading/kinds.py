"""Kinds of values: a strict type that tests a value, with its JSON schema and its words."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema

from benchbench.reading.objects import STRICT, format_value, with_message

Number = TypeVar("Number", int, float)


class Kind:
    """A kind of value. `words` and `schema` follow from the type, unless `words` are given.

    The type is one that pydantic knows. It is strict: true is not 1, "5" and 5.0 are not 5, and numbers are finite.
    In an annotation, `Annotated[int, COUNT]`, it restricts a key of a record (`benchbench.reading.objects`).
    """

    def __init__(self, annotation: Any, words: str = "") -> None:
        self._annotation = annotation
        self._adapter = TypeAdapter(annotation, config=STRICT)
        self.schema: dict[str, Any] = self._adapter.json_schema()
        self.words = words or _describe(self.schema)

    def holds(self, value: object) -> bool:
        """Return whether `value` is of this kind."""
        try:
            self._adapter.validate_python(value)
        except ValidationError:
            return False
        return True

    @property
    def or_null(self) -> "Kind":
        """Return the same kind that also admits null."""
        return Kind(self._annotation | None, f"{self.words}, or null")

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return with_message(handler.generate_schema(self._annotation), self.words)


def int_between(minimum: int, maximum: int) -> Kind:
    """Return the kind of whole numbers between bounds, both included."""
    return Kind(Annotated[int, Field(ge=minimum, le=maximum)])


def convert_number(convert: Callable[[str], Number], text: str) -> Number:
    """Return a text as a number, by `int` or `float`. Raises ValueError, also for `1_0` and digits of other scripts."""
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    return convert(text)


def one_of(*names: str) -> Kind:
    """Return the kind of one of several names; its words list them without quotes."""
    return Kind(Literal[names], f"one of {', '.join(names)}")


def _describe(schema: dict[str, Any]) -> str:
    match schema:
        case {"enum": choices}:
            return f"one of {', '.join(map(format_value, choices))}"
        case {"const": choice}:
            return format_value(choice)
        case {"type": "boolean"}:
            return "one of true, false"
        case {"type": "integer", "minimum": least, "maximum": most}:
            return f"a whole number from {least} to {most}"
        case {"type": "number", "minimum": least, "maximum": most}:
            return f"a number from {least:g} to {most:g}"
    raise ValueError(f"The schema {schema} has no words: add them.")
