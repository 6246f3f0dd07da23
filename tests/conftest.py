"""What every test depends on: the embedded services, and the data that lies next to the checkout."""

import functools
import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import connection
from django.template import Context
from django.template.base import FilterExpression, VariableDoesNotExist
from django.test import TransactionTestCase
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from apps.accounts import throttling
from apps.accounts.roles import make_roles
from apps.operations.workers import watchdog
from benchbench import embedded
from benchbench.process import collect_less
from tests.checkout import CHECKOUT
from tests.migrated import keep_migrated, keeps_migrated, name_migrated
from tests.services import empty_tables, environment_of_processes, kept_redis, serving, starting, stop
from tests.shuffling import shuffle_rows
from tests.staff import make_staff  # noqa: F401 (a fixture)
from tests.wheel import bare_python, scoring_python, wheel  # noqa: F401 (fixtures)

os.environ["HF_HUB_OFFLINE"] = "1"  # a test that would fetch a model fails at once

TEMPLATES = str(CHECKOUT / "templates")


def pytest_configure(config: pytest.Config) -> None:
    """Start the services, unless this process only hands the tests out to others."""
    if not config.getoption("numprocesses", None):
        shutil.rmtree(settings.BENCHBENCH_VECTOR_DIR, ignore_errors=True)  # thousands of files of earlier runs
        embedded.ensure()
    # The limit of a transaction of the code stays on that of the test, in which a busy machine may import for minutes.
    settings.BENCHBENCH_IDLE_TRANSACTION_SECONDS = 600
    # Neither how busy the machine is nor what is drawn decides whether a test passes; `make fuzz` draws other inputs.
    exact = {"deadline": None, "derandomize": True, "suppress_health_check": [HealthCheck.too_slow]}
    hypothesis_settings.register_profile("exact", **exact)
    hypothesis_settings.load_profile("exact")
    if config.getoption("random_order_enabled"):
        shuffle_rows()
    TransactionTestCase._fixture_teardown = lambda case: empty_tables()
    # A new connection would read the catalog again for each test that commits.
    TransactionTestCase._should_reload_connections = lambda case: False
    collect_less()


def resolve_strictly(self: FilterExpression, context: Context, ignore_failures: bool = False) -> Any:
    """Fail where one of our templates shows a variable that does not exist: Django would show nothing."""
    template = context.render_context.template
    if not ignore_failures and self.is_var and template and str(template.origin.name).startswith(TEMPLATES):
        try:
            value = self.var.resolve(context)
        except VariableDoesNotExist as error:
            if not any(function.__name__ == "default" for function, _ in self.filters):
                raise AssertionError(f"{template.name} shows {self.token}, which does not exist.") from error
        else:
            if not self.filters:
                return value
    return resolve_leniently(self, context, ignore_failures)


resolve_leniently = FilterExpression.resolve
FilterExpression.resolve = resolve_strictly


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("This machine has no CUDA device that torch can use: run `pytest -m gpu` on one that has.")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collect no garbage while modules and tests are made, which stay: to look through them is a third of that time."""
    gc.disable()
    try:
        return (yield)
    finally:
        freeze()
        gc.enable()


def freeze() -> None:
    """Look for garbage only among what is made from now on."""
    gc.freeze()
    freeze.modules = len(sys.modules)


def freeze_imports(phase: str, searched: dict[str, int]) -> None:
    """Look once for garbage in what was imported: with torch that takes a quarter of a second, at each model."""
    if phase == "stop" and searched["generation"] == 2 and len(sys.modules) > freeze.modules + 100:
        freeze()


gc.callbacks.append(freeze_imports)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest: at the end one process would do it while the others had nothing left.

    pytest-xdist divides the tests into as many equal runs as there are processes: each begins with some long ones.
    """
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    longest = [item for item in items if item.get_closest_marker("long")]
    shorter = [item for item in items if not item.get_closest_marker("long")]
    shorter.sort(key=lambda item: item.path.parent.name not in ("browser", "client"))
    ordered: list[pytest.Item] = []
    for number in range(count):
        first, size = longest[number::count], len(items) * (number + 1) // count - len(ordered)
        ordered += first + shorter[: size - len(first)]
        del shorter[: size - len(first)]
    items[:] = ordered + shorter


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None, django_db_blocker: Any) -> None:
    """Begin with the tables of an earlier run of the same migrations: to migrate takes seconds."""
    with django_db_blocker.unblock():
        if keeps_migrated():
            connection.settings_dict["TEST"]["TEMPLATE"] = name_migrated()


