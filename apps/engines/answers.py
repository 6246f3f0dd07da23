"""Hits of engines' answers, found by the JMESPath expressions of a declaration.

An answer that cannot be mapped is an error that names the path and what it found; an empty list of hits is an empty
ranking. The order of the hits is the engine's.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Any, NamedTuple

import jmespath
from jmespath.exceptions import JMESPathError

from apps.engines.errors import AnswerError
from benchbench.reading.objects import Checked, StrictRecord, fault
from benchbench.reading.strict_json import is_storable, kind

FIELDS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
LONGEST_ID, LONGEST_TITLE, LONGEST_SNIPPET = 2000, 500, 2000
PATH_ERRORS = (JMESPathError, ArithmeticError, AttributeError, RecursionError, TypeError, ValueError)


class Hit(NamedTuple):
    """A hit: the reference of its document, its score if the engine gives one, title and snippet, perhaps empty."""

    id: str
    score: float | None = None
    title: str = ""
    snippet: str = ""


@lru_cache(maxsize=1000)
def compile_path(expression: str) -> Callable[[Any], Any]:
    """Return the function of an expression. Raises JMESPathError for an invalid one."""
    if not FIELDS.fullmatch(expression):
        search: Callable[[Any], Any] = jmespath.compile(expression).search
        return search
    names = expression.split(".")  # the usual case, which the library interprets slowly

    def find(value: Any) -> Any:
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    return find


def _check_path(expression: Any) -> str:
    if not isinstance(expression, str) or not expression.strip():
        raise fault("must be a JMESPath expression")
    try:
        compile_path(expression)
    except JMESPathError as error:
        raise fault(f"is not a JMESPath expression: {' '.join(str(error).split())[:200]}") from None
    return expression


Expression = Annotated[str, Checked(_check_path, before=True)]


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
        raise AnswerError(f"The answer is not JSON ({type(error).__name__}).", looked_at=excerpt) from None


def map_answer(answer: Any, paths: Paths, template: str = "{id}") -> tuple[list[Hit], int | None]:
    """Return the hits of an answer in its order, and its total if declared. Raises AnswerError.

    `template` makes the reference of a document from an id.
    """
    if paths.complete_when and (value := _search(paths.complete_when, answer)) is not True:
        raise AnswerError(
            f"The engine gave only part of its answer: complete_when ({paths.complete_when}) is {_show(value)}.",
            path=paths.complete_when,
            looked_at=answer,
        )
    total = _read_total(paths, answer) if paths.total else None
    hits = []
    for number, (values, looked_at) in enumerate(_find_rows(answer, paths), start=1):
        hit = _build_hit(values, number, paths, looked_at)
        hits.append(hit if template == "{id}" else hit._replace(id=template.replace("{id}", hit.id)))
    return hits, total


def _find_rows(answer: Any, paths: Paths) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the values of each hit by name, and where they were found: in a hit, or in parallel lists."""
    declared = {name: path for name in Hit._fields if (path := getattr(paths, name))}
    if paths.hits:
        for hit in _find_list("hits", paths, answer):
            yield {name: _search(path, hit) for name, path in declared.items()}, hit
        return
    lists = {name: _find_list(name, paths, answer) for name in declared}
    for name, values in lists.items():
        if len(values) != len(lists["id"]):
            problem = f"must find as many values as id ({len(lists['id'])})"
            raise _build_error(name, paths, problem, values, answer)
    for row in zip(*lists.values(), strict=True):
        yield dict(zip(lists, row, strict=True)), answer


def _find_list(name: str, paths: Paths, answer: Any) -> list[Any]:
    values = _search(getattr(paths, name), answer)
    if not isinstance(values, list):
        raise _build_error(name, paths, "must find a list", values, answer)
    return values


def _build_hit(values: dict[str, Any], number: int, paths: Paths, looked_at: Any) -> Hit:
    for name, value in values.items():
        try:
            values[name] = READERS[name](value)
        except ValueError as error:
            raise _build_error(name, paths, str(error), value, looked_at, number) from None
    return Hit(**values)


def _read_id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError("must find a text or a whole number")
    text = str(value)
    if len(text) > LONGEST_ID or not is_storable(text):
        raise ValueError(f"must find a text of at most {LONGEST_ID} characters that can be stored")
    return text


def _read_score(value: Any) -> float | None:
    """Return a score; some engines give numbers as texts, and null for a list that they sorted otherwise."""
    if value is None:
        return None
    try:
        score = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        raise ValueError("must find a number")
    return score


def _read_text(longest: int, value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = " … ".join(value)
    if isinstance(value, dict | list):
        raise ValueError("must find a text")
    text = "" if value is None else str(value)[:longest]
    return text if is_storable(text) else "".join(filter(is_storable, text))


READERS: dict[str, Callable[[Any], Any]] = {
    "id": _read_id,
    "score": _read_score,
    "title": partial(_read_text, LONGEST_TITLE),
    "snippet": partial(_read_text, LONGEST_SNIPPET),
}


def _read_total(paths: Paths, answer: Any) -> int | None:
    total = _search(paths.total, answer)
    try:
        number = None if total is None else -1 if isinstance(total, bool) else int(total)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if number is not None and not 0 <= number < 2**63:
        raise _build_error("total", paths, "must find a whole number", total, answer)
    return number


def _search(path: str, value: Any) -> Any:
    try:
        return compile_path(path)(value)
    except PATH_ERRORS as error:
        problem = " ".join(str(error).split())[:200]
        raise AnswerError(f"The path {path} fails: {problem}.", path=path, looked_at=value) from None


def _build_error(name: str, paths: Paths, problem: str, value: Any, looked_at: Any, number: int = 0) -> AnswerError:
    path = getattr(paths, name)
    subject = f"{name} ({path})" + (f" of hit {number}" if number else "")
    keys = f", among the keys {', '.join(map(str, list(looked_at)[:12]))}" if isinstance(looked_at, dict) else ""
    finding = f"it found {_show(value)} in {kind(looked_at)}{keys}"
    return AnswerError(f"The path {subject} {problem}; {finding}.", path=path, looked_at=looked_at)


def _show(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except RecursionError:
        return kind(value)
    return text if len(text) <= 80 else f"{kind(value)} ({text[:60]}…)"
