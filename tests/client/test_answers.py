"""The types of the client are those of the schema that is checked in, which the server is held to."""

import json
from inspect import isfunction
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest
import yaml

from benchbench.client import Client, answers, rounds
from tests.client.scripted import scripted

CHECKED_IN = Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"
SCHEMA = yaml.load(CHECKED_IN.read_text(encoding="utf-8"), yaml.CSafeLoader)
SCHEMAS = SCHEMA["components"]["schemas"]
NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def typed(hint: Any) -> frozenset[Any]:
    """Return the alternatives that a type allows."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return frozenset().union(*map(typed, arguments))
    if origin is Literal:
        return frozenset(("=", value) for value in arguments)
    if origin is list:
        return frozenset({("array", typed(arguments[0]))})
    if origin is dict:
        return frozenset({("map", typed(arguments[1]))})
    if is_typeddict(hint):
        hints = get_type_hints(hint)
        fields = [(name, name in hint.__required_keys__, typed(hints[name])) for name in sorted(hints)]
        return frozenset({("object", tuple(fields))})
    return frozenset({"any" if hint is Any else NAMES[hint]})


def stated(schema: dict[str, Any]) -> frozenset[Any]:
    """Return the same of a schema."""
    if "$ref" in schema:
        return stated(SCHEMAS[schema["$ref"].rpartition("/")[2]])
    for several in ("oneOf", "anyOf", "allOf"):
        if several in schema:
            return frozenset().union(*map(stated, schema[several]))
    if "enum" in schema:
        return frozenset(("=", value) if value is not None else "null" for value in schema["enum"])
    types = schema.get("type", "any")
    return frozenset(_of_type(schema, name) for name in ([types] if isinstance(types, str) else types))


def _of_type(schema: dict[str, Any], name: str) -> Any:
    if name == "array":
        return "array", stated(schema["items"])
    if "properties" in schema and name == "object":
        required = schema.get("required", ())
        return "object", tuple(
            (field, field in required, stated(inner)) for field, inner in sorted(schema["properties"].items())
        )
    if name == "object":
        return "map", stated(schema.get("additionalProperties") or {})
    return name


ANSWERS = [
    (answers.Collection, "CollectionFacts"),
    (answers.Uploaded, "UploadedFacts"),
    (answers.Mapping, "MappingFacts"),
    (answers.Benchmark, "BenchmarkFacts"),
    (answers.Started, "StartedFacts"),
    (answers.Operation, "OperationState"),
    (answers.Results, "ResultsFacts"),
    (answers.Answer, "AnswerFacts"),
    (answers.Gate, "GateFacts"),
    (rounds.Round, "RoundFacts"),
    (rounds.Handed, "HandedItems"),
    (rounds.Given, "GivenGrade"),
    (rounds.State, "RoundState"),
    (rounds.Closed, "ClosedFacts"),
    (rounds.LLMCost, "LLMCost"),
    (rounds.LLMStarted, "LLMStarted"),
    (rounds.Sample, "SampleFacts"),
    (rounds.LLMJudge, "LLMJudgeFacts"),
    (rounds.Verdicts, "VerdictsFacts"),
]


@pytest.mark.parametrize(("answer", "component"), ANSWERS)
def test_each_answer_is_as_the_schema_says(answer: Any, component: str) -> None:
    assert typed(answer) == stated(SCHEMAS[component])


def test_whatever_a_client_returns_is_held_to_the_schema() -> None:
    returned = set()
    for function in vars(Client).values():
        if isfunction(function):
            hint = get_type_hints(function)["return"]
            returned |= {one for one in (hint, *get_args(hint)) if is_typeddict(one)}
    assert returned == {answer for answer, _ in ANSWERS}


def test_a_model_judges_at_the_addresses_of_the_schema() -> None:
    answers = [(200, {}), (202, {}), (201, {"size": 30}), (200, {"judges": []}), (200, {})]
    with scripted(*answers) as site:
        client = Client(site.address)
        client.llm_cost("r", "ollama:llama3", most=5)
        client.judge_by_llm("r", "ollama:llama3")
        client.draw_calibration_sample("r", 30)
        assert client.llm_judges("r") == []
        client.verdicts("r", llm="ollama:llama3")
        asked = [(method, path.partition("?")[0]) for method, path, _, _ in site.asked]
        bodies = [json.loads(content) for _, _, _, content in site.asked if content]
        keyed = ["idempotency-key" in headers for _, _, headers, _ in site.asked]
    for method, path in asked:
        assert method.lower() in SCHEMA["paths"][path.replace("/r/", "/{round_id}/")]
    assert bodies == [{"llm": "ollama:llama3", "most": 5}, {"llm": "ollama:llama3", "most": None}, {"size": 30}]
    assert keyed == [False, True, True, False, False]
