"""Hits of engines' answers, found by the JMESPath expressions of a declaration.

An answer that cannot be mapped is an error that names the path and what it found; an empty list of hits is an empty
ranking. The order of the hits is the engine's.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jmespath
from jmespath.exceptions import JMESPathError

from apps.engines.errors import AnswerError
from benchbench.reading.strict_json import is_storable, kind

FIELDS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
LONGEST_ID, LONGEST_TITLE, LONGEST_SNIPPET = 2000, 500, 2000
FIELD_NAMES = ("id", "score", "title", "snippet")
Path = Callable[[Any], Any]


class Hit(NamedTuple):
    """A hit: the reference of its document, its score if the engine gives one, title and snippet, perhaps empty."""

    id: str
    score: float | None = None
    title: str = ""
    snippet: str = ""


@dataclass(frozen=True, slots=True)
class Paths:
    """The expressions of a declaration, and the template of a document's reference."""

    id: str
    hits: str = ""
    score: str = ""
    title: str = ""
    snippet: str = ""
    total: str = ""
    complete_when: str = ""
    template: str = "{id}"


@lru_cache(maxsize=1000)
def compile_path(expression: str) -> Path:
    """Return the function of an expression. Raises ValueError for an invalid one."""
    if FIELDS.fullmatch(expression):  # the usual case, which the library interprets slowly
        return _build_field_path(tuple(expression.split(".")))
    try:
        return jmespath.compile(expression).search
    except JMESPathError as error:
        raise ValueError(" ".join(str(error).split())[:200]) from None


def _build_field_path(names: tuple[str, ...]) -> Path:
    def search(value: Any) -> Any:
        for name in names:
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return value

    return search


def parse_body(body: bytes) -> Any:
    """Return the JSON of an answer. Raises AnswerError."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        excerpt = body[:200].decode("utf-8", "replace")
        raise AnswerError(f"The answer is not JSON ({type(error).__name__}).", looked_at=excerpt) from None


def map_answer(answer: Any, paths: Paths) -> tuple[list[Hit], int | None]:
    """Return the hits of an answer in its order, and its total if declared. Raises AnswerError."""
    if paths.complete_when and (value := _search(paths.complete_when, answer)) is not True:
        raise AnswerError(
            f"The engine gave only part of its answer: complete_when ({paths.complete_when}) is {_show(value)}.",
            path=paths.complete_when,
            looked_at=answer,
        )
    total = _read_total(paths.total, answer) if paths.total else None
    if not paths.hits:
        return _map_lists(answer, paths), total
    hits = _search(paths.hits, answer)
    if not isinstance(hits, list):
        raise _build_error("hits", paths.hits, "must find a list", hits, answer)
    searches = [compile_path(getattr(paths, name) or "`null`") for name in FIELD_NAMES]
    return [_map_hit(hit, number, paths, searches) for number, hit in enumerate(hits, start=1)], total


def _map_hit(hit: Any, number: int, paths: Paths, searches: list[Path]) -> Hit:
    reference, score, title, snippet = searches
    try:
        return _build_hit(reference(hit), score(hit), title(hit), snippet(hit), template=paths.template)
    except _Invalid as error:
        raise _build_error(error.name, getattr(paths, error.name), error.problem, error.value, hit, number) from None
    except JMESPathError:
        for name in FIELD_NAMES:  # raises the error that names the path
            _search(getattr(paths, name) or "`null`", hit)
        raise


def _map_lists(answer: Any, paths: Paths) -> list[Hit]:
    """Return the hits of parallel lists, one list for each field."""
    names = [name for name in FIELD_NAMES if getattr(paths, name)]
    lists = {name: _search(getattr(paths, name), answer) for name in names}
    for name, values in lists.items():
        if not isinstance(values, list):
            raise _build_error(name, getattr(paths, name), "must find a list", values, answer)
        if len(values) != len(lists["id"]):
            problem = f"must find as many values as id ({len(lists['id'])})"
            raise _build_error(name, getattr(paths, name), problem, values, answer)
    hits = []
    for number, row in enumerate(zip(*lists.values(), strict=True), start=1):
        try:
            values = dict.fromkeys(FIELD_NAMES) | dict(zip(names, row, strict=True))
            hits.append(_build_hit(*values.values(), template=paths.template))
        except _Invalid as error:
            path = getattr(paths, error.name)
            raise _build_error(error.name, path, error.problem, error.value, answer, number) from None
    return hits


class _Invalid(Exception):
    def __init__(self, name: str, problem: str, value: Any) -> None:
        super().__init__(problem)
        self.name, self.problem, self.value = name, problem, value


def _build_hit(reference: Any, score: Any, title: Any, snippet: Any, *, template: str) -> Hit:
    if isinstance(reference, bool) or not isinstance(reference, str | int) or reference == "":
        raise _Invalid("id", "must find a text or a whole number", reference)
    text = str(reference) if template == "{id}" else template.replace("{id}", str(reference))
    if len(text) > LONGEST_ID or not is_storable(text):
        raise _Invalid("id", f"must find a text of at most {LONGEST_ID} characters that can be stored", reference)
    title = _read_text("title", title, LONGEST_TITLE)
    return Hit(text, _read_score(score), title, _read_text("snippet", snippet, LONGEST_SNIPPET))


def _read_score(value: Any) -> float | None:
    """Return a score; some engines give numbers as texts, and null for a list that they sorted otherwise."""
    if value is None:
        return None
    try:
        score = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        raise _Invalid("score", "must find a number", value)
    return score


def _read_text(name: str, value: Any, longest: int) -> str:
    if isinstance(value, str) and value.isascii() and len(value) <= longest and "\0" not in value:
        return value  # the usual case
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = " … ".join(value)
    if value is None:
        return ""
    if isinstance(value, dict | list):
        raise _Invalid(name, "must find a text", value)
    text = str(value)[:longest]
    return text if is_storable(text) else "".join(filter(is_storable, text))


def _read_total(path: str, answer: Any) -> int | None:
    total = _search(path, answer)
    if total is None:
        return None
    try:
        number = -1 if isinstance(total, bool) else int(total)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if not 0 <= number < 2**63:
        raise _build_error("total", path, "must find a whole number", total, answer)
    return number


def _search(path: str, value: Any) -> Any:
    try:
        return compile_path(path)(value)
    except JMESPathError as error:
        problem = " ".join(str(error).split())[:200]
        raise AnswerError(f"The path {path} fails: {problem}.", path=path, looked_at=value) from None


def _build_error(name: str, path: str, problem: str, value: Any, looked_at: Any, number: int = 0) -> AnswerError:
    subject = f"{name} ({path})" + (f" of hit {number}" if number else "")
    keys = f", among the keys {', '.join(map(str, list(looked_at)[:12]))}" if isinstance(looked_at, dict) else ""
    finding = f"it found {_show(value)} in {kind(looked_at)}{keys}"
    return AnswerError(f"The path {subject} {problem}; {finding}.", path=path, looked_at=looked_at)


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 80 else f"{kind(value)} ({text[:60]}…)"
