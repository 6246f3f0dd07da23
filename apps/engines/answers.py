"""Hits of engines' answers, found by the JMESPath expressions of a declaration.

An answer that cannot be mapped is an error that names the path and what it found; an empty list of hits is an empty
ranking. The order of the hits is the engine's.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Annotated, Any, NamedTuple

import jmespath
from jmespath.exceptions import JMESPathError

from apps.engines.errors import AnswerError
from benchbench.markup import decode_entities
from benchbench.reading.objects import Must, StrictRecord
from benchbench.reading.strict_json import kind
from benchbench.texts.storable import clean_text, is_storable

FIELDS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
LONGEST_ID, LONGEST_TITLE, LONGEST_SNIPPET = 2000, 500, 2000
LONGEST_MARKED = 100_000  # characters of a text with tags that are read
KEYS, LONGEST_SHOWN = 12, 80  # keys of an object that an error shows, and characters of each
Reader = Callable[[Any], Any]
PATH_ERRORS = (JMESPathError, ArithmeticError, AttributeError, RecursionError, TypeError, ValueError)


class Hit(NamedTuple):
    """A hit: the reference of its document, its score if the engine gives one, title and snippet, perhaps empty."""

    id: str
    score: float | None = None
    title: str = ""
    snippet: str = ""


@lru_cache(maxsize=1000)
def compile_path(expression: str) -> Callable[[Any], object]:
    """Return the function of an expression. Raises JMESPathError for an invalid one."""
    if not FIELDS.fullmatch(expression):
        search = jmespath.compile(expression).search
        return search
    names = expression.split(".")  # the usual case, which the library interprets slowly

    def find(value: object) -> Any:
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    return find


Expression = Annotated[str, Must("a JMESPath expression", compile_path)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths(StrictRecord):
    """The expressions of a declaration. Without `hits` they are read from the whole answer and give parallel lists."""

    id: Expression
    hits: Expression = ""
    score: Expression = ""
    title: Expression = ""
    snippet: Expression = ""
    total: Expression = ""
    complete_when: Expression = ""


def parse_body(body: bytes) -> Any:
    """Return the JSON of an answer. Raises AnswerError."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        excerpt = body[:200].decode("utf-8", "replace")
        problem = f"The answer is not JSON ({type(error).__name__}): correct its url, or let it answer in JSON."
        raise AnswerError(problem, looked_at=excerpt) from None


def map_answer(
    answer: Any, paths: Paths, template: str = "{id}", *, limit: int | None = None
) -> tuple[list[Hit], int | None]:
    """Return the hits of an answer in its order, and its total if declared. Raises AnswerError.

    `template` makes the reference of a document from an id. No more than `limit` hits are read.
    """
    if paths.complete_when and (value := _find("complete_when", paths, answer)) is not True:
        raise AnswerError(
            f"The engine gave only part of its answer: complete_when ({paths.complete_when}) is {_show(value)}.",
            path=paths.complete_when,
            looked_at=answer,
        )
    total = _find("total", paths, answer, _read_total) if paths.total else None
    names = [name for name in Hit._fields if getattr(paths, name)]
    if paths.hits:
        numbered = enumerate(_find("hits", paths, answer, _read_list)[:limit], start=1)
        hits = [
            Hit(**{name: _find(name, paths, hit, READERS[name], number) for name in names}) for number, hit in numbered
        ]
    else:
        hits = _join_lists({name: _find(name, paths, answer, _read_list) for name in names}, paths, answer, limit)
    return hits if template == "{id}" else [hit._replace(id=template.replace("{id}", hit.id)) for hit in hits], total


def _join_lists(lists: dict[str, Sequence[object]], paths: Paths, answer: object, limit: int | None) -> list[Hit]:
    """Return the hits of parallel lists."""
    for name, values in lists.items():
        if len(values) != len(lists["id"]):
            problem = f"must find as many values as id ({len(lists['id'])})"
            raise _build_error(name, paths, problem, values, answer)
    return [
        Hit(
            **{
                name: _read(name, paths, value, answer, READERS[name], number)
                for name, value in zip(lists, row, strict=True)
            }
        )
        for number, row in enumerate(islice(zip(*lists.values(), strict=True), limit), start=1)
    ]


def _find(name: str, paths: Paths, looked_at: Any, read: Reader = lambda value: value, number: int = 0) -> Any:
    """Return what an expression finds in an answer, or in a hit of this number."""
    path = getattr(paths, name)
    try:
        value = compile_path(path)(looked_at)
    except PATH_ERRORS as error:
        problem = clean_text(" ".join(str(error).split()), LONGEST_SHOWN)
        raise AnswerError(f"The path {path} fails: {problem}.", path=path, looked_at=looked_at) from None
    return _read(name, paths, value, looked_at, read, number)


def _read(name: str, paths: Paths, value: object, looked_at: object, read: Reader, number: int) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise _build_error(name, paths, str(error), value, looked_at, number) from None


def _read_list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("must find a list")
    return value


def _read_id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError("must find a text or a whole number")
    text = str(value)
    if len(text) > LONGEST_ID or not is_storable(text):
        raise ValueError(f"must find a text of at most {LONGEST_ID} characters that can be stored")
    return text


def _read_number(convert: Callable[[Any], Any], problem: str, value: Any) -> Any:
    """Return a number, which some engines give as a text; null for what they do not count."""
    with suppress(TypeError, ValueError, OverflowError):
        number = None if value is None else convert(value)
        if number is None or (math.isfinite(number) and not isinstance(value, bool)):
            return number
    raise ValueError(problem)


def _read_total(value: object) -> Any:
    total = _read_number(int, "must find a whole number", value)
    if total is not None and not 0 <= total < 2**63:
        raise ValueError("must find a whole number")
    return total


def _read_text(longest: int, value: object) -> str:
    """Return a text without the tags with which engines mark the words of a query."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = " … ".join(value)
    if isinstance(value, dict | list):
        raise ValueError("must find a text")
    return "" if value is None else clean_text(decode_entities(TAG.sub("", str(value)[:LONGEST_MARKED])), longest)


READERS: dict[str, Reader] = {
    "id": _read_id,
    "score": partial(_read_number, float, "must find a number"),
    "title": partial(_read_text, LONGEST_TITLE),
    "snippet": partial(_read_text, LONGEST_SNIPPET),
}


def _build_error(name: str, paths: Paths, problem: str, value: object, looked_at: Any, number: int = 0) -> AnswerError:
    path = getattr(paths, name)
    subject = f"{name} ({path})" + (f" of hit {number}" if number else "")
    keys = ""
    if isinstance(looked_at, dict):
        excerpts = (clean_text(key, LONGEST_SHOWN) for key in islice(looked_at, KEYS))
        keys = f", among the keys {', '.join(excerpts)}"
    finding = f"it found {_show(value)} in {kind(looked_at)}{keys}"
    return AnswerError(f"The path {subject} {problem}; {finding}.", path=path, looked_at=looked_at)


def _show(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except RecursionError:
        return kind(value)
    return text if len(text) <= LONGEST_SHOWN else f"{kind(value)} ({clean_text(text, LONGEST_SHOWN)})"
