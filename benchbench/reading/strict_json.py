"""Strict text and JSON: everything accepted can be stored, and every program reads it in the same way."""

import codecs
import gzip
import json
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn

from benchbench.errors import BenchbenchError
from benchbench.texts.storable import HEAD, SAVE, describe_undecodable, find_wide_encoding, is_storable

MAX_DEPTH = 100
BLOCK_BYTES = 2**18
# A string that is not closed goes to the end: failing there, the pattern would be tried again at every quote within it.
STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


class MalformedFileError(BenchbenchError):
    """A file's bytes are not valid text, JSON or YAML."""

    code = "malformed"


def parse(text: str, *, location: str) -> Any:
    """Return the value of one JSON text. `location` begins an error's message: "corpus.jsonl, line 3,".

    If it ends with a comma it names the line, and the error adds only the column. Raises MalformedFileError for broken
    JSON, NaN and Infinity, numbers outside the range of a double, a repeated key in one object, NUL characters and lone
    surrogates (PostgreSQL stores neither), and nesting deeper than 100.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_build_object,
            parse_constant=_refuse_constant,
            parse_float=_parse_float,
            parse_int=_parse_int,
        )
    except json.JSONDecodeError as error:
        # The depth at which the parser gives up differs between versions of Python: the first error that it meets may
        # be a different one further in.
        if _is_deep(text[: error.pos]):
            raise MalformedFileError(f"{location} is nested deeper than {MAX_DEPTH} levels.") from None
        raise MalformedFileError(_describe_invalid(text, location, error)) from None
    except RecursionError:
        raise MalformedFileError(f"{location} is nested deeper than {MAX_DEPTH} levels.") from None
    except ValueError as error:
        raise MalformedFileError(f"{location} {error}.") from None
    if flaw := fault(value):
        raise MalformedFileError(f"{location} {flaw}.")
    return value


def decode(content: bytes, *, location: str) -> str:
    """Return a whole file's bytes as text, without a byte order mark; only UTF-8 is accepted."""
    _refuse_wide(content, location)
    return decode_chunk(content.removeprefix(codecs.BOM_UTF8), location=location)


def decode_chunk(content: bytes, *, location: str) -> str:
    """Return a part of a file as text; a byte order mark in it is kept as a character."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise MalformedFileError(f"{location} {describe_undecodable(error)}.") from None


def _refuse_wide(head: bytes, location: str) -> None:
    if wide := find_wide_encoding(head):
        raise MalformedFileError(f"{location} is not UTF-8 but {wide}. {SAVE}.")


def read_blocks(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Yield a file's lines as bytes in blocks of some thousand, each with the number of its first line, from 1.

    A byte order mark is dropped; `.gz` is unpacked.
    """
    number = 1
    with _opened(path, lambda: f" past line {number - 1}") as file:
        while lines := file.readlines(BLOCK_BYTES):
            if number == 1:
                lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)
            yield number, lines
            number += len(lines)


def read_chunks(path: Path) -> Iterator[bytes]:
    """Yield a file's bytes, BLOCK_BYTES at a time regardless of lines; `.gz` is unpacked."""
    with _opened(path) as file:
        while chunk := file.read(BLOCK_BYTES):
            yield chunk


@contextmanager
def _opened(path: Path, locate: Callable[[], str] = str) -> Iterator[gzip.GzipFile | BufferedReader]:
    """Open a file, unpacked; `locate` gives the position in errors. Raises MalformedFileError.

    A pipe is refused: detecting the format would consume its beginning.
    """
    if path.is_fifo():
        raise MalformedFileError(f"{path} is a pipe, which can be read only once: save it to a file, and name that.")
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            _refuse_wide(file.peek(HEAD), path.name)
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise MalformedFileError(f"{path.name} cannot be unpacked{locate()}: {_describe_torn(error)}") from None
    except OSError as error:
        raise MalformedFileError(f"{path} cannot be read: {error.strerror or error}.") from None


def _describe_torn(error: Exception) -> str:
    """Return the message for a damaged `.gz`, with the remedy, in place of the library's."""
    if isinstance(error, EOFError):
        return "it is incomplete. Copy it, or pack it, again."
    if str(error).startswith("Not a gzipped file"):
        return "it is not a gzip file, or has other data after one. Pack it again, or remove .gz from its name."
    return "it is damaged. Copy it, or pack it, again."


