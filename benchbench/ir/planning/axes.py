"""Axes of the matrix: kinds of their values, and reading these from text."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field

from benchbench.ir.planning.ann import Ann, AnnError
from benchbench.ir.planning.engine import EngineSetting
from benchbench.reading.kinds import Kind, int_between
from benchbench.reading.objects import format_value

MAX_TOP_K = 1000
MAX_DEPTH = 10_000
MAX_RATE = 10_000.0  # requests per second
MAX_SETTINGS = 100  # that one value of `ann` states
LISTED = re.compile(r"(\b\w+(?:\s*\|\s*\w*)+)")  # in a text, as in "precision=int8|binary"


def _check_weights(weights: Sequence[float]) -> Sequence[float]:
    if not any(weights):
        raise ValueError
    return weights


NAME = Kind(Annotated[str, Field(pattern=r"\S")], "a name")
CUTOFF = int_between(1, MAX_TOP_K)
DEPTH = int_between(1, MAX_DEPTH)
SHARE = Kind(Annotated[float, Field(ge=0, le=1)])
ADMITTED = Kind(Annotated[float, Field(gt=0, le=1)], "a number above 0, up to 1")
RATE = Kind(Annotated[float, Field(gt=0, le=MAX_RATE)], "requests per second, above 0 and at most 10,000")
SWITCH = Kind(bool)
ANN = Kind(str | dict[str, Any], "a setting such as hnsw(ef_search=100), or an object of it")
ENGINE = Kind(str | dict[str, Any], "a search engine such as shop(boost=2), or an object of it")
QUERY_TEXT = Kind(str, "as_asked, rewrite, hyde or multi(n)")
LLM = Kind(Annotated[str, Field(pattern=r"^[\w-]+:\S+$")], "a language model with its server, such as ollama:llama3.2")
WEIGHTS = Kind(
    Annotated[
        Sequence[Annotated[float, Field(ge=0)]], Field(min_length=2, max_length=2), AfterValidator(_check_weights)
    ],
    "two numbers, for dense and lexical, from 0 up and not both 0",
)


def choice(*values: str) -> Kind:
    """Return the kind of one of several words."""
    return Kind(Literal[values])


def split_commas(text: str) -> list[str]:
    """Return the parts of a text between commas, without spaces around them; empty ones are dropped."""
    return [item.strip() for item in text.split(",") if item.strip()]


def parse_integers(text: str) -> list[int]:
    """Return the whole numbers between commas. Raises ValueError with the invalid part as its text."""
    return [_read(int, item) for item in split_commas(text)]


def parse_switch(text: str) -> list[str]:
    """Return the parts of a text that states a switch; "both" is off, then on."""
    return ["off", "on"] if text.lower() == "both" else split_commas(text)


def _read(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except (KeyError, ValueError):
        raise ValueError(text) from None


class Reader(NamedTuple):
    """Reader of a value from text; `expects` describes the text in words."""

    expects: str
    read: Callable[[str], Any]


AS_IT_IS = Reader("a name", str)
INTEGER = Reader("a whole number", lambda text: None if _is_none(text) else int(text))
NUMBER = Reader("a number or “none”", lambda text: None if _is_none(text) else float(text))
RATES = Reader(
    "a rate such as 20/s, or “none”", lambda text: None if _is_none(text) else float(text.removesuffix("/s"))
)
PAIR = Reader(
    "a pair of numbers such as 0.7:0.3",
    lambda text: None if _is_none(text) else [float(number) for number in text.split(":")],
)
ON_OR_OFF = Reader("on, off or both", lambda text: {"on": True, "off": False}[text.lower()])


def _is_none(text: str) -> bool:
    return text.lower() in ("none", "null", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A key of the matrix: a list of values, each of which sets one field of a configuration.

    `key` names it in a matrix, `field` in a configuration, where `default` is that of the field. `kind` is what a value
    must be, and `canonical` gives its one form, so that equal values are found equal; `expand` gives the several values
    that one may state. A text states several values: `split` parts it, and `reader` reads one. `touches` takes a
    configuration and says whether the value makes a difference to what it finds. `labels` has the words for it.
    """

    key: str
    kind: Kind
    field: str = ""
    default: Any = None
    reader: Reader = AS_IT_IS
    split: Callable[[str], list[str]] = split_commas
    canonical: Callable[[Any], Any] = lambda value: value
    expand: Callable[[Any], list[Any]] | None = None
    touches: Callable[[Any], bool] = lambda configuration: True

    @property
    def default_text(self) -> str:
        """Return the default as `read` reads it; "" for None."""
        if self.kind is SWITCH:
            return "on" if self.default else "off"
        return "" if self.default is None else str(self.default)

    def list_values(self, value: Any) -> list[Any]:
        """Return the values, in canonical form, that one of the matrix states."""
        return self.expand(value) if self.expand else [self.canonical(value)]

    def read(self, text: str) -> list[Any]:
        """Return the values that a text states. Raises ValueError, whose text is the part that cannot be read."""
        return [_read(self.reader.read, item) for item in self.split(text)]

    def write(self, values: Sequence[Any]) -> str:
        """Return values as the text that `read` reads; None is left out where no text means it."""
        if self.kind is SWITCH:
            return "both" if len(values) > 1 else self.write_value(values[0])
        return ", ".join(self.write_value(value) for value in values if not (value is None and self.reader is AS_IT_IS))

    def write_value(self, value: Any) -> str:
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, list | tuple):
            return ":".join(map(str, value))
        return "none" if value is None else str(value)


def axis(default: Any, key: str, kind: Kind, **declared: Any) -> Any:
    """Return a field of a configuration with the axis that sets it."""
    return dataclasses.field(default=default, metadata={"axis": Axis(key=key, kind=kind, **declared)})


def expand_ann(setting: str | Mapping[str, Any]) -> list[str]:
    """Return the canonical texts of the ANN settings that one value states. Raises AnnError.

    "compressed(precision=int8|binary)", or a list in an object, states a setting for each of the listed values.
    """
    if isinstance(setting, str):
        lists = [piece.split("|") for piece in LISTED.split(setting)]
    else:
        lists = [value if isinstance(value, list) else [value] for value in setting.values()]
    if not 0 < (count := math.prod(map(len, lists))) <= MAX_SETTINGS:
        raise AnnError(f"{format_value(setting)} states {count:,} settings; state 1 to {MAX_SETTINGS}.")
    combinations = itertools.product(*lists)
    if isinstance(setting, str):
        return [str(Ann.parse("".join(pieces))) for pieces in combinations]
    return [str(Ann.parse(dict(zip(setting, values, strict=True)))) for values in combinations]


def expand_engine(setting: str | Mapping[str, Any] | None) -> list[str | None]:
    """Return the canonical texts of the engine settings that one value states. Raises EngineSettingError."""
    return [None] if setting is None else [str(each) for each in EngineSetting.expand(setting)]


def scale_weights(weights: Sequence[float] | None) -> tuple[float, float] | None:
    """Return the weights scaled to sum to 1, because only their ratio matters."""
    if weights is None:
        return None
    dense, lexical = weights
    total = dense + lexical
    if math.isinf(total):  # more than a float holds
        return scale_weights((dense / 4, lexical / 4))
    return (float(dense), float(lexical)) if math.isclose(total, 1) else (dense / total, lexical / total)
