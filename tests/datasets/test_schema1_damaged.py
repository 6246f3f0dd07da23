"""BenchBench JSON that is damaged: a dataset, or a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.datasets.formats.schema1 import read_schema1
from apps.datasets.records import check
from benchbench.errors import BenchbenchError
from tests.damages import EXAMPLES, drawn
from tests.datasets.test_schema1 import FULL, parse, refusal

DRAWN = drawn(EXAMPLES // 2)
DAMAGED = {
    "empty": (b"", "The file is empty: JSON is expected."),
    "cut off": (b'{"queries": [', "The file is not JSON: Expecting value (line 1, column 14)."),
    "two values": (b"{} {}", "The file is not JSON: Extra data"),
    "NaN": (b'{"metadata": {"a": NaN}}', "The file holds NaN, which is not JSON."),
    "Infinity": (b'{"metadata": {"a": -Infinity}}', "The file holds -Infinity, which is not JSON."),
    "past a double": (b'{"metadata": {"a": 1e400}}', "The file holds the number 1e400, which is out of range."),
    "endless integer": (b'{"metadata": {"a": ' + b"1" * 5000 + b"}}", "The file holds an integer of 5000 digits"),
    "key twice": (b'{"queries": [], "queries": []}', "The file has the key 'queries' twice in one object."),
    "not UTF-8": (b'{"queries": "\xe9"}', "The file is not UTF-8: byte 13"),
    "UTF-16": ('{"queries": []}'.encode("utf-16"), "The file is not UTF-8"),
    "NUL": (b'{"metadata": {"a": ["\\u0000"]}}', "The file holds a character that cannot be stored (NUL or half"),
    "NUL in a key": (b'{"metadata": {"\\u0000": 1}}', "The file holds a character that cannot be stored (NUL or half"),
    "half a pair": (b'{"metadata": {"a": "\\udcff"}}', "The file holds a character that cannot be stored (NUL or half"),
    "deep": (b'{"metadata": ' + b'{"a":' * 150 + b"1" + b"}" * 151, "The file is nested deeper than 100 levels."),
    "very deep": (b"[" * 9000, "The file is nested deeper than 100 levels."),
}


@pytest.mark.parametrize(("content", "sentence"), DAMAGED.values(), ids=DAMAGED)
def test_it_refuses_a_damaged_file(content: bytes, sentence: str) -> None:
    assert refusal(content).message.startswith(sentence)


def test_it_names_a_file_that_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b'{"queries": [')
    with pytest.raises(BenchbenchError, match=r"x\.json is not JSON: Expecting value \(line 1, column 14\)\."):
        read_schema1(tmp_path / "x.json")


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["q1", "\0", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) within a JSON value."""
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [(value, key) for key, _ in items] + [place for _, inner in items for place in places(inner)]


def accepted_or_refused_cleanly(content: bytes) -> bool:
    try:
        check(parse(content))
    except BenchbenchError as error:
        return error.status == 400 and error.message.endswith(".")
    return True


@pytest.mark.fuzz
@DRAWN
@given(st.data())
def test_whatever_stands_in_place_of_a_value_gives_a_dataset_or_a_sentence(data: st.DataObject) -> None:
    value = json.loads(json.dumps(FULL))
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(value)))
        if data.draw(st.booleans()):
            container[key] = data.draw(ODD)
        else:
            del container[key]
        if not places(value):
            break
    assert accepted_or_refused_cleanly(json.dumps(value).encode())


@pytest.mark.fuzz
@DRAWN
@given(st.data())
def test_whatever_bytes_change_gives_a_dataset_or_a_sentence(data: st.DataObject) -> None:
    content = bytearray(json.dumps(FULL).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        content[start : start + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    assert accepted_or_refused_cleanly(bytes(content))
