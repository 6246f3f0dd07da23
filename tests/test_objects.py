"""Reading an object as a record: each sentence, and that a record is tested wherever it stands."""

from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest

from benchbench.reading.kinds import whole
from benchbench.reading.objects import (
    Filled,
    Identifier,
    InvalidKeyError,
    Listed,
    Must,
    Stated,
    Strings,
    read_as,
    read_list,
)


@dataclass(frozen=True, slots=True)
class Part(Stated):
    name: Filled
    parts: "Listed[Part]" = ()


@dataclass(frozen=True, slots=True)
class Whole(Stated):
    KEYS = {"key": "_id"}
    ALIASES = {"_id": "id"}

    key: Identifier
    one: Part
    other: Part
    count: Annotated[int, whole(1, 9)] = 1
    share: float = 0.5
    even: Annotated[int, Must("even", lambda number: number % 2 == 0)] = 2
    tags: Strings = ()
    more: Listed[Part] = ()
    free: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WithNulls(Stated):
    NULL_IS_A_VALUE = True

    text: str = ""


LEAST = {"_id": 7, "one": {"name": "a"}, "other": {"name": "b"}}


def test_it_makes_the_record() -> None:
    deep = {"name": "a", "parts": [{"name": "b", "parts": [{"name": "c"}]}]}
    stated = {
        "id": "7",
        "one": deep,
        "other": {"name": "b"},
        "tags": ["x", "y", "x"],
        "free": {"a": None},
        "count": None,
    }
    read = read_as(Whole, stated)
    assert read == Whole("7", Part("a", (Part("b", (Part("c"),)),)), Part("b"), tags=("x", "y"), free={"a": None})
    assert read_as(Whole, LEAST | {"id": 7}).key == "7"


@pytest.mark.parametrize(
    ("stated", "sentence", "at"),
    [
        ([], "The file must be an object, not a list.", ""),
        (
            {**LEAST, "colour": 1},
            "The file has the unknown key 'colour': known are _id, id, one, other, count",
            "colour",
        ),
        ({"_id": 7, "one": {"name": "a"}}, "The file lacks the key other.", "other"),
        ({**LEAST, "id": "7"}, "The file has _id and its alias id with different values.", "_id"),
        ({**LEAST, "_id": True}, "_id must be a string, not true.", "_id"),
        ({**LEAST, "one": {"name": " "}}, "one.name is blank.", "one.name"),
        ({**LEAST, "one": {"name": "a", "x": 1}}, "one has the unknown key 'x'", "one.x"),
        ({**LEAST, "other": {"name": "a", "x": 1}}, "other has the unknown key 'x'", "other.x"),
        ({**LEAST, "more": [{"name": "a"}, {"x": 1}]}, "more[1] has the unknown key 'x'", "more[1].x"),
        ({**LEAST, "more": {}}, "more must be a list, not an object.", "more"),
        (
            {**LEAST, "one": {"name": "a", "parts": [{"name": "b", "parts": [{"name": None}]}]}},
            "one.parts[0].parts[0] lacks the key name.",
            "one.parts[0].parts[0].name",
        ),
        ({**LEAST, "one": {"name": "a", "parts": [[]]}}, "one.parts[0] must be an object, not a list.", "one.parts[0]"),
        ({**LEAST, "count": True}, "count must be a whole number from 1 to 9, not true.", "count"),
        ({**LEAST, "count": 2.0}, "count must be a whole number from 1 to 9, not 2.0.", "count"),
        ({**LEAST, "share": "1"}, "share must be a number, not a string.", "share"),
        ({**LEAST, "even": 3}, "even must be even, not 3.", "even"),
        ({**LEAST, "even": "x" * 50}, 'even must be even, not "' + "x" * 36 + "….", "even"),
        ({**LEAST, "tags": "x"}, "tags must be a list, not a string.", "tags"),
        ({**LEAST, "tags": ["x", ""]}, "tags must be a list of strings that are not blank.", "tags"),
        ({**LEAST, "free": []}, "free must be an object, not a list.", "free"),
    ],
)
def test_it_names_the_path(stated: Any, sentence: str, at: str) -> None:
    with pytest.raises(InvalidKeyError) as caught:
        read_as(Whole, stated)
    assert caught.value.message.startswith(sentence)
    assert caught.value.field == at


def test_prefix_and_suffix_surround_the_path() -> None:
    with pytest.raises(InvalidKeyError, match=r"^a\.json, text \(line 3\) must be a string, not null\.$"):
        read_as(WithNulls, {"text": None}, prefix="a.json, ", suffix=" (line 3)")
    with pytest.raises(InvalidKeyError, match=r"^a\.json\[1\] lacks the key name\.$"):
        read_list(Part, [{"name": "a"}, {}], prefix="a.json")
