"""The one JSON text of a value, and packed files."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchbench.reading.strict_json import MalformedFileError, canonical, fault, parse, raw_blocks, raw_chunks, same

SHORT = "it was cut short. Copy it, or pack it, again."
DAMAGED = "it is damaged. Copy it, or pack it, again."
UNPACKED = "it is no gzip file, or goes on as none. Pack it again, or take .gz off its name."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None]}, '{"a":[true,null],"b":1}'),
        ("é\n", '"é\\n"'),
        (1.0, "1"),
        (-0.0, "0"),
        (1e23, "1" + "0" * 23),
        (0.1, "0.1"),
        (1e-7, "1e-07"),
        ((1, "a"), '[1,"a"]'),
    ],
)
def test_canonical_json_sorts_keys_and_writes_numbers_by_value(value: Any, text: str) -> None:
    assert canonical(value) == text


def test_true_is_not_1() -> None:
    assert not same({"a": True}, {"a": 1})
    assert same({"a": 1.0, "b": 2}, {"b": 2, "a": 1})


def test_depth_is_counted_without_recursion() -> None:
    value: Any = 1
    for _ in range(100):
        value = [value]
    assert fault(value) == ""
    for _ in range(100_000):
        value = [value]
    assert fault(value) == "is nested deeper than 100 levels"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda packed: packed[:-9], SHORT),
        (lambda packed: packed[:-6] + b"wrong!", DAMAGED),
        (lambda packed: packed[:10] + b"\xff" * 40, DAMAGED),
        (lambda packed: b"plain text", UNPACKED),
        (lambda packed: packed + b"more", UNPACKED),
    ],
)
def test_it_says_what_is_wrong_with_a_packed_file(tmp_path: Path, damage: Callable[[bytes], bytes], said: str) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(damage(gzip.compress(b'{"a": "b"}\n' * 5)))
    for read in (raw_blocks, raw_chunks):
        with pytest.raises(MalformedFileError) as caught:
            list(read(path))
        assert caught.value.message.startswith("rows.jsonl.gz cannot be unpacked")
        assert caught.value.message.endswith(f": {said}")


@pytest.mark.parametrize("text", ["[" * 500, '{"a": ' * 9000, '["]]", {"a": ' + "[" * 100 + "x"])
def test_what_is_too_deep_is_that_however_far_the_parser_came(text: str) -> None:
    with pytest.raises(MalformedFileError, match=r"^It is nested deeper than 100 levels\.$"):
        parse(text, where="It")


def test_brackets_in_a_text_are_no_depth() -> None:
    with pytest.raises(MalformedFileError, match="is not JSON"):
        parse('{"a": "\\"' + "[" * 500 + '", b', where="It")
