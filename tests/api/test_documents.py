"""What the documents say of the API: its codes of errors, and its differences from the earlier API."""

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from rest_framework import exceptions
from rest_framework_simplejwt.exceptions import InvalidToken

import apps
import benchbench
from apps.api import errors
from apps.api.access import InScope
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.matrix import Matrix
from tests.api.callers import Callers
from tests.checkout import CHECKOUT
from tests.operations.documented import fields_of

API = CHECKOUT / "docs" / "api.md"
# What is raised for commands, pages of the admin, sockets and clients alone.
ELSEWHERE = (
    *(
        "apps.accounts.single_sign_on",
        "apps.accounts.tokens",
        "apps.experiments.experiments",
        "apps.mappings.beir",
    ),
    *("apps.operations.admission", "apps.operations.working", "apps.results.trying"),
    *("apps.retrieval.importing_vectors",),
    *("benchbench.catalogue", "benchbench.client", "benchbench.database.backups", "benchbench.embedded"),
    *("benchbench.database.upgrading", "benchbench.site.serving"),
    *("benchbench.files.flowbaby_results", "benchbench.local_files.placing", "benchbench.ir.canonical"),
    *("benchbench.ir.planning.query_text", "benchbench.ir.profiles", "benchbench.ir.trees", "benchbench.scoring"),
)

# Importable only where single sign-on is configured; it defines no errors.
CONFIGURED = ("apps.accounts.openid",)

REST_FRAMEWORK = (
    exceptions.AuthenticationFailed,
    exceptions.MethodNotAllowed,
    exceptions.NotAuthenticated,
    exceptions.NotFound,
    exceptions.ParseError,
    exceptions.PermissionDenied,
    exceptions.Throttled,
    exceptions.UnsupportedMediaType,
    exceptions.ValidationError,
    InvalidToken,
)


def test_docs_list_exactly_the_error_codes_by_status() -> None:
    answers, raised, presented = set(listed()), {*of_use_cases(), *of_rest_framework()}, of_the_presenter()
    assert len(raised) > 60
    assert raised <= answers, raised - answers
    assert {code for _, code in answers - raised} == presented - {code for _, code in raised & answers}


def listed() -> Iterator[tuple[int, str]]:
    """Yield each (status, code) of the table."""
    table = API.read_text().partition("The codes, by status.")[2].partition("\n## ")[0]
    for status, codes in re.findall(r"^\| (\d+) \|(.*)\|$", table, re.MULTILINE):
        yield from ((int(status), code) for code in re.findall(r"`([a-z_]+)`", codes))


def of_use_cases() -> Iterator[tuple[int, str]]:
    for package in (apps, benchbench):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not module.name.endswith("__main__") and module.name not in CONFIGURED:
                importlib.import_module(module.name)
    for error in (BenchbenchError, *below(BenchbenchError)):
        if not error.__module__.startswith((*ELSEWHERE, "tests.")):
            yield error.status, error.code


def below(error: type[BenchbenchError]) -> Iterator[type[BenchbenchError]]:
    for one in error.__subclasses__():
        yield one
        yield from below(one)


def of_rest_framework() -> Iterator[tuple[int, str]]:
    """Yield those of its errors that a request can raise."""
    for error in REST_FRAMEWORK:
        yield error.status_code, error.default_code
    yield 403, InScope.code


def of_the_presenter() -> set[str]:
    """Return the codes that are informed without an error of that code: what the server itself meets."""
    return set(re.findall(r'_body\((?:f?"[^"]*"|\w+\(?\w*\)?), "([a-z_]+)"', inspect.getsource(errors)))


DOCS = CHECKOUT / "docs"
DIFFERENCES = (DOCS / "api.md").read_text().partition("## Differences from the earlier API")[2]
DESCRIPTIONS = ("semantik-benchmarks-api-v2.md", "semantik-benchmark-system.md")


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


def ours(complete: Any) -> set[str]:
    """Every field, parameter and value that the schema, the events and the formats of ours name."""
    labelled = set(re.findall(r"\b(?:name|const): (\w+)", yaml.dump(complete))) | {"timestamp", "type", "data"}
    for piece in complete["components"]["schemas"].values():
        labelled |= set(piece.get("properties", ())) | {str(value) for value in piece.get("enum", ())}
        for inner in piece.get("properties", {}).values():
            labelled |= set(inner.get("properties", ()))
    for kind in ("benchmark_progress", "benchmark_mapping_resolution_progress"):
        labelled |= {name for field in fields_of(kind) for name in re.split(r"[.\[\]]+", field)}
    return labelled.union(*(coded((DOCS / name).read_text()) for name in ("formats.md", "events.md", "measures.md")))


def coded(text: str) -> set[str]:
    """The words that are in code within prose."""
    prose = re.sub("```.*?```", "", text, flags=re.DOTALL)
    return {word for code in re.findall("`([^`]+)`", prose) for word in re.findall(r"[A-Za-z_]\w*", code)}


def test_every_address_of_the_description_is_one_of_ours(described: str) -> None:
    paths = schema()["paths"]
    declared = re.findall(r"^- `(GET|POST|DELETE) (/api/v2/[^`?]+)(?:\?([^`]+))?`", described, re.MULTILINE)
    assert len(declared) == 16
    for method, path, query in declared:
        operation = paths[path][method.lower()]
        parameters = {parameter["name"] for parameter in operation.get("parameters", ())}
        assert {piece.partition("=")[0] for piece in query.split("&") if query} <= parameters, path


def test_every_example_field_is_ours_or_a_listed_difference(described: str) -> None:
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


def test_matrix_example_creates_the_documented_runs(described: str) -> None:
    example = described.partition("config_matrix = ")[2].partition("}")[0] + "}"
    declared = yaml.safe_load(re.sub("#.*", "", example).replace("None", "null"))
    assert "= 16 runs" in described
    assert len(Matrix.parse(declared).list_configurations()) == 16
