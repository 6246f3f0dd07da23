"""The engine setting: the alias of a declared search engine, and values of its parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchbench.errors import BenchbenchError
from benchbench.reading.calls import VALUE, CallError, list_combinations, list_values, read_options
from benchbench.reading.objects import format_value

Value = bool | int | float | str
LONGEST = 120  # characters of a setting, which labels and keys contain

NAME = r"[a-z][a-z0-9_-]*"
SETTING = re.compile(rf"\s*(?P<alias>{NAME})\s*(?:\((?P<parameters>.*)\)\s*)?", re.DOTALL)


class EngineSettingError(BenchbenchError):
    """An engine setting is invalid."""

    code = "invalid_engine"


@dataclass(frozen=True, slots=True)
class EngineSetting:
    """A declared search engine by its alias, with parameters in the order of their names.

    `str` gives the canonical text, `shop(boost=2, fields="title,text")`, so equal settings are equal texts. Parameters
    that are left out have the default that the engine declares.
    """

    alias: str
    parameters: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def parse(cls, setting: str | Mapping[str, Any]) -> EngineSetting:
        """Read "shop", "shop(boost=2)" or {"engine": "shop", "boost": 2}. Raises EngineSettingError."""
        read = cls.expand(setting)
        if len(read) > 1:
            raise EngineSettingError(f"{format_value(setting)} states several settings; one is expected.")
        return read[0]

    @classmethod
    def expand(cls, setting: str | Mapping[str, Any]) -> list[EngineSetting]:
        """Return the settings that a text or object states, the last parameter varying fastest.

        A parameter with several values, `boost=1|2` or {"boost": [1, 2]}, states one setting for each of them. Raises
        EngineSettingError.
        """
        alias, lists = _read_object(setting) if isinstance(setting, Mapping) else _read_text(setting)
        for name, values in lists.items():
            for value in values:
                if not isinstance(value, bool | int | float | str):
                    raise EngineSettingError(f"{name}: {format_value(value)} must be a text, a number or a switch.")
        try:
            combinations = list_combinations(setting, lists.values())
        except CallError as error:
            raise EngineSettingError(str(error)) from None
        settings = [cls(alias, tuple(sorted(zip(lists, values, strict=True)))) for values in combinations]
        for setting in map(str, settings):
            if len(setting) > LONGEST:
                raise EngineSettingError(
                    f"{format_value(setting)} has {len(setting)} characters; at most {LONGEST} are allowed. Declare a "
                    "choice of short names for the parameter."
                )
        return settings

    def __str__(self) -> str:
        if not self.parameters:
            return self.alias
        return f"{self.alias}({', '.join(f'{name}={_write_value(value)}' for name, value in self.parameters)})"


def _read_object(setting: Mapping[str, object]) -> tuple[str, dict[str, list[Any]]]:
    alias = setting.get("engine")
    if not isinstance(alias, str) or not re.fullmatch(NAME, alias):
        raise EngineSettingError(f"{format_value(dict(setting))} must have the key engine with an alias.")
    return alias, {name: list_values(value) for name, value in setting.items() if name != "engine"}


def _read_text(text: object) -> tuple[str, dict[str, list[Any]]]:
    match = SETTING.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise EngineSettingError(f"{format_value(text)} is not an engine such as shop or shop(boost=2).")
    expects = 'a parameter such as boost=2, boost=1|2 or fields="title,text"'
    try:
        lists = read_options(match["parameters"] or "", expects=expects)
    except CallError as error:
        raise EngineSettingError(str(error)) from None
    if wrong := next((name for name in lists if not re.fullmatch(NAME, name)), None):
        raise EngineSettingError(f"{format_value(wrong)} is not the name of a parameter, such as boost.")
    return match["alias"], {name: [_read_value(value) for value in values] for name, values in lists.items()}


def _read_value(text: str) -> Value:
    """Return the value of a JSON text, number or switch; any other text is itself."""
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    return value if isinstance(value, bool | int | float | str) else text


def _write_value(value: Value) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    is_plain = VALUE.fullmatch(value) and not value.startswith('"') and _read_value(value) == value
    return value if is_plain else json.dumps(value, ensure_ascii=False)