@pytest.fixture(scope="session")
def groups_of_migrations() -> dict[str, set[str]]:
    """The groups that migrations made, each with its permissions, as they were before any test."""
    return {}


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any, groups_of_migrations: dict[str, set[str]]) -> None:
    """Make the database of the tests, and look at what the first test may already empty."""
    with django_db_blocker.unblock():
        rows = Group.objects.values_list("name", "permissions__content_type__app_label", "permissions__codename")
        for name, label, codename in rows:
            groups_of_migrations.setdefault(name, set()).add(f"{label}.{codename}")
        if not keeps_migrated():
            keep_migrated()


@pytest.fixture
def roles(db: None) -> None:
    """The groups of the roles, which a test that commits takes away."""
    make_roles(apps)


@pytest.fixture(autouse=True)
def empty_redis() -> Iterator[None]:
    """Leave no job, cached answer or throttle count of one test to the next."""
    yield
    kept_redis().flushall()


@pytest.fixture
def open_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no window of a throttle end during a test, as they do at each full minute, hour and day."""
    monkeypatch.setattr(throttling, "time", lambda: 86_400.0 * 20_000 + 1)


@pytest.fixture
def shared_data() -> Path:
    """The folder of the test collections: `../shared/data`, or the one BENCHBENCH_SHARED_DATA names."""
    folder = Path(os.environ.get("BENCHBENCH_SHARED_DATA") or CHECKOUT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(
            f"There is no {folder}: put the test collections there, or name their folder in BENCHBENCH_SHARED_DATA."
        )
    return folder


@pytest.fixture
def process_environment(transactional_db: None) -> dict[str, str]:
    return environment_of_processes()


@pytest.fixture
def processes() -> Iterator[list["subprocess.Popen[bytes]"]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    stop(started)


@pytest.fixture
def manage(transactional_db: None, processes: list["subprocess.Popen[bytes]"]) -> Any:
    """Start `manage.py …` (or another module) on this test's database, with settings by name."""
    return starting(processes)


@pytest.fixture
def serve(manage: Any) -> Callable[..., str]:
    """Serve a site of the test's own, with options of daphne's and settings by name; return its address."""
    return functools.partial(serving, manage)


@pytest.fixture(scope="session")
def standing_site(django_db_setup: None) -> Iterator[str]:
    """One site for all tests: to start it, and its first page, takes seconds."""
    started: list[subprocess.Popen[bytes]] = []
    yield serving(starting(started))
    stop(started)


@pytest.fixture
def site(transactional_db: None, standing_site: str) -> str:
    """The address of a site with the settings that it has where none are set."""
    return standing_site


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the database is asked from now on: what Django does not see too, as it is read past it."""
    requests: list[str] = []
    for name in ("execute", "stream"):
        complete = getattr(psycopg.Cursor, name)

        def noted(cursor: Any, query: Any, *args: Any, full: Any = complete, **kwargs: Any) -> Any:
            requests.append(str(query))
            return full(cursor, query, *args, **kwargs)

        monkeypatch.setattr(psycopg.Cursor, name, noted)
    return requests


@pytest.fixture
def board() -> Iterator[watchdog.Board]:
    """The board on which this process shows its limits."""
    board = watchdog.Board()
    watchdog.show_on(board)
    yield board
    watchdog.show_on(None)


@pytest.fixture
def server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server of language models, under the names of both kinds."""
    from tests.retrieval.llm_server import known_server  # which imports models

    with known_server(settings, monkeypatch) as created:
        yield created
