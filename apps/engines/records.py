"""Records of declarations: addresses, and search engines with their parameters."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from apps.engines.answers import Paths
from apps.engines.errors import EngineError
from apps.engines.templates import format_text, list_names
from benchbench.environment import env_str
from benchbench.ir.encoding import LONGEST_PROMPT
from benchbench.ir.planning.engine import Value
from benchbench.reading.objects import Checked, Filled, Must, StrictRecord, fault, format_value
from benchbench.texts.secret import Secret

Number = Annotated[float, Must("a number above 0", lambda number: number > 0)]
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def check_variable(value: object) -> str:
    """Return the name of an environment variable, or raise a `fault` without the value, which may be a key."""
    if not isinstance(value, str) or not VARIABLE.fullmatch(value):
        raise fault("must be the name of an environment variable, not a key: letters, digits and _")
    return value


Count = Annotated[int, Must("a whole number from 1", lambda count: count >= 1)]
Prompt = Annotated[
    str, Must(f"a text of at most {LONGEST_PROMPT:,} characters", lambda prompt: len(prompt) <= LONGEST_PROMPT)
]
Scalar = Annotated[
    Any, Must("a text, a number, true or false", lambda value: isinstance(value, bool | int | float | str))
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter(StrictRecord):
    """A parameter that users may set; the type of `default` is its type."""

    default: Scalar
    minimum: float | None = None
    maximum: float | None = None
    choices: list[Any] | None = None
    words: str = ""

    @property
    def default_text(self) -> str:
        return format_text(self.default)

    @property
    def limits_text(self) -> str:
        """The choices or limits, for people; empty if there are none."""
        if self.choices is not None:
            return ", ".join(map(format_text, self.choices))
        limits = {"from": self.minimum, "to": self.maximum}
        return " ".join(f"{word} {number:g}" for word, number in limits.items() if number is not None)

    def check(self, value: Any) -> Value:
        """Return a value of the parameter's type, or raise ValueError with a clause.

        A text may be written as a whole number or switch, but 1.10 without quotes has become another text, 1.1.
        """
        is_number = isinstance(self.default, int | float) and not isinstance(self.default, bool)
        if isinstance(self.default, str) and isinstance(value, int):
            value = format_text(value)
        if is_number and (type(value) not in (int, float) or not math.isfinite(value)):
            raise ValueError("must be a number")
        if not is_number and type(value) is not type(self.default):
            raise ValueError("must be true or false" if isinstance(self.default, bool) else "must be a text in quotes")
        if self.choices is not None and value not in self.choices:
            raise ValueError(f"must be one of {', '.join(map(format_text, self.choices))}")
        if is_number and self.minimum is not None and value < self.minimum:
            raise ValueError(f"must be at least {self.minimum:g}")
        if is_number and self.maximum is not None and value > self.maximum:
            raise ValueError(f"must be at most {self.maximum:g}")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts(StrictRecord):
    connect: Number = 3.0
    total: Number = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReference(StrictRecord):
    """The field of a document that an id of the engine names, after its template."""

    by: Literal["external_id", "uri"] = "external_id"
    template: Annotated[Filled, Must("a text with {id}", lambda template: "{id}" in template)] = "{id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address(StrictRecord):
    """An address that requests are sent to; as such, one of notices."""

    alias: str
    url: Filled
    secret: Annotated[str, Checked(check_variable, before=True)] = ""
    headers: dict[str, str] = field(default_factory=dict)
    private: bool = False
    ca_file: str = ""
    timeouts: Timeouts = Timeouts()
    max_bytes: Count = 5_000_000

    @property
    def subject(self) -> str:
        return f"The receiver {self.alias}"

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def read_secret(self) -> Secret:
        """Return the secret. Raises EngineError if its environment variable is not set, without its name.

        The name may be a key, typed by mistake.
        """
        value = env_str(self.secret, "") if self.secret else ""
        if value or not self.secret:
            return Secret(value)
        raise EngineError(
            f"{self.subject} needs the environment variable that its key secret names: set it for web and workers."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine(Address):
    """A declared search engine. Templates have their variables filled in."""

    answer: Paths
    version: Annotated[str, Checked(lambda value: str(value) if type(value) is int else value, before=True)] = ""
    method: Literal["GET", "POST"] = "GET"
    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    form: dict[str, Any] | None = None
    parameters: dict[str, Parameter] = field(default_factory=dict)
    page_size: Count = 100
    concurrency: Count = 4
    rate: Number | None = None
    patience: Annotated[float, Must("a number from 0", lambda number: number >= 0)] = 120.0
    encoder: str | None = None
    query_prompt: Prompt | None = None
    document: DocumentReference = DocumentReference()

    @property
    def subject(self) -> str:
        return f"The engine {self.alias}"

    @property
    def names(self) -> frozenset[str]:
        """The names of all placeholders."""
        return frozenset(list_names([self.url, self.headers, self.query, self.body, self.form]))

    def complete(self, parameters: Mapping[str, object]) -> dict[str, Value]:
        """Return all parameters with their values or defaults. Raises EngineError for unknown names and bad values."""
        for name in parameters:
            if name not in self.parameters:
                choices = f"choose one of {', '.join(self.parameters)}" if self.parameters else "it has no parameters"
                raise EngineError(f"{self.subject} has no parameter {name}: {choices}.", field=name)
        completed = {}
        for name, parameter in self.parameters.items():
            value = parameters.get(name, parameter.default)
            try:
                completed[name] = parameter.check(value)
            except ValueError as error:
                problem = f"{name} of the engine {self.alias} {error}, not {format_value(value)}."
                raise EngineError(problem, field=name) from None
        return completed
