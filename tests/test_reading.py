"""Reading an object as a record, the one JSON text of a value, and packed files."""

import gzip
import re
import sys
from dataclasses import dataclass, field
from itertools import chain, product
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import ValidationError
from rest_framework import serializers

from apps.api.fields import Identifier as Identifier_of_requests
from apps.datasets.formats import registry
from apps.engines import declarations
from apps.experiments import manifests
from benchbench.files import experiment
from benchbench.reading import objects
from benchbench.reading.ids import parse_uuid
from benchbench.reading.kinds import int_between
from benchbench.reading.objects import (
    Filled,
    Identifier,
    InvalidKeyError,
    Listed,
    Must,
    StrictRecord,
    Strings,
    read_as,
    read_list,
)
from benchbench.reading.strict_json import (
    MalformedFileError,
    dump_canonical,
    fault,
    is_same,
    parse,
    read_blocks,
    read_chunks,
)
from tests.checkout import CHECKOUT
from tests.growth import find_growth_faults


@dataclass(frozen=True, slots=True)
class Node(StrictRecord):
    name: Filled
    parts: "Listed[Node]" = ()


@dataclass(frozen=True, slots=True)
class Tree(StrictRecord):
    KEYS = {"key": "_id"}
    ALIASES = {"_id": "id"}

    key: Identifier
    one: Node
    other: Node
    count: Annotated[int, int_between(1, 9)] = 1
    share: float = 0.5
    even: Annotated[int, Must("even", lambda number: number % 2 == 0)] = 2
    tags: Strings = ()
    more: Listed[Node] = ()
    free: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WithNulls(StrictRecord):
    NULL_IS_A_VALUE = True

    text: str = ""


SMALLEST = {"_id": 7, "one": {"name": "a"}, "other": {"name": "b"}}


def test_it_makes_the_record():
    deep = {"name": "a", "parts": [{"name": "b", "parts": [{"name": "c"}]}]}
    fields = {
        "id": "7",
        "one": deep,
        "other": {"name": "b"},
        "tags": ["x", "y", "x"],
        "free": {"a": None},
        "count": None,
    }
    read = read_as(Tree, fields)
    assert read == Tree("7", Node("a", (Node("b", (Node("c"),)),)), Node("b"), tags=("x", "y"), free={"a": None})
    assert read_as(Tree, SMALLEST | {"id": 7}).key == "7"


@pytest.mark.parametrize(
    ("declared", "sentence", "at"),
    [
        ([], "The file must be an object, not a list.", ""),
        ({**SMALLEST, "x": 1}, "The file has the unknown key 'x': choose one of _id, id, one, other, count", "x"),
        ({"_id": 7, "one": {"name": "a"}}, "The file is missing the key other.", "other"),
        ({**SMALLEST, "id": "7"}, "The file has _id and its alias id with different values.", "_id"),
        ({**SMALLEST, "_id": True}, "_id must be a string, not true.", "_id"),
        ({**SMALLEST, "one": {"name": " "}}, "one.name must not be blank.", "one.name"),
        ({**SMALLEST, "one": {"name": "a", "x": 1}}, "one has the unknown key 'x'", "one.x"),
        ({**SMALLEST, "other": {"name": "a", "x": 1}}, "other has the unknown key 'x'", "other.x"),
        ({**SMALLEST, "more": [{"name": "a"}, {"x": 1}]}, "more[1] has the unknown key 'x'", "more[1].x"),
        ({**SMALLEST, "more": {}}, "more must be a list, not an object.", "more"),
        (
            {**SMALLEST, "one": {"name": "a", "parts": [{"name": "b", "parts": [{"name": None}]}]}},
            "one.parts[0].parts[0] is missing the key name.",
            "one.parts[0].parts[0].name",
        ),
        (
            {**SMALLEST, "one": {"name": "a", "parts": [[]]}},
            "one.parts[0] must be an object, not a list.",
            "one.parts[0]",
        ),
        ({**SMALLEST, "count": True}, "count must be a whole number from 1 to 9, not true.", "count"),
        ({**SMALLEST, "count": 2.0}, "count must be a whole number from 1 to 9, not 2.0.", "count"),
        ({**SMALLEST, "share": "1"}, "share must be a number, not a string.", "share"),
        ({**SMALLEST, "even": 3}, "even must be even, not 3.", "even"),
        ({**SMALLEST, "even": "x" * 50}, 'even must be even, not "' + "x" * 36 + "….", "even"),
        ({**SMALLEST, "tags": "x"}, "tags must be a list, not a string.", "tags"),
        ({**SMALLEST, "tags": ["x", ""]}, "tags must be a list of strings that are not blank.", "tags"),
        ({**SMALLEST, "free": []}, "free must be an object, not a list.", "free"),
    ],
)
def test_it_names_the_path(declared, sentence, at):
    with pytest.raises(InvalidKeyError) as caught:
        read_as(Tree, declared)
    assert caught.value.message.startswith(sentence)
    assert caught.value.field == at


