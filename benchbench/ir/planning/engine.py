"""The engine setting: the alias of a declared search engine, and values of its parameters."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchbench.errors import BenchbenchError
from benchbench.reading.objects import format_value

Value = bool | int | float | str
LONGEST = 120  # characters of a setting, which labels and keys contain
MAX_SETTINGS = 100  # that one text or object states

NAME = r"[a-z][a-z0-9_-]*"
_VALUE = r'"(?:[^"\\]|\\.)*"|[^"|,()=\s](?:[^"|,()=]*[^"|,()=\s])?'
_PARAMETER = rf"\s*(?P<name>{NAME})\s*=\s*(?P<values>(?:{_VALUE})(?:\s*\|\s*(?:{_VALUE}))*)\s*"
SETTING = re.compile(rf"\s*(?P<alias>{NAME})\s*(?:\((?P<parameters>.*)\)\s*)?", re.DOTALL)
PARAMETER = re.compile(rf"{_PARAMETER}(?:,|$)", re.DOTALL)
VALUES = re.compile(_VALUE, re.DOTALL)
SOMETHING = re.compile(r"\S")


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
        if (count := math.prod(map(len, lists.values()))) > MAX_SETTINGS:
            raise EngineSettingError(
                f"{format_value(setting)} states {count:,} settings; state at most {MAX_SETTINGS}."
            )
        combinations = itertools.product(*lists.values())
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


def _read_object(setting: Mapping[str, Any]) -> tuple[str, dict[str, list[Any]]]:
    alias = setting.get("engine")
    if not isinstance(alias, str) or not re.fullmatch(NAME, alias):
        raise EngineSettingError(f"{format_value(dict(setting))} must have the key engine with an alias.")
    values = {name: value for name, value in setting.items() if name != "engine"}
    return alias, {name: list(value) if isinstance(value, list | tuple) else [value] for name, value in values.items()}


def _read_text(text: object) -> tuple[str, dict[str, list[Any]]]:
    match = SETTING.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise EngineSettingError(f"{format_value(text)} is not an engine such as shop or shop(boost=2).")
    listed, lists, position = match["parameters"] or "", {}, 0
    while SOMETHING.search(listed, position):
        parameter = PARAMETER.match(listed, position)
        if parameter is None:
            raise EngineSettingError(
                f"{format_value(listed[position:].strip())} is not a parameter such as boost=2, boost=1|2 or "
                'fields="title,text".'
            )
        if parameter["name"] in lists:
            raise EngineSettingError(f"{parameter['name']} occurs more than once.")
        lists[parameter["name"]] = [_read_value(value) for value in VALUES.findall(parameter["values"])]
        position = parameter.end()
    return match["alias"], lists


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
    is_plain = VALUES.fullmatch(value) and not value.startswith('"') and _read_value(value) == value
    return value if is_plain else json.dumps(value, ensure_ascii=False)
