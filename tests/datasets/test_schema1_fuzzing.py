"""BenchBench JSON with odd values and odd bytes in it: a dataset, or a sentence."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.datasets.records import check
from benchbench.errors import BenchbenchError
from tests.datasets.test_schema1 import FULL, parse

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


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whatever_bytes_change_gives_a_dataset_or_a_sentence(data: st.DataObject) -> None:
    content = bytearray(json.dumps(FULL).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        content[start : start + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    assert accepted_or_refused_cleanly(bytes(content))
