"""Templates of requests: texts, lists and objects with placeholders such as `{query}`.

A text that is one placeholder alone takes the value with its type; otherwise the value becomes text. Braces that do not
surround a name are literal.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

ANY_WORD = "any_word(query)"
PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*|any_word\(query\))\}")
WORD = re.compile(r"\w+")


def list_names(template: Any) -> Iterator[str]:
    """Yield the names of the placeholders in a template."""
    if isinstance(template, str):
        yield from PLACEHOLDER.findall(template)
    elif isinstance(template, Mapping):
        for key, inner in template.items():
            yield from list_names(key)
            yield from list_names(inner)
    elif isinstance(template, list | tuple):
        for inner in template:
            yield from list_names(inner)


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with its placeholders filled. Names without a value stay as they are."""
    if isinstance(template, str):
        if "{" not in template:
            return template
        alone = PLACEHOLDER.fullmatch(template)
        return values.get(alone[1], template) if alone else fill_text(template, values)
    if isinstance(template, Mapping):
        return {fill_text(key, values): fill(inner, values) for key, inner in template.items()}
    if isinstance(template, list | tuple):
        return [fill(inner, values) for inner in template]
    return template


def fill_text(template: str, values: Mapping[str, object], write: Callable[[str], str] = lambda text: text) -> str:
    """Return a text with its placeholders filled; `write` encodes each value."""
    return PLACEHOLDER.sub(
        lambda match: write(format_text(values[match[1]])) if match[1] in values else match[0], template
    )


def fill_address(template: str, values: Mapping[str, object]) -> str:
    """Return an address with encoded values, none of which begins a new segment of the path.

    Raises ValueError for "." and "..", which would name another folder.
    """

    def write(text: str) -> str:
        if text in ("", ".", ".."):
            raise ValueError(f"{text!r} cannot be part of an address")
        return quote(text, safe="")

    return fill_text(template, values, write)


def format_text(value: object) -> str:
    """Return a value as text: JSON, except for texts and null."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def join_any_word(query: str) -> str:
    """Return the words of a query joined by OR, each in double quotes, for engines that match all words otherwise."""
    return " OR ".join(f'"{word}"' for word in WORD.findall(query)) or '""'
