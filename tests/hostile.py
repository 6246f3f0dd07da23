"""Hostile texts of any length, made from a valid one.

Of a text: each of its tokens repeated, in its place and without an end, alone and in pairs; brackets nested and open;
its lines repeated, equal and numbered. Of a JSON value also: its lists with many items, its objects with many keys,
its texts with many blanks, quotes or marks.
"""

import json
import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

Make = Callable[[int], str]
TOKEN = re.compile(r"[^\W_]+|.", re.DOTALL)
UNITS = (" ", "\n", "\t", "\r", ",", ";", '"', "'", "\\", "[", "{", "(", "<", "<!", "<a ", "</", "&", "&#9", "#", "# ")
UNITS += ("*", "`", "_", "|", "=", ":", "- ", "? ", "&a ", "*a ", "!", "%", "@", "/", ".", "9", "1 ", "a ", "a", "\0")
UNITS += ("\u0315\u0300",)
BRACKETS = ("[]", "{}", "()", "<>", '""', "**")
MOST_TOKENS, MOST_MARKS = 16, 6


def yield_hostile(sample: str) -> Iterator[Make]:
    """Yield functions from a length to a hostile text of about that length."""
    tokens = list(dict.fromkeys(TOKEN.findall(sample)))
    marks = [token for token in tokens if not token.isalnum()]
    first = {token: sample.index(token) for token in tokens}
    for unit in dict.fromkeys((*UNITS, *tokens[:MOST_TOKENS])):
        yield lambda size, unit=unit: repeat(unit, size)
        yield lambda size, unit=unit: sample + repeat(unit, size)
    for token in dict.fromkeys((*marks, *tokens[:MOST_TOKENS])):
        before, after = sample[: first[token] + len(token)], sample[first[token] + len(token) :]
        yield lambda size, b=before, t=token, a=after: b + repeat(t, size) + a
        yield lambda size, b=before, t=token: b + repeat(t, size)
        yield lambda size, b=before: repeat(b, size)
        yield lambda size, b=before, a=after: b + repeat(" ", size) + a
    for first_mark, second_mark in product(marks[:MOST_MARKS], repeat=2):
        yield lambda size, pair=first_mark + second_mark: repeat(pair, size)
    for opening, closing in BRACKETS:
        yield lambda size, o=opening, c=closing: repeat(o, size // 2) + repeat(c, size // 2)
    for mark in marks[:MOST_MARKS]:
        yield lambda size, mark=mark: mark.join(f"a{number}" for number in range(size // 6))
    yield from _yield_lines(sample)


def repeat(unit: str, size: int) -> str:
    return unit * (size // len(unit) + 1)


def _yield_lines(sample: str) -> Iterator[Make]:
    """Yield texts with a line of the sample repeated after it, equal and with its words numbered."""
    lines = sample.splitlines(keepends=True) or [""]
    for line in dict.fromkeys(lines[:3] + lines[-1:]):
        complete = line if line.endswith("\n") else line + "\n"
        yield lambda size, line=complete: sample + "\n" + repeat(line, size)
        for word in list(dict.fromkeys(re.findall(r"[^\W_]+", line)))[:4]:
            numbered = complete.replace(word, f"{word}%d", 1) if "%" not in complete else complete
            yield (
                lambda size, line=numbered: (
                    sample + "\n" + "".join(line.replace("%d", str(number)) for number in range(size // len(line)))
                )
            )


def yield_hostile_values(sample: Any) -> Iterator[Make]:
    """Yield functions from a length to the JSON of a hostile value."""
    for path in _list_paths(sample):
        claimed = _find(sample, path)
        text = json.dumps(claimed)
        if isinstance(claimed, list) and claimed:
            yield lambda size, p=path, h=claimed, t=text: _write(sample, p, h * (size // len(t) + 1))
            yield lambda size, p=path, h=claimed, t=text: _write(
                sample, p, [_number(h[0], number) for number in range(size // len(t) + 1)]
            )
        elif isinstance(claimed, dict):
            yield lambda size, p=path, h=claimed: _write(
                sample, p, h | {f"k{number}": 1 for number in range(size // 10)}
            )
            item = next(iter(claimed.values()), 1)
            yield lambda size, p=path, h=claimed, i=item: _write(
                sample, p, h | {f"k{number}": i for number in range(size // (len(json.dumps(i)) + 10))}
            )
        elif isinstance(claimed, str):
            for unit in (" ", "\n", '"', "\\", "a ", "<", "&#9", ",", "(", "{", "\u0315\u0300", "9"):
                yield lambda size, p=path, u=unit: _write(sample, p, repeat(u, size))
        yield lambda size, p=path: _write(sample, p, _nest(min(size // 2, 90)))


def _list_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _list_paths(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield from _list_paths(value[0], (*path, 0))


def _find(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _write(value: Any, path: tuple[Any, ...], put: Any) -> str:
    if not path:
        return json.dumps(put, ensure_ascii=False)
    changed = json.loads(json.dumps(value))
    _find(changed, path[:-1])[path[-1]] = put
    return json.dumps(changed, ensure_ascii=False)


def _number(item: Any, number: int) -> Any:
    """Return an item with its number at the end of its texts, and as its whole numbers."""
    if isinstance(item, dict):
        return {key: _number(inner, number) for key, inner in item.items()}
    if isinstance(item, str):
        return f"{item}{number}"
    return number if type(item) is int else item


def _nest(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value
