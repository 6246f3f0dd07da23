"""Records of declarations: search engines with their parameters and answers, and addresses of notices."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from apps.engines.answers import Paths, compile_path
from apps.engines.errors import EngineError
from apps.engines.guards import Limits
from apps.engines.secrets import Secret
from apps.engines.templates import format_text, list_names
from benchbench.environment import env_str
from benchbench.ir.planning.engine import Value
from benchbench.reading.objects import Checked, Filled, Must, StrictRecord, fault, format_value

PAGING = ("offset", "page", "page0")
Number = Annotated[float, Must("a number above 0", lambda number: number > 0)]
Count = Annotated[int, Must("a whole number from 1", lambda count: count >= 1)]
Scalar = Annotated[
    Any, Must("a text, a number, true or false", lambda value: isinstance(value, bool | int | float | str))
]


def _check_path(expression: Any) -> str:
    if not isinstance(expression, str) or not expression.strip():
        raise fault("must be a JMESPath expression")
    try:
        compile_path(expression)
    except ValueError as error:
        raise fault(f"is not a JMESPath expression: {error}") from None
    return expression


Expression = Annotated[str, Checked(_check_path, before=True)]


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
        """Return a value of the parameter's type, or raise ValueError with a clause."""
        if isinstance(self.default, str) and isinstance(value, bool | int | float):
            value = format_text(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if isinstance(self.default, bool | str):
            if type(value) is not type(self.default):
                raise ValueError("must be true or false" if isinstance(self.default, bool) else "must be a text")
        elif not is_number or not math.isfinite(value):
            raise ValueError("must be a number")
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
class AnswerPaths(StrictRecord):
    id: Expression
    hits: Expression = ""
    score: Expression = ""
    title: Expression = ""
    snippet: Expression = ""
    total: Expression = ""
    complete_when: Expression = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine(StrictRecord):
    """A declared search engine. Templates have their variables filled in."""

    alias: str
    url: Filled
    answer: AnswerPaths
    version: Annotated[str, Checked(lambda value: str(value) if type(value) is int else value, before=True)] = ""
    method: Literal["GET", "POST"] = "GET"
    secret: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    form: dict[str, Any] | None = None
    parameters: dict[str, Parameter] = field(default_factory=dict)
    page_size: Count = 100
    concurrency: Count = 4
    rate: Number | None = None
    timeouts: Timeouts = Timeouts()
    max_bytes: Count = 5_000_000
    patience: Annotated[float, Must("a number from 0", lambda number: number >= 0)] = 120.0
    private: bool = False
    ca_file: str = ""
    encoder: str | None = None
    document: DocumentReference = DocumentReference()

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def names(self) -> frozenset[str]:
        """The names of all placeholders."""
        return frozenset(list_names([self.url, self.headers, self.query, self.body, self.form]))

    @property
    def takes_filters(self) -> bool:
        return "filters" in self.names

    @property
    def is_paged(self) -> bool:
        return not self.names.isdisjoint(PAGING)

    @property
    def limits(self) -> Limits:
        return Limits(self.timeouts.connect, self.timeouts.total, self.max_bytes)

    @property
    def paths(self) -> Paths:
        names = ("id", "hits", "score", "title", "snippet", "total", "complete_when")
        return Paths(**{name: getattr(self.answer, name) for name in names}, template=self.document.template)

    def complete(self, parameters: Mapping[str, Any]) -> dict[str, Value]:
        """Return all parameters with their values or defaults. Raises EngineError for unknown names and bad values."""
        for name, value in parameters.items():
            if name not in self.parameters:
                choices = f"choose one of {', '.join(self.parameters)}" if self.parameters else "it has no parameters"
                raise EngineError(f"The engine {self.alias} has no parameter {name}: {choices}.", field=name)
            try:
                self.parameters[name].check(value)
            except ValueError as error:
                raise EngineError(
                    f"{name} of the engine {self.alias} {error}, not {format_value(value)}.", field=name
                ) from None
        return {
            name: parameter.check(parameters.get(name, parameter.default))
            for name, parameter in self.parameters.items()
        }

    def read_secret(self) -> Secret:
        """Return the secret. Raises EngineError if its environment variable is not set."""
        return read_secret(self.secret, f"The engine {self.alias}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeAddress(StrictRecord):
    """An address to which notices may be sent."""

    url: Filled
    alias: str = ""
    secret: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    private: bool = False
    ca_file: str = ""

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def read_secret(self) -> Secret:
        """Return the secret. Raises EngineError if its environment variable is not set."""
        return read_secret(self.secret, f"The address of notices {self.alias}")


def read_secret(variable: str, subject: str) -> Secret:
    value = env_str(variable, "") if variable else ""
    if variable and not value:
        raise EngineError(f"{subject} needs the environment variable {variable}: set it for web and workers.")
    return Secret(value)