def test_prefix_and_suffix_surround_the_path():
    with pytest.raises(InvalidKeyError, match=r"^a\.json, text \(line 3\) must be a string, not null\.$"):
        read_as(WithNulls, {"text": None}, prefix="a.json, ", suffix=" (line 3)")
    with pytest.raises(InvalidKeyError, match=r"^a\.json\[1\] is missing the key name\.$"):
        read_list(Node, [{"name": "a"}, {}], prefix="a.json")


SHORT = "it is incomplete. Copy it, or pack it, again."
DAMAGED = "it is damaged. Copy it, or pack it, again."
UNPACKED = "it is not a gzip file, or has other data after one. Pack it again, or remove .gz from its name."


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
def test_canonical_json_sorts_keys_and_writes_numbers_by_value(value, text):
    assert dump_canonical(value) == text


def test_depth_check_is_iterative_and_true_differs_from_1():
    value = 1
    for _ in range(100):
        value = [value]
    assert fault(value) == ""
    for _ in range(100_000):
        value = [value]
    assert fault(value) == "is nested deeper than 100 levels"
    assert not is_same({"a": True}, {"a": 1})
    assert is_same({"a": 1.0, "b": 2}, {"b": 2, "a": 1})


@pytest.mark.parametrize(
    ("damage", "refusal"),
    [
        (lambda packed: packed[:-9], SHORT),
        (lambda packed: packed[:-6] + b"wrong!", DAMAGED),
        (lambda packed: packed[:10] + b"\xff" * 40, DAMAGED),
        (lambda packed: b"plain text", UNPACKED),
        (lambda packed: packed + b"more", UNPACKED),
    ],
)
def test_damaged_gzip_error_names_the_problem(tmp_path, damage, refusal):
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(damage(gzip.compress(b'{"a": "b"}\n' * 5)))
    for read in (read_blocks, read_chunks):
        with pytest.raises(MalformedFileError) as caught:
            list(read(path))
        assert caught.value.message.startswith("rows.jsonl.gz cannot be unpacked")
        assert caught.value.message.endswith(f": {refusal}")


@pytest.mark.parametrize("text", ["[" * 500, '{"a": ' * 9000, '["]]", {"a": ' + "[" * 100 + "x"])
def test_too_deep_json_always_gives_the_depth_error(text):
    with pytest.raises(MalformedFileError, match=r"^It is nested deeper than 100 levels\.$"):
        parse(text, location="It")


def test_brackets_in_a_text_are_no_depth():
    with pytest.raises(MalformedFileError, match="is not JSON"):
        parse('{"a": "\\"' + "[" * 500 + '", b', location="It")


