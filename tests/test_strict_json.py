"""The one JSON text of a value."""

from typing import Any

import pytest

from benchbench.strict_json import canonical, fault, same


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
