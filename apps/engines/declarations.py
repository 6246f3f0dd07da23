"""Search engines and addresses of notices, as the file BENCHBENCH_ENGINES declares them. Users choose their aliases."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from apps.engines.errors import EngineError
from apps.engines.records import Address, Engine
from apps.engines.templates import ANY_WORD, fill, list_names
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.engine import NAME
from benchbench.reading.objects import StrictRecord, read_as, refuse
from benchbench.reading.strict_json import kind
from benchbench.reading.strict_yaml import list_lines, parse

PRESETS = Path(__file__).parent / "presets"
PARAMETER = re.compile(r"[a-z][a-z0-9_]*")
REQUESTED = frozenset({"query", ANY_WORD, "size", "offset", "page", "page0", "vector", "filters"})
MAX_ALIAS, MAX_VERSION = 100, 200  # characters
NOUNS = {"engines": "engine", "notices": "address of notices"}  # by section


@dataclass(frozen=True, slots=True)
class Declarations:
    """Engines and addresses of notices, by alias; and why entries are refused, by section and alias."""

    engines: dict[str, Engine] = field(default_factory=dict)
    notices: dict[str, Address] = field(default_factory=dict)
    refused: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def refused_engines(self) -> dict[str, str]:
        """Why engines are refused, by alias."""
        return {alias: problem for (section, alias), problem in self.refused.items() if section == "engines"}


def load_declarations() -> Declarations:
    """Return the declarations of the file BENCHBENCH_ENGINES; none without a file. A wrong entry is refused alone.

    The file is read again when its content changes. Raises EngineError for one that cannot be read as sections of
    entries.
    """
    if not settings.BENCHBENCH_ENGINES:
        return Declarations()
    try:
        return _read(read_text(), Path(settings.BENCHBENCH_ENGINES).name)
    except BenchbenchError as error:
        raise EngineError(error.message, field=error.field) from None


def read_text() -> str:
    """Return the text of the file BENCHBENCH_ENGINES. Raises EngineError if it cannot be read."""
    path = Path(settings.BENCHBENCH_ENGINES)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(f"BENCHBENCH_ENGINES: {path.name} cannot be read ({type(error).__name__}).") from None


def list_engines() -> list[Engine]:
    """Return the declared engines in the order of the file; none of an unreadable file, whose error a page shows."""
    try:
        return list(load_declarations().engines.values())
    except EngineError:
        return []


def list_refused() -> list[str]:
    """Return the aliases of the engines whose entries are wrong; none of an unreadable file."""
    try:
        return list(load_declarations().refused_engines)
    except EngineError:
        return []


def load_engine(alias: str) -> Engine:
    """Return a declared engine. Raises EngineError for an unknown alias, or with what is wrong in its entry."""
    return _find(load_declarations(), alias, "engines")


def load_notice_address(alias: str) -> Address:
    """Return a declared address of notices. Raises EngineError as `load_engine` does."""
    return _find(load_declarations(), alias, "notices")


def _find(declarations: Declarations, alias: str, section: str) -> Any:
    if problem := declarations.refused.get((section, alias)):
        raise EngineError(problem, field="engine")
    by_alias: Mapping[str, object] = getattr(declarations, section)
    if alias not in by_alias:
        choices = f"choose one of {', '.join(by_alias)}" if by_alias else f"declare it under {section} first"
        if not settings.BENCHBENCH_ENGINES:
            choices = "the variable is not set. Let it name the file of declarations"
        noun = NOUNS[section]
        raise EngineError(f"The {noun} {alias} is not declared in BENCHBENCH_ENGINES: {choices}.", field="engine")
    return by_alias[alias]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File(StrictRecord):
    engines: dict[str, Any] = field(default_factory=dict)
    notices: dict[str, Any] = field(default_factory=dict)


@lru_cache(maxsize=4)
def _read(text: str, name: str) -> Declarations:
    declarations = Declarations()
    for section, alias, entry, line in read_entries(text, name):
        if isinstance(entry, BenchbenchError):
            declarations.refused[section, alias] = (
                f"{entry.message} The {NOUNS[section]} {alias[:MAX_ALIAS]} is refused until line {line} of {name} is "
                "corrected."
            )
        else:
            getattr(declarations, section)[alias] = entry
    return declarations


def read_entries(text: str, name: str) -> Iterator[tuple[str, str, Address | BenchbenchError, int]]:
    """Yield section and alias, what each entry declares or what is wrong with it, and the line.

    Raises errors of the file itself.
    """
    file = read_as(_File, parse(text, location=name, spares_entries=True) or {}, prefix=f"{name}, ")
    lines = list_lines(text)
    for section, entries in (("engines", file.engines), ("notices", file.notices)):
        read = _read_engine if section == "engines" else partial(_read_as, Address)
        for alias, entry in entries.items():
            path = f"{section}.{alias}"
            try:
                _check_alias(alias, name)
                if isinstance(entry, BenchbenchError):
                    raise entry
                if not isinstance(entry, dict):
                    refuse(f"{name}, {path}", f"must be an object, not {kind(entry)}")
                yield section, alias, read(alias, entry, f"{name}, {path}"), lines[path]
            except BenchbenchError as error:
                wrong = next(iter(error.message.removeprefix(f"{name}, ").split()), path)
                yield section, alias, error, find_line(lines, wrong, path)


def find_line(lines: Mapping[str, int], path: str, entry: str) -> int:
    """Return the line of a path or of the nearest key around it, and in doubt that of its entry."""
    while path not in lines and "." in path:
        path = path.rpartition(".")[0]
    return lines.get(path, lines[entry])


def _check_alias(alias: str, name: str) -> None:
    if not re.fullmatch(NAME, alias):
        refuse(f"{name}, {alias}", "must begin with a small letter and have only these, digits, _ and -")
    if len(alias) > MAX_ALIAS:
        refuse(f"{name}, {alias[:20]}…", f"must have at most {MAX_ALIAS} characters")


def _read_engine(alias: str, entry: dict[str, Any], path: str) -> Engine:
    preset, variables = _load_preset(entry.get("preset"), path), entry.get("variables") or {}
    described = preset.pop("variables", {})
    if not isinstance(variables, dict):
        refuse(f"{path}.variables", "must be an object")
    for name, words in described.items():
        if name not in variables:
            refuse(f"{path}.variables", f"is missing the key {name} ({words.rstrip('.')})", name)
    if "headers" in preset and not entry.get("secret"):
        preset["headers"] = {key: text for key, text in preset["headers"].items() if "{secret}" not in text}
    merged = preset | {key: value for key, value in entry.items() if key not in ("preset", "variables")}
    filled = {
        key: value if key in ("document", "parameters") else fill(value, variables) for key, value in merged.items()
    }
    engine: Engine = _read_as(Engine, alias, filled, path)
    for name in variables:
        if name in engine.parameters or name not in {*list_names(merged | {"document": None}), *described}:
            refuse(f"{path}.variables.{name}", "is not used as a variable in any template", name)
    return engine


def _load_preset(preset: object, path: str) -> dict[str, Any]:
    if preset is None:
        return {}
    names = sorted(file.stem for file in PRESETS.glob("*.yaml"))
    if preset not in names:
        refuse(f"{path}.preset", f"must be one of {', '.join(names)}")
    return dict(parse((PRESETS / f"{preset}.yaml").read_text(encoding="utf-8"), location=f"{preset}.yaml"))


def _read_as(record: Any, alias: str, entry: Mapping[str, object], path: str) -> Any:
    if "alias" in entry:
        refuse(path, "has the unknown key alias", "alias")
    declared = read_as(record, {**entry, "alias": alias}, prefix=f"{path}.")
    for key, problem in (*_check_address(declared), *(_check_engine(declared) if isinstance(declared, Engine) else ())):
        refuse(f"{path}.{key}", problem)
    return declared


def _check_address(address: Address) -> Iterator[tuple[str, str]]:
    """Yield each key that does not agree with the others, and the problem."""
    url, uses_secret = urlsplit(address.url), any("{secret}" in text for text in address.headers.values())
    if url.scheme not in ("http", "https") or not url.hostname or "{" in url.netloc:
        yield "url", "must begin with http:// or https:// and a fixed host"
    if "@" in url.netloc or url.fragment:
        yield "url", "must have neither a user nor a fragment: use headers and secret"
    # Notices are signed by their secret.
    if (uses_secret and not address.secret) or (isinstance(address, Engine) and address.secret and not uses_secret):
        yield "secret", "and a header with {secret} need each other"
    if address.secret and url.scheme == "http" and not address.private:
        yield (
            "url",
            "must begin with https://, or its secret would be sent in plain text; on your network, add private: true",
        )


def _check_engine(engine: Engine) -> Iterator[tuple[str, str]]:
    if engine.method == "GET" and (engine.body is not None or engine.form is not None):
        yield "method", "must be POST where there is a body or form"
    if len(engine.version) > MAX_VERSION:
        yield "version", f"must have at most {MAX_VERSION} characters"
    if engine.body is not None and engine.form is not None:
        yield "form", "cannot be sent with a body: delete one of them"
    yield from _check_names(engine)
    if engine.names.isdisjoint({"query", ANY_WORD, "vector"}):
        yield "query", "must contain {query}, {any_word(query)} or {vector}"
    if ("vector" in engine.names) != bool(engine.encoder):
        yield "encoder", "and a template with {vector} need each other"
    if engine.query_prompt is not None and engine.encoder is None:
        yield "query_prompt", "needs an encoder, which reads it before each query"
    yield from _check_parameters(engine)


def _check_names(engine: Engine) -> Iterator[tuple[str, str]]:
    allowed = REQUESTED | engine.parameters.keys()
    for key in ("url", "headers", "query", "body", "form"):
        for name in list_names(getattr(engine, key)):
            if name not in allowed and not (name == "secret" and key == "headers"):
                choices = ", ".join(f"{{{each}}}" for each in sorted(allowed))
                yield key, f"has the unknown placeholder {{{name}}}: choose one of {choices}"
    for name in list_names([getattr(engine.answer, key) for key in ("id", "hits", "title", "snippet")]):
        yield "answer", f"has the placeholder {{{name}}}, which is not among the variables"


def _check_parameters(engine: Engine) -> Iterator[tuple[str, str]]:
    for name, parameter in engine.parameters.items():
        if not PARAMETER.fullmatch(name) or name in {*REQUESTED, "secret", "engine"}:
            yield f"parameters.{name}", "must have another name: small letters, digits and _"
        if name not in engine.names:
            yield f"parameters.{name}", "is not used in any template"
        try:
            parameter.check(parameter.default)
        except ValueError as error:
            yield f"parameters.{name}.default", str(error)