@pytest.mark.parametrize("opening", ['{"username": "', "[", '{"a":'], ids=["string", "list", "object"])
@pytest.mark.parametrize("repeated", [r"\"", '"', r"\\", '"",', "[", "[],", '{"":', " ", r"\u0022"])
@pytest.mark.parametrize("end", ["", r"\q", "\n", '"'], ids=["open", "escape", "break", "closed"])
def test_reading_json_takes_time_linear_in_its_length(opening, repeated, end):
    def make(size):
        return opening + repeated * (size // len(repeated)) + end

    assert find_growth_faults(lambda text: parse(text, location="The body"), [make], 2_500_000) == set()


@dataclass(frozen=True, slots=True)
class WithChoices(StrictRecord):
    version: Literal["1.0"] = "1.0"
    method: Literal["GET", "POST"] = "GET"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"version": "9.0"}, 'version must be "1.0", not "9.0".'),
        ({"version": None}, "version must be"),
        ({"method": "PUT"}, 'method must be "GET" or "POST", not "PUT".'),
        ({"method": {"a": 1}}, 'method must be "GET" or "POST", not {"a": 1}.'),
    ],
)
def test_a_choice_is_named_with_the_value(value, sentence):
    if None in value.values():
        assert read_as(WithChoices, value) == WithChoices()
        return
    with pytest.raises(InvalidKeyError) as refused:
        read_as(WithChoices, value)
    assert refused.value.message == sentence


def list_records(owner: type) -> list[type]:
    """Return the records below a class; dataclasses with slots leave a second class behind."""
    below = [*chain.from_iterable(map(list_records, owner.__subclasses__()))]
    return [owner, *below] if getattr(sys.modules[owner.__module__], owner.__qualname__, None) is owner else below


JUNK = (None, True, 0, -1, 2.5, 10**30, "", " ", "x" * 9000, [], [None], {}, {"x": [1]})


ROOMS = (registry, declarations, experiment, manifests)  # loaded, and with them their records


def test_every_kind_of_wrong_value_has_its_words():
    """No record falls back to the words of the library, no matter what is at a key."""
    hits = []
    for record in (*list_records(StrictRecord)[1:], *list_records(manifests.FileSection)[1:]):
        names = getattr(record, "__dataclass_fields__", None) or record.model_fields
        keys = [getattr(record, "KEYS", {}).get(name, name) for name in names]
        for key, value in product(keys, JUNK):
            try:
                objects._build_adapter(record).validate_python({key: value})
            except ValidationError as error:
                problems = [objects._describe_fault(one)[1] for one in error.errors(include_url=False)]
                hits += [(record.__name__, key, problem) for problem in problems if "is invalid (" in problem]
    assert hits == []


@pytest.mark.parametrize(
    "text",
    [
        "{c56a4180-65aa-42ec-a945-5fd21dec0538}",
        "urn:uuid:c56a4180-65aa-42ec-a945-5fd21dec0538",
        "c56a418065aa42eca9455fd21dec0538",
        "c56a4180-65aa-42ec-a945-5fd21dec053\uff18",
        " c56a4180-65aa-42ec-a945-5fd21dec0538",
        "c56a4180-65aa-42ec-a945-5fd21dec0538\n",
        7,
        None,
    ],
)
def test_uuids_have_one_spelling(text):
    with pytest.raises(ValueError, match="is not a UUID"):
        parse_uuid(text)
    with pytest.raises(serializers.ValidationError):
        Identifier_of_requests().run_validation(text)
    usual = "C56A4180-65aa-42ec-a945-5fd21dec0538"
    assert parse_uuid(usual) == Identifier_of_requests().run_validation(usual) == UUID(usual)


def test_texts_become_uuids_in_one_function():
    """What libraries make of a text, no one else takes from a user."""
    pattern = re.compile(r"(?<!parse_)\bUUID\((?!run_id\)|truth\.|lead_id\))|serializers\.UUIDField\(\)?,? *required")
    modules = [path for folder in ("apps", "benchbench") for path in (CHECKOUT / folder).rglob("*.py")]
    hits = [str(path.relative_to(CHECKOUT)) for path in modules if pattern.search(path.read_text())]
    assert sorted(hits) == [
        "apps/mappings/references.py",
        "benchbench/reading/ids.py",
    ]  # ids of documents have several
