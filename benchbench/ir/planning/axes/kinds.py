"""Kinds of the values of axes: what a value must be, and how a text states several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field

from benchbench.reading.calls import split_calls
from benchbench.reading.kinds import Kind, convert_number

MAX_TOP_K = 1000
MAX_DEPTH = 10_000
MAX_RATE = 10_000.0  # requests per second
_integer, _decimal = partial(convert_number, int), partial(convert_number, float)


def split_commas(text: str) -> list[str]:
    """Return the parts of a text between commas, without spaces around them; empty ones are dropped."""
    return [item.strip() for item in text.split(",") if item.strip()]


def parse_integers(text: str) -> list[int]:
    """Return the whole numbers between commas. Raises ValueError with the invalid part as its text."""
    return [_read(_integer, item) for item in split_commas(text)]


def parse_switch(text: str) -> list[str]:
    """Return the parts of a text that states a switch; "both" is off, then on."""
    return ["off", "on"] if text.lower() == "both" else split_commas(text)


def _read(read: Callable[[str], object], text: str) -> Any:
    try:
        return read(text)
    except (KeyError, ValueError):
        raise ValueError(text) from None


class Reader(NamedTuple):
    """Reader of a text that states several values: `split` parts it, `parse` reads one, `expects` describes one."""

    expects: str = "a name"
    parse: Callable[[str], Any] = str
    split: Callable[[str], list[str]] = split_commas


AS_IT_IS = Reader()


class AxisKind(Kind):
    """A kind of value that a text may state too, one or several."""

    def __init__(self, annotation: object, words: str = "", reader: Reader = AS_IT_IS) -> None:
        super().__init__(annotation, words)
        self.reader = reader

    @property
    def or_null(self) -> AxisKind:
        return AxisKind(self._annotation | None, f"{self.words}, or null", self.reader)

    def read(self, text: str) -> list[Any]:
        """Return the values that a text states. Raises ValueError, whose text is the part that cannot be read."""
        return [_read(self.reader.parse, item) for item in self.reader.split(text)]


def _or_none(parse: Callable[[str], object]) -> Callable[[str], object]:
    return lambda text: None if text.lower() in ("none", "null", "off") else parse(text)


def _check_weights(weights: Sequence[float]) -> Sequence[float]:
    if not any(weights):
        raise ValueError
    return weights


def choice(*values: str) -> AxisKind:
    """Return the kind of one of several words."""
    return AxisKind(Literal[values])


def call(words: str) -> AxisKind:
    """Return the kind of a name with options, as text or object."""
    return AxisKind(str | dict[str, Any], words, Reader(split=split_calls))


INTEGER = Reader("a whole number", _or_none(_integer))
NUMBER = Reader("a number or “none”", _or_none(_decimal))
RATES = Reader("a rate such as 20/s, or “none”", _or_none(lambda text: _decimal(text.removesuffix("/s"))))
PAIR = Reader("a pair of numbers such as 0.7:0.3", _or_none(lambda text: [_decimal(item) for item in text.split(":")]))
ON_OR_OFF = Reader("on, off or both", lambda text: {"on": True, "off": False}[text.lower()], parse_switch)

NAME = AxisKind(Annotated[str, Field(pattern=r"\S")], "a name")
CUTOFF = AxisKind(Annotated[int, Field(ge=1, le=MAX_TOP_K)], reader=INTEGER)
DEPTH = AxisKind(Annotated[int, Field(ge=1, le=MAX_DEPTH)], reader=INTEGER)
SHARE = AxisKind(Annotated[float, Field(ge=0, le=1)], reader=NUMBER)
ADMITTED = AxisKind(Annotated[float, Field(gt=0, le=1)], "a number above 0, up to 1", NUMBER)
RATE = AxisKind(Annotated[float, Field(gt=0, le=MAX_RATE)], "requests per second, above 0 and at most 10,000", RATES)
SWITCH = AxisKind(bool, reader=ON_OR_OFF)
QUERY_TEXT = AxisKind(str, "as_asked, rewrite, hyde or multi(n)")
LLM = AxisKind(
    Annotated[str, Field(pattern=r"^[\w-]+:\S+$")], "a language model with its server, such as ollama:llama3.2"
)
WEIGHTS = AxisKind(
    Annotated[
        Sequence[Annotated[float, Field(ge=0)]], Field(min_length=2, max_length=2), AfterValidator(_check_weights)
    ],
    "two numbers, for dense and lexical, from 0 up and not both 0",
    PAIR,
)
