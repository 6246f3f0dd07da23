"""The API against its schema: schemathesis asks all that docs/openapi.yaml has, well and ill, and reads the answers.

Ids in what it asks are made those of real rows. What the examples ask must be done where the things are there; what
else is asked well may be refused for what is there.
"""

import os
import re
from collections.abc import Iterator
from random import Random
from typing import Any
from zlib import crc32

import pytest
import schemathesis
import yaml
from django.contrib.auth.models import User
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core import NotSet
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation import GenerationMode
from schemathesis.generation.drivers import CoverageGenerator
from schemathesis.generation.feedback import NO_FEEDBACK
from schemathesis.generation.overrides import Override

from tests.api.callers import Caller
from tests.api.recording import CHECKED_IN
from tests.api.worlds import World, worlds
from tests.retrieval.llm_server import ollama_server

FUZZED = int(os.environ.get("BENCHBENCH_FUZZ_REQUESTS", "0"))  # so many of each, other ones each time
FEW = 3  # and the same each time
UUID_LENGTH = 36
SUBSTITUTED = ("manifest", "query_key", "refresh", "item_id")  # what is there under these is not an id

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]
schema = schemathesis.openapi.from_dict(yaml.load(CHECKED_IN.read_text(), yaml.CSafeLoader))
schema.app = get_wsgi_application()
schema.config.generation.update(with_security_parameters=False)
schema.config.phases.update(phases=["fuzzing"])
OPERATIONS = {hit.ok().definition.raw["operationId"]: hit.ok() for hit in schema.get_all_operations()}
load_all_checks()
NEGATIVE = CHECKS.get_one("negative_data_rejection")
NAMES = ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance"]
NAMES += ["response_schema_conformance", "negative_data_rejection", "unsupported_method"]
CHECKED = CHECKS.get_by_names(NAMES)


@pytest.fixture(scope="module")
def populated(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[Caller, list[World]]]:
    """Someone who may do everything, and what it can be done to; for all tests, in a transaction without an end."""
    signals = (request_started, request_finished)
    with django_db_blocker.unblock(), transaction.atomic():
        for signal in signals:
            signal.disconnect(close_old_connections)
        user = User.objects.create_superuser("ada", password="correct horse battery staple")  # as in the examples
        with ollama_server():
            yield Caller(user), worlds(user)
        for signal in signals:
            signal.connect(close_old_connections)
        transaction.set_rollback(True)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_its_examples_are_done_in_some_world(name: str, populated: tuple[Caller, list[World]]) -> None:
    caller, rows = populated
    operation = OPERATIONS[name]
    declared = operation.definition.raw
    query = {
        one["name"]: one["example"]
        for one in declared.get("parameters", ())
        if one["in"] == "query" and "example" in one
    }
    for media_type, content in (declared.get("requestBody", {}).get("content") or {None: {}}).items():
        statuses = []
        for world in rows:
            case = operation.Case(
                path_parameters={path: world[path] for path in re.findall(r"{(\w+)}", operation.path)},
                query=real(query, world),
                **({"body": real(content["example"], world), "media_type": media_type} if media_type else {}),
            )
            answer = ask(case, caller)
            case.validate_response(answer, checks=CHECKED)
            statuses.append(answer.status_code)
        assert any(200 <= status < 300 for status in statuses), (name, media_type, statuses)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_at_its_boundaries_it_answers_as_its_schema_says(name: str, populated: tuple[Caller, list[World]]) -> None:
    """Made here, and not where tests are collected: that would cost every process of the tests ten seconds."""
    cases = list(boundaries(name))
    for case in cases if FUZZED else of_each_type(cases):
        assert_answered(case, populated)


def boundaries(name: str) -> CoverageGenerator:
    """Return what asks an operation for every value at a limit of a field and beyond, and for every wrong type."""
    return CoverageGenerator(
        operation=OPERATIONS[name],
        generation_modes=list(GenerationMode),
        generation_config=schema.config.generation,
        auth_storage=None,
        override=Override(),
        feedback=NO_FEEDBACK,
    )


def of_each_type(cases: list[Any]) -> Iterator[Any]:
    """Yield all cases, but of the many that give a field a value of a wrong type one: another for another field."""
    alike: dict[str, list[Any]] = {}
    for case in cases:
        about = case.meta.phase.data
        if about.description.endswith("Incorrect type"):
            alike.setdefault(f"{about.description} {about.parameter} {about.parameter_location}", []).append(case)
        else:
            yield case
    for field, wrong in alike.items():
        yield wrong[crc32(field.encode()) % len(wrong)]


@pytest.mark.fuzz
@schema.parametrize()
@settings(max_examples=FUZZED or FEW, derandomize=not FUZZED, database=None, suppress_health_check=list(HealthCheck))
def test_it_answers_as_its_schema_says(case: Any, populated: tuple[Caller, list[World]]) -> None:
    assert_answered(case, populated)


def assert_answered(case: Any, created: tuple[Caller, list[World]]) -> None:
    caller, rows = created
    # What was drawn chooses the world, so that the same case always asks the same.
    world = Random(repr((case.path_parameters, case.query, case.body))).choice(rows)
    if not case.meta.is_negative_at(ParameterLocation.PATH):
        case.path_parameters = {name: world[name] for name in case.path_parameters}
    if not case.meta.is_negative_at(ParameterLocation.QUERY):
        case.query = real(case.query, world)
    case.body = real(case.body, world)
    answer = ask(case, caller)
    checks = set(CHECKED)
    if isinstance(case.body, NotSet) and not case.operation.definition.raw.get("requestBody", {}).get("required"):
        checks -= {NEGATIVE}  # nothing is a body too, where none is required; schemathesis takes it for an ill one
    case.validate_response(answer, checks=[*checks])


def ask(case: Any, caller: Caller) -> Any:
    """Return the answer, and undo what was done."""
    with transaction.atomic():
        answer = case.call(headers={"Authorization": caller.client.defaults["HTTP_AUTHORIZATION"]})
        transaction.set_rollback(True)
    return answer


def real(declared: Any, world: World) -> Any:
    """Return what is stated with what a world has in the place of what is made up."""
    if isinstance(declared, list):
        return [real(value, world) for value in declared]
    if not isinstance(declared, dict):
        return declared
    return {name: substitute(name, value, world) for name, value in declared.items()}


def substitute(name: str, value: Any, world: World) -> Any:
    remote = world.get(name)
    if isinstance(remote, list):
        return remote if isinstance(value, list) else remote[0] if is_id(value) else value
    labelled = name in SUBSTITUTED and type(value) is type(remote)
    return remote if remote and (is_id(value) or labelled) else real(value, world)


def is_id(value: Any) -> bool:
    return isinstance(value, str) and len(value) == UUID_LENGTH
