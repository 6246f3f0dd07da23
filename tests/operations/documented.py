"""What docs/events.md says of each event: its fields with their types, and an example."""

import json
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "events.md").read_text()
TYPES: dict[str, Callable[[Any], bool]] = {
    "id": lambda value: isinstance(value, str) and str(uuid.UUID(value)) == value,
    "time": lambda value: value.endswith("Z") and datetime.fromisoformat(value).utcoffset() is not None,
    "text": lambda value: isinstance(value, str) and value != "",
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float),
    "object": lambda value: isinstance(value, dict),
    "map": lambda value: isinstance(value, dict),
    "list of integers": lambda value: all(type(item) is int for item in value),
    "list of objects": lambda value: all(isinstance(item, dict) for item in value),
}


def _section(kind: str) -> str:
    return PAGE.partition(f"### `{kind}`")[2].partition("\n#")[0]


def fields_of(kind: str) -> dict[str, str]:
    """Return the documented fields of an event's data, by name, with their types."""
    text = _section(kind)
    if kind.endswith("_progress"):
        text = PAGE.partition("### Fields of every event")[2].partition("\n#")[0] + text
    return dict(re.findall(r"^\| `([\w.\[\]]+)` \| ([a-z ]+?) \|", text, re.MULTILINE))


def example_of(kind: str) -> Any:
    return json.loads(_section(kind).partition("```json")[2].partition("```")[0])


def values_in(data: dict[str, Any], fields: dict[str, str], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of every field in `data`, also within objects whose fields are documented."""
    for name, value in data.items():
        yield path + name, value
        inner = (path + name + ".", path + name + "[].")
        if isinstance(value, dict) and any(field.startswith(inner[0]) for field in fields):
            yield from values_in(value, fields, inner[0])
        elif isinstance(value, list) and any(field.startswith(inner[1]) for field in fields):
            for item in value:
                yield from values_in(item, fields, inner[1])


def is_of(value: Any, declared: str) -> bool:
    """Return whether a value has the type that the page states, "text or null"."""
    kind, _, null = declared.partition(" or ")
    return TYPES[kind](value) if value is not None else null == "null"


def misfits(message: Any) -> list[str]:
    """Return what a message and the page disagree on: fields and types."""
    fields = fields_of(message["type"])
    sent = list(values_in(message["data"], fields))
    wrong = [f"{name} is {value!r}" for name, value in sent if name in fields and not is_of(value, fields[name])]
    within = {name.rpartition(".")[0].removesuffix("[]") for name in fields}
    complete = {name for name in fields if name.rpartition(".")[0] == ""}
    for name, value in sent:  # what is inside an object that was sent must be whole too
        items = value if isinstance(value, list) else [value]
        if name in within:
            mark = "[]." if isinstance(value, list) else "."
            inner = {field for field in fields if field.rpartition(".")[0] == (name + mark)[:-1]}
            complete |= inner if any(items) else set()
    names = {name for name, _ in sent}
    return (
        wrong
        + [f"{name} is not documented" for name in names - set(fields)]
        + [f"{name} was not sent" for name in complete - names]
    )