def read_raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each line as bytes with its number, from 1; see `read_blocks`."""
    for first, lines in read_blocks(path):
        yield from enumerate(lines, start=first)


def read_text(path: Path) -> str:
    """Return the whole of a file as text; `.gz` is unpacked."""
    return decode_chunk(b"".join(line for _, lines in read_blocks(path) for line in lines), location=path.name)


def read_value(path: Path) -> Any:
    """Return the value of a JSON file; `.gz` is unpacked."""
    return parse(read_text(path), location=path.name)


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each line that is not blank, with its place: ("test.tsv, line 3,", "q1\\td1\\t1"). `.gz` is unpacked."""
    for number, line in read_raw_lines(path):
        location = f"{path.name}, line {number},"
        text = decode_chunk(line, location=location).rstrip("\r\n")
        if text.strip():
            yield location, text


def read_objects(path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield (location, object) for each line of a JSON Lines file."""
    for location, line in read_lines(path):
        value = parse(line, location=location)
        if not isinstance(value, dict):
            raise MalformedFileError(f"{location} holds {kind(value)}: each line must be an object.")
        yield location, value


def fault(value: object) -> str:
    """Return why a JSON value cannot be stored ("holds NaN …", without a full stop), or "" if it can.

    It loops over levels instead of recursing, so that excessive depth is an error and not a crash.
    """
    level, depth = [value], 0
    while level:
        if depth > MAX_DEPTH:
            return f"is nested deeper than {MAX_DEPTH} levels"
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item)
                inner.extend(item.values())
            elif isinstance(item, list | tuple):
                inner.extend(item)
            elif isinstance(item, str) and not is_storable(item):
                return f"holds a character that cannot be stored (NUL or half of a surrogate pair): {item[:40]!a}"
            elif isinstance(item, float) and not math.isfinite(item):
                return "holds NaN or an infinite number, which is not JSON"
        level, depth = inner, depth + 1
    return ""


def kind(value: object) -> str:
    """Return the name of the JSON type of `value` for a sentence: "a list"."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    for type_, name in ((str, "a string"), (int, "a number"), (float, "a number"), (list, "a list")):
        if isinstance(value, type_):
            return name
    return "an object"


def dump_canonical(value: object) -> str:
    """Return the canonical JSON text of a value: sorted keys, no spaces, whole numbers without a fraction.

    PostgreSQL's jsonb returns 1e2 as 100 and -0.0 as 0.0, so a number's text depends on its value alone.
    """
    return json.dumps(_convert(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def is_same(first: object, second: object) -> bool:
    """Return whether two values are the same JSON. Unlike in Python, true and 1 differ."""
    return dump_canonical(first) == dump_canonical(second)


def _is_deep(text: str) -> bool:
    """Return whether the beginning of a JSON text nests brackets deeper than MAX_DEPTH."""
    depth = 0
    for match in STRING_OR_BRACKET.finditer(text):
        depth += (match[0] in "[{") - (match[0] in "]}")
        if depth > MAX_DEPTH:
            return True
    return False


def _describe_invalid(text: str, location: str, error: json.JSONDecodeError) -> str:
    if not text.strip():
        return f"{location} is empty: it must contain JSON."
    if location.endswith(","):
        return f"{location} column {error.colno}, is not JSON: {error.msg}."
    return f"{location} is not JSON: {error.msg} (line {error.lineno}, column {error.colno})."


def _convert(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _convert(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_convert(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(Decimal(repr(value)))
    return value


def _build_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"has the key {key[:40]!a} twice in one object")
        members[key] = value
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"holds {name}, which is not JSON")


def _parse_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"holds the number {digits[:40]}, which is out of range")
    return number


def _parse_int(digits: str) -> int:
    if len(digits) > 300:
        raise ValueError(f"holds an integer of {len(digits)} digits, which is out of range")
    return int(digits)


def dump_json(value: object, *, indent: int | None = None) -> str:
    """Return a value as JSON without escaping non-ASCII characters. Raises ValueError for NaN."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


def dump_lines(values: Iterable[object]) -> Iterator[str]:
    """Yield the values as JSON Lines."""
    for value in values:
        yield dump_json(value) + "\n"


def dump_array(values: Iterable[Any]) -> Iterator[str]:
    """Yield a JSON list with a line for each value, without a line break at its end."""
    before = "[\n"
    for value in values:
        yield before + dump_json(value)
        before = ",\n"
    yield "[]" if before == "[\n" else "\n]"


def attributes(thing: object, *names: str) -> dict[str, Any]:
    """Return the named attributes of an object as a dict."""
    return {name: getattr(thing, name) for name in names}
