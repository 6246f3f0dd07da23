"""The list of differences from the earlier API, held against the two descriptions of it."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from benchbench.ir.planning.matrix import Matrix
from tests.api.callers import Callers
from tests.conftest import CHECKOUT
from tests.operations.documented import fields_of

DOCS = CHECKOUT / "docs"
DIFFERENCES = (DOCS / "api.md").read_text().partition("## Differences from the earlier API")[2]
DESCRIPTIONS = ("semantik-benchmarks-api-v2.md", "semantik-benchmark-system.md")
TOPICS = {
    "fewer runs than the product of the axes": "fewer runs than the product",
    "the order of runs": r"`run_order` counts from 1",
    "current_run": r"`current_run` is the first run that has not ended",
    "last_completed_run": r"`last_completed_run` comes once for each run",
    "what timing holds": r"A run's `timing` holds its own costs.*`evaluation_ms`.*`indexing_ms`.*`duration_ms`",
    "the lifetime of tokens": "An access token lasts 15 minutes, a refresh token 7 days",
    "throttles": r"Requests have rates \(429.*quotas of running work \(409",
    "the strictness of uploads": "A file is read strictly: an unknown key",
    "reasons as sentences": "Reasons .*are sentences for people",
    "which key of a reference decides": "Of the keys of a `doc_ref` the first that is there",
    "what thresholds compare": "`score_thresholds` compare with a score from 0 to 1",
    "stale mappings": "whose dataset or collection has changed since it was resolved",
    "cancelling": "Cancelling takes effect at once",
}


@pytest.mark.parametrize("topic", TOPICS)
def test_the_list_has_it(topic: str) -> None:
    assert re.search(TOPICS[topic], " ".join(DIFFERENCES.split())), topic


@pytest.fixture(scope="module")
def described() -> str:
    """Both descriptions, one after the other."""
    folder = CHECKOUT.parent / "shared" / "sources"
    if not folder.is_dir():
        pytest.skip(f"There is no {folder}: put the descriptions of the earlier systems there.")
    return "\n".join((folder / name).read_text() for name in DESCRIPTIONS)


def examples(described: str) -> list[Any]:
    return [json.loads(text) for text in re.findall("```json\n(.*?)```", described, re.DOTALL)]


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys(inner)


def schema() -> Any:
    return yaml.load((DOCS / "openapi.yaml").read_text(), yaml.CSafeLoader)


def ours(whole: Any) -> set[str]:
    """Every field, parameter and value that the schema, the events and the formats of ours name."""
    named = set(re.findall(r"\b(?:name|const): (\w+)", yaml.dump(whole))) | {"timestamp", "type", "data"}
    for part in whole["components"]["schemas"].values():
        named |= set(part.get("properties", ())) | {str(value) for value in part.get("enum", ())}
        for inner in part.get("properties", {}).values():
            named |= set(inner.get("properties", ()))
    for kind in ("benchmark_progress", "benchmark_mapping_resolution_progress"):
        named |= {name for field in fields_of(kind) for name in re.split(r"[.\[\]]+", field)}
    return named.union(*(coded((DOCS / name).read_text()) for name in ("formats.md", "events.md", "measures.md")))


def coded(text: str) -> set[str]:
    """The words that stand in code within prose."""
    prose = re.sub("```.*?```", "", text, flags=re.DOTALL)
    return {word for code in re.findall("`([^`]+)`", prose) for word in re.findall(r"[A-Za-z_]\w*", code)}


def test_every_address_of_the_description_is_one_of_ours(described: str) -> None:
    paths = schema()["paths"]
    stated = re.findall(r"^- `(GET|POST|DELETE) (/api/v2/[^`?]+)(?:\?([^`]+))?`", described, re.MULTILINE)
    assert len(stated) == 16
    for method, path, query in stated:
        operation = paths[path][method.lower()]
        parameters = {parameter["name"] for parameter in operation.get("parameters", ())}
        assert {part.partition("=")[0] for part in query.split("&") if query} <= parameters, path


def test_every_field_of_an_example_is_ours_or_a_difference(described: str) -> None:
    fields = {key for example in examples(described) for key in keys(example)} - {"...", "topic", "source"}
    matrix = described.partition("config_matrix = {")[2].partition("}")[0]
    fields |= set(re.findall(r'^ *"(\w+)":', matrix, re.MULTILINE))
    events = described.partition("### `benchmark_progress`")[2].partition("## Related")[0]
    fields |= coded(events)
    assert len(fields) > 50
    assert fields - ours(schema()) - coded(DIFFERENCES) == set()


@pytest.mark.django_db
def test_the_examples_of_uploads_are_taken(described: str, callers: Callers) -> None:
    uploads = [example for example in examples(described) if "queries" in example]
    assert len(uploads) == 2
    for number, example in enumerate(uploads):
        answer = callers.owner.upload("/benchmark-datasets", example, name=f"example {number}")
        assert (answer.status_code, answer.json()["query_count"]) == (201, 1), answer.json()


def test_the_example_of_a_matrix_makes_the_runs_that_it_says(described: str) -> None:
    example = described.partition("config_matrix = ")[2].partition("}")[0] + "}"
    stated = yaml.safe_load(re.sub("#.*", "", example).replace("None", "null"))
    assert "= 16 runs" in described
    assert len(Matrix.parse(stated).configurations()) == 16
