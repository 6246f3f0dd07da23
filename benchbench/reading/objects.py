"""Objects in somebody's file, read as the records that they state: `read_as`, and what a record says of its keys."""

from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import ConfigDict, FailFast, GetCoreSchemaHandler, Strict, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from benchbench.reading.fields import InvalidKeyError, without_nulls
from benchbench.reading.kinds import shown
from benchbench.reading.strict_json import kind

T = TypeVar("T")
Listed = Annotated[tuple[T, ...], Strict(False), FailFast()]  # a list in the file
TYPES = {
    **{"string_type": "a string", "tuple_type": "a list", "list_type": "a list", "dict_type": "an object"},
    "model_type": "an object",
    **{"int_type": "a whole number", "float_type": "a number", "bool_type": "true or false"},
}


class Stated:
    """Base of a dataclass that an object states: key by key, null as if it were not there, no key besides.

    Its fields are strict: a string or a record is what it is, a list is a `Listed`, and a number has a `Kind`.
    """

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: Any = handler(source)
        schema["strict"] = False  # strict, it would take nothing but an instance
        return core_schema.no_info_before_validator_function(cls._stated, schema)

    @classmethod
    def _stated(cls, value: Any) -> Any:
        if isinstance(value, cls):
            return value
        known: dict[str, Any] = cls.__dataclass_fields__  # type: ignore[attr-defined]
        if not isinstance(value, dict):
            raise fault(f"must be an object, not {kind(value)}")
        for key in value:
            if key not in known:
                raise fault(f"has the unknown key {key[:40]!a}: known are {', '.join(known)}", key)
        return without_nulls(value)


def fault(what: str, key: str = "") -> PydanticCustomError:
    """The error of a value, for a validator to raise: what goes on a sentence that begins with the value's path."""
    return PydanticCustomError("fault", "{what}", {"what": what, "key": key})


def read_as(record: type[T], value: Any, *, prefix: str = "") -> T:
    """Return the record that a JSON value states; `prefix` comes before its path in sentences: "e.yaml, ".

    Raises InvalidKeyError, whose sentence has the whole path, for the first key that is not as the record says.
    """
    try:
        stated: T = _adapter(record).validate_python(value)  # type: ignore[arg-type]  # a TypeVar's class is hashable
        return stated
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    place, what, key = _fault(first)
    whole = f"{prefix}{place}" if place else prefix.rstrip("., ")
    raise InvalidKeyError(f"{whole or 'The file'} {what}.", field=f"{whole}.{key}" if key else whole)


@cache
def _adapter(record: Any) -> TypeAdapter[Any]:
    return TypeAdapter(record)


def _fault(error: ErrorDetails) -> tuple[str, str, str]:
    """Return the path of a value, what is wrong with it, and the key of it that is missing or unknown."""
    loc, value, said = error["loc"], error["input"], error.get("ctx", {})
    if error["type"] == "missing":
        return _path(loc[:-1]), f"lacks the key {loc[-1]}", str(loc[-1])
    if error["type"] == "fault":
        return _path(loc), said["what"], said["key"][:40]
    if error["type"] == "kind":
        text = shown(value)
        return _path(loc), f"must be {said['words']}, not {text if len(text) <= 40 else f'{text[:37]}…'}", ""
    return _path(loc), f"must be {TYPES.get(error['type'], 'something else')}, not {kind(value)}", ""


def _path(loc: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).removeprefix(".")
