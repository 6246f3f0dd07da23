"""The stable codes of errors: docs/api.md has each, under its status, and no other."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

from rest_framework import exceptions
from rest_framework_simplejwt.exceptions import InvalidToken

import apps
import benchbench
from apps.api import errors
from apps.api.access import InScope
from benchbench.errors import BenchbenchError

DOCS = Path(__file__).resolve().parents[2] / "docs" / "api.md"
# What is raised for commands, pages of the admin, sockets and clients alone.
ELSEWHERE = (
    "apps.accounts.tokens",
    "apps.benchmarks.repeating.experiments",
    "apps.mappings.beir",
    "apps.operations.admission",
    "apps.operations.working",
    "apps.retrieval.importing_vectors",
    "benchbench.catalogue",
    "benchbench.client",
    "benchbench.database.backups",
    "benchbench.embedded",
    "benchbench.files.flowbaby_results",
    "benchbench.local_files.placing",
    "benchbench.files.flowbaby_results",
    "benchbench.ir.canonical",
    "benchbench.ir.planning.query_text",
    "benchbench.ir.profiles",
    "benchbench.ir.trees",
    "benchbench.scoring",
)

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


def test_the_docs_list_every_code_under_its_status_and_no_other() -> None:
    told, raised, presented = set(listed()), {*of_use_cases(), *of_rest_framework()}, of_the_presenter()
    assert len(raised) > 60
    assert raised <= told, raised - told
    assert {code for _, code in told - raised} == presented - {code for _, code in raised & told}


def listed() -> Iterator[tuple[int, str]]:
    """Yield each (status, code) of the table."""
    table = DOCS.read_text().partition("The codes, by status.")[2].partition("\n## ")[0]
    for status, codes in re.findall(r"^\| (\d+) \|(.*)\|$", table, re.MULTILINE):
        yield from ((int(status), code) for code in re.findall(r"`([a-z_]+)`", codes))


def of_use_cases() -> Iterator[tuple[int, str]]:
    for package in (apps, benchbench):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not module.name.endswith("__main__"):
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
    """Return the codes that are told without an error of that code: what the server itself meets."""
    return set(re.findall(r'_body\((?:f?"[^"]*"|\w+\(?\w*\)?), "([a-z_]+)"', inspect.getsource(errors)))
