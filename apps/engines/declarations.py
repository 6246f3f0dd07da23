"""Search engines and addresses of notices, as the file BENCHBENCH_ENGINES declares them. Users choose their aliases."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from django.conf import settings

from apps.engines.answers import Paths, compile_path
from apps.engines.errors import EngineError
from apps.engines.guards import Limits
from apps.engines.secrets import Secret
from apps.engines.templates import fill, format_text, list_names
from benchbench.ir.planning.engine import NAME, Value
from benchbench.reading.objects import Checked, Filled, Must, StrictRecord, fault, format_value, read_as, refuse
from benchbench.reading.strict_yaml import parse

PRESETS = Path(__file__).parent / "presets"
PARAMETER = re.compile(r"[a-z][a-z0-9_]*")
ASKED = frozenset(
    {"query", "any_word(query)", "size", "offset", "page", "page0", "vector", "filters"}
)  # names of placeholders that have a value in each request
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

    def check(self, value: Any) -> Value:
        """Return a value of the parameter's type, or raise ValueError with a clause."""
        if isinstance(self.default, str) and isinstance(value, bool | int | float):
            value = format_text(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if isinstance(self.default, bool | str):
            if type(value) is not type(self.default):
                raise ValueError("must be true or false" if isinstance(self.default, bool) else "must be a text")
        elif not is_number:
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

    def read_secret(self) -> Secret:
        """Return the secret. Raises EngineError if its environment variable is not set."""
        return read_secret(self.secret, f"The address of notices {self.alias}")


@dataclass(frozen=True, slots=True)
class Declarations:
    """Engines and addresses of notices, by alias."""

    engines: dict[str, Engine] = field(default_factory=dict)
    notices: dict[str, NoticeAddress] = field(default_factory=dict)


def read_secret(variable: str, subject: str) -> Secret:
    if variable and not os.environ.get(variable):
        raise EngineError(f"{subject} needs the environment variable {variable}: set it for web and workers.")
    return Secret(os.environ[variable] if variable else "")


def load_declarations() -> Declarations:
    """Return the declarations of the file BENCHBENCH_ENGINES; none without a file.

    The file is read again when its content changes. Raises a BenchbenchError that names the path of a wrong key.
    """
    if not settings.BENCHBENCH_ENGINES:
        return Declarations()
    path = Path(settings.BENCHBENCH_ENGINES)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(f"BENCHBENCH_ENGINES: {path.name} cannot be read ({type(error).__name__}).") from None
    return _read(text, path.name)


def list_engines() -> list[Engine]:
    """Return the declared engines in the order of the file."""
    return list(load_declarations().engines.values())


def load_engine(alias: str) -> Engine:
    """Return a declared engine. Raises EngineError for an unknown alias."""
    return _find(load_declarations().engines, alias, "engine", "engines")


def load_notice_address(alias: str) -> NoticeAddress:
    """Return a declared address of notices. Raises EngineError for an unknown alias."""
    return _find(load_declarations().notices, alias, "address of notices", "notices")


def _find(by_alias: Mapping[str, Any], alias: str, noun: str, section: str) -> Any:
    if alias not in by_alias:
        choices = f"choose one of {', '.join(by_alias)}" if by_alias else f"declare it under {section} first"
        raise EngineError(f"The {noun} {alias} is not declared in BENCHBENCH_ENGINES: {choices}.", field="engine")
    return by_alias[alias]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File(StrictRecord):
    engines: dict[str, dict[str, Any]] = field(default_factory=dict)
    notices: dict[str, dict[str, Any]] = field(default_factory=dict)


@lru_cache(maxsize=4)
def _read(text: str, name: str) -> Declarations:
    file = read_as(_File, parse(text, location=name) or {}, prefix=f"{name}, ")
    for alias in (*file.engines, *file.notices):
        if not re.fullmatch(NAME, alias):
            refuse(f"{name}, {alias}", "must begin with a small letter and have only these, digits, _ and -")
    engines = {alias: _read_engine(alias, entry, f"{name}, engines.{alias}") for alias, entry in file.engines.items()}
    notices = {}
    for alias, entry in file.notices.items():
        path = f"{name}, notices.{alias}"
        notices[alias] = address = read_as(NoticeAddress, {**entry, "alias": alias}, prefix=f"{path}.")
        _Checks(path).check_address(address)
    return Declarations(engines, notices)


def _read_engine(alias: str, entry: dict[str, Any], path: str) -> Engine:
    entry = dict(entry)
    preset, variables = _load_preset(entry.pop("preset", None), path), entry.pop("variables", None) or {}
    described = preset.pop("variables", {})
    if not isinstance(variables, dict):
        refuse(f"{path}.variables", "must be an object")
    for name, words in described.items():
        if name not in variables:
            refuse(f"{path}.variables", f"is missing the key {name} ({words.rstrip('.')})", name)
    if "headers" in preset and not entry.get("secret"):
        preset["headers"] = {key: text for key, text in preset["headers"].items() if "{secret}" not in text}
    merged = {**preset, **entry}
    filled = {
        key: value if key in ("document", "parameters") else fill(value, variables) for key, value in merged.items()
    }
    if "alias" in filled:
        refuse(path, "has the unknown key alias", "alias")
    engine = read_as(Engine, {**filled, "alias": alias}, prefix=f"{path}.")
    for name in variables:
        if name in engine.parameters or name not in {*list_names({**merged, "document": None}), *described}:
            refuse(f"{path}.variables.{name}", "is not used as a variable in any template", name)
    _Checks(path).check_engine(engine)
    return engine


def _load_preset(preset: Any, path: str) -> dict[str, Any]:
    if preset is None:
        return {}
    names = sorted(file.stem for file in PRESETS.glob("*.yaml"))
    if preset not in names:
        refuse(f"{path}.preset", f"must be one of {', '.join(names)}")
    return dict(parse((PRESETS / f"{preset}.yaml").read_text(encoding="utf-8"), location=f"{preset}.yaml"))


class _Checks:
    """Checks of what a declaration's keys say together. Each raises InvalidKeyError."""

    def __init__(self, path: str) -> None:
        self._path = path

    def check_engine(self, engine: Engine) -> None:
        self.check_address(engine)
        if engine.method == "GET" and (engine.body is not None or engine.form is not None):
            self._refuse("method", "must be POST where there is a body or form")
        if engine.body is not None and engine.form is not None:
            self._refuse("form", "cannot be sent with a body: delete one of them")
        self._check_names(engine)
        for name, parameter in engine.parameters.items():
            try:
                parameter.check(parameter.default)
            except ValueError as error:
                self._refuse(f"parameters.{name}.default", str(error))

    def check_address(self, target: Engine | NoticeAddress) -> None:
        url = urlsplit(target.url)
        if url.scheme not in ("http", "https") or not url.hostname or "{" in url.netloc:
            self._refuse("url", "must begin with http:// or https:// and a fixed host")
        if "@" in url.netloc or url.fragment:
            self._refuse("url", "must have neither a user nor a fragment: use headers and secret")
        uses_secret = any("{secret}" in text for text in target.headers.values())
        if uses_secret != bool(target.secret):
            self._refuse("secret", "and a header with {secret} need each other")
        if target.secret and url.scheme == "http" and not target.private:
            self._refuse("url", "must begin with https://, or its secret would be sent in plain text")

    def _check_names(self, engine: Engine) -> None:
        allowed = ASKED | engine.parameters.keys()
        for key in ("url", "headers", "query", "body", "form"):
            for name in list_names(getattr(engine, key)):
                if name not in allowed and not (name == "secret" and key == "headers"):
                    choices = ", ".join(f"{{{each}}}" for each in sorted(allowed))
                    self._refuse(key, f"has the unknown placeholder {{{name}}}: choose one of {choices}")
        for name in list_names([engine.answer.id, engine.answer.hits, engine.answer.title, engine.answer.snippet]):
            self._refuse("answer", f"has the placeholder {{{name}}}, which is not among the variables")
        for name in engine.parameters:
            if not PARAMETER.fullmatch(name) or name in {*ASKED, "secret", "engine"}:
                self._refuse(f"parameters.{name}", "must have another name: small letters, digits and _")
            if name not in engine.names:
                self._refuse(f"parameters.{name}", "is not used in any template")
        if engine.names.isdisjoint({"query", "any_word(query)", "vector"}):
            self._refuse("query", "must contain {query}, {any_word(query)} or {vector}")
        if ("vector" in engine.names) != bool(engine.encoder):
            self._refuse("encoder", "and a template with {vector} need each other")

    def _refuse(self, key: str, problem: str) -> None:
        refuse(f"{self._path}.{key}", problem)
