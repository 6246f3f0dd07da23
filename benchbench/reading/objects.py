"""Objects of input files, read as records: `read_as`, and the annotations of a record's keys.

pydantic does the testing. It is imported when the first object is read, so commands that read none start faster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn, TypeVar

from benchbench.errors import BenchbenchError
from benchbench.reading.strict_json import is_same, kind

if TYPE_CHECKING:
    from pydantic import ConfigDict, GetCoreSchemaHandler, TypeAdapter
    from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError

T = TypeVar("T")
STRICT: ConfigDict = {"strict": True, "allow_inf_nan": False}
TYPES = {
    **{"string_type": "a string", "tuple_type": "a list", "list_type": "a list", "dict_type": "an object"},
    **{"int_type": "a whole number", "float_type": "a number", "bool_type": "true or false"},
    "model_type": "an object",
}


class InvalidKeyError(BenchbenchError):
    """A key of an input file is unknown, missing, or has an invalid value."""

    code = "invalid_key"


class StrictRecord:
    """Base of a dataclass read from an object. Unknown keys are refused, unless it `IGNORES_OTHERS`.

    `KEYS` maps fields to keys of other names. `ALIASES` gives some keys a second name, whose value must agree with the
    first. Null counts as absent, unless `NULL_IS_A_VALUE`. Fields are strict: true is not 1, 5.0 is not 5, and a list
    field is a `Listed`. `Must` and `Checked` add conditions.
    """

    __slots__ = ()
    KEYS: ClassVar[Mapping[str, str]] = {}
    ALIASES: ClassVar[Mapping[str, str]] = {}
    NULL_IS_A_VALUE: ClassVar[bool] = False
    IGNORES_OTHERS: ClassVar[bool] = False

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        names = cls.__dataclass_fields__  # type: ignore[attr-defined]
        keys = [cls.KEYS.get(name, name) for name in names]
        allowed_keys = dict.fromkeys(name for key in keys for name in (key, cls.ALIASES.get(key)) if name)
        cls.__pydantic_config__ = STRICT | {"alias_generator": lambda name: cls.KEYS.get(name, name)}  # type: ignore[attr-defined]
        inner = {**handler(source), "strict": False}  # strict, it would take nothing but an instance
        # A `ref` identifies records that occur in several places or contain themselves. It must refer to the whole
        # schema, not to the part without the tests of `parse_object`.
        ref = inner.pop("ref", None)
        return core_schema.no_info_before_validator_function(
            lambda value: cls.parse_object(value, allowed_keys), inner, ref=ref
        )

    @classmethod
    def parse_object(cls, value: object, allowed_keys: Mapping[str, object]) -> Any:
        """Return the object of a value with the given keys, or raise a `fault`."""
        if not isinstance(value, dict):
            raise fault(f"must be an object, not {kind(value)}")
        for key in value:
            if key not in allowed_keys and not cls.IGNORES_OTHERS:
                raise fault(f"has the unknown key {key[:40]!a}: choose one of {', '.join(allowed_keys)}", key)
        for key, alias in cls.ALIASES.items():
            if alias in value:
                if key in value and not is_same(value[key], value[alias]):
                    raise fault(f"has {key} and its alias {alias} with different values", key)
                value = {key: value[alias], **value}
        return value if cls.NULL_IS_A_VALUE else drop_nulls(value)


class Checked:
    """An annotation: `check` takes a value of the type, or with `before` any value, and returns its meaning.

    It raises a `fault` for an invalid value.
    """

    def __init__(self, check: Callable[[Any], object], *, before: bool = False) -> None:
        self._check = check
        self._before = before

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        if self._before:
            return core_schema.no_info_before_validator_function(self._check, handler(source))
        return core_schema.no_info_after_validator_function(self._check, handler(source))


class Must:
    """An annotation with a condition: a value that breaks it, or the type, "must be WORDS, not VALUE"."""

    def __init__(self, words: str, holds: Callable[[Any], bool] = lambda value: True) -> None:
        self._words = words
        self._holds = holds

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return with_message(core_schema.no_info_after_validator_function(self._check, handler(source)), self._words)

    def _check(self, value: object) -> Any:
        if not self._holds(value):
            raise ValueError
        return value


class _List:
    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: Any = handler(source)
        return schema | {"strict": False, "fail_fast": True}


def check_filled(value: object) -> str:
    """Return a string that is not blank, or raise a `fault`."""
    if not isinstance(value, str):
        raise fault(f"must be a string, not {kind(value)}")
    if not value.strip():
        raise fault("must not be blank")
    return value


def check_strings(value: object) -> tuple[str, ...]:
    """Return a list of distinct strings that are not blank, or raise a `fault`."""
    if not isinstance(value, list):
        raise fault(f"must be a list, not {kind(value)}")
    if not all(isinstance(text, str) and text.strip() for text in value):
        raise fault("must be a list of strings that are not blank")
    return tuple(dict.fromkeys(value))


Listed = Annotated[tuple[T, ...], _List()]  # a list in the file
Filled = Annotated[str, Checked(check_filled, before=True)]  # a string that is not blank
Identifier = Annotated[
    Filled, Checked(lambda value: str(value) if type(value) is int else value, before=True)
]  # the same; an integer is read as its digits
Strings = Annotated[tuple[str, ...], Checked(check_strings, before=True)]  # a list of such, repeated ones once


def with_message(schema: CoreSchema, words: str) -> CoreSchema:
    """Return a pydantic schema with one message for every failure: "must be WORDS, not VALUE"."""
    from pydantic_core import core_schema

    return core_schema.custom_error_schema(
        schema, custom_error_type="kind", custom_error_message="{words}", custom_error_context={"words": words}
    )


def fault(problem: str, key: str = "") -> PydanticCustomError:
    """Return the error of a value for a validator to raise; its text continues a sentence that begins with the path."""
    from pydantic_core import PydanticCustomError

    return PydanticCustomError("fault", "{problem}", {"problem": problem, "key": key})


def format_value(value: object) -> str:
    """Return a value as its author writes it: in JSON."""
    return json.dumps(value, ensure_ascii=False, default=repr)


def drop_nulls(item: object) -> object:
    """Return an object without its null keys, which some programs write for absent ones."""
    return {key: value for key, value in item.items() if value is not None} if isinstance(item, dict) else item


def read_as(record: type[T], value: Any, *, prefix: str = "", suffix: str = "") -> T:
    """Return the record of a JSON value; prefix and suffix surround its path in errors: "e.yaml, ".

    Raises InvalidKeyError, with the whole path, for the first invalid key.
    """
    from pydantic import ValidationError

    try:
        return _build_adapter(record).validate_python(value)  # type: ignore[arg-type]  # a TypeVar's class is hashable
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    path, problem, key = _describe_fault(first)
    refuse(f"{prefix}{path}" if path else prefix.rstrip("., "), problem, key, suffix)


def read_list(record: type[T], value: object, *, prefix: str = "") -> tuple[T, ...]:
    """Return the records of a list of objects; see `read_as`."""
    return read_as(_listed(record), value, prefix=prefix)  # type: ignore[arg-type]


def refuse(path: str, problem: str, key: str = "", suffix: str = "") -> NoReturn:
    """Raise InvalidKeyError for a place of a file and its key."""
    raise InvalidKeyError(f"{path or 'The file'}{suffix} {problem}.", field=".".join(filter(None, (path, key))))


@cache
def _build_adapter(record: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(record)


@cache
def _listed(record: Any) -> Any:
    return Listed[record]


def _describe_fault(error: ErrorDetails) -> tuple[str, str, str]:
    """Return the path of an invalid value, the problem, and its missing or unknown key."""
    loc, value, context = error["loc"], error["input"], error.get("ctx", {})
    if error["type"] == "missing":
        return _render_path(loc[:-1]), f"is missing the key {loc[-1]}", str(loc[-1])
    if error["type"] == "fault":
        return _render_path(loc), context["problem"], context["key"][:40]
    if error["type"] == "kind":
        return _render_path(loc), f"must be {context['words']}, not {_shorten(value)}", ""
    if error["type"] in ("literal_error", "enum"):
        return _render_path(loc), f"must be {_render_choices(context['expected'])}, not {_shorten(value)}", ""
    if error["type"] in TYPES:
        return _render_path(loc), f"must be {TYPES[error['type']]}, not {kind(value)}", ""
    return _render_path(loc), f"is invalid ({error['msg']}): it has {_shorten(value)}", ""


def _render_choices(expected: str) -> str:
    """Return pydantic's list of choices, "'a', 'b' or 'c'", with our quotes."""
    return expected.replace("'", '"')


def _shorten(value: object) -> str:
    text = format_value(value)
    return text if len(text) <= 40 else f"{text[:37]}…"


def _render_path(loc: tuple[int | str, ...]) -> str:
    steps = (step for step in loc if step != "[key]")  # which pydantic adds if the key itself is invalid
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
